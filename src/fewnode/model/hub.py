"""Models on a model hub, by the hub's own mixin (extra `hub`). What is stored is our directory, and read as such.

The mixin brings upload, download and cache. Its own ways to store a model are not used: a run has checksums, and
nothing in it can run.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from huggingface_hub import ModelHubMixin, snapshot_download


class Hub(ModelHubMixin, library_name="fewnode", pipeline_tag="graph-ml"):
    """A model on its way to or from a hub. `save` and `load` are ours."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def _save_pretrained(self, save_directory: Path) -> None:
        self.model.save(save_directory)

    @classmethod
    def _from_pretrained(  # type: ignore[override]  # `load` comes from `Estimator.from_pretrained` alone
        cls,
        *,
        model_id: str,
        load: Callable[[Path], Any],
        revision: str | None = None,
        cache_dir: str | Path | None = None,
        force_download: bool = False,
        local_files_only: bool = False,
        token: str | bool | None = None,
        **_: Any,
    ) -> Hub:
        if Path(model_id).is_dir():
            return cls(load(Path(model_id)))
        found = snapshot_download(
            model_id,
            revision=revision,
            cache_dir=cache_dir,
            force_download=force_download,
            local_files_only=local_files_only,
            token=token,
            allow_patterns=["model.json", "model.safetensors"],
        )
        return cls(load(Path(found)))
