"""Model hubs, without a network: what the mixin saves is a run, and it reads one back."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fewnode
from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError

pytest.importorskip("huggingface_hub")


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """What "the hub" gives: a copy of a directory, noted with its arguments."""
    asked: dict[str, Any] = {}

    def snapshot(name: str, **options: Any) -> str:
        asked.update(name=name, **options)
        return str(shutil.copytree(tmp_path / "saved", tmp_path / "cache"))

    monkeypatch.setattr("fewnode.model.hub.snapshot_download", snapshot)
    config = str(tmp_path / "saved" / "config.json")
    monkeypatch.setattr("huggingface_hub.hub_mixin.hf_hub_download", lambda **_: config)
    return asked


def test_a_model_goes_to_a_hub_and_back(planted: Dataset, tmp_path: Path, offline: dict[str, Any]) -> None:
    model = fewnode.GPN(way=3, shot=3, episodes=5).fit(planted)
    model.save_pretrained(tmp_path / "saved")
    kept = sorted(p.name for p in (tmp_path / "saved").iterdir())
    assert kept == ["README.md", "config.json", "model.json", "model.safetensors"]
    assert (tmp_path / "saved" / "README.md").read_text().startswith("---\nlibrary_name: fewnode")
    task = (planted.graph, [0, 40], ["a", "b"], [5, 50])
    for place in (tmp_path / "saved", "somebody/gpn-packages"):
        again = fewnode.GPN.from_pretrained(place, revision="v1")
        assert isinstance(again, fewnode.GPN)
        np.testing.assert_array_equal(again.predict_proba(*task), model.predict_proba(*task))
    assert offline["name"] == "somebody/gpn-packages"
    assert offline["revision"] == "v1"
    assert offline["allow_patterns"] == ["model.json", "model.safetensors"]


def test_another_method_is_not_taken_for_gpn(planted: Dataset, tmp_path: Path) -> None:
    fewnode.Estimator("propagation", way=3, shot=3, steps=1).fit(planted).save_pretrained(tmp_path / "saved")
    assert fewnode.Estimator.from_pretrained(tmp_path / "saved").method == "propagation"
    with pytest.raises(FewnodeError, match="a propagation model"):
        fewnode.GPN.from_pretrained(tmp_path / "saved")


def test_damage_and_absence_are_said_in_one_line(planted: Dataset, tmp_path: Path, offline: dict[str, Any]) -> None:
    with pytest.raises(FewnodeError, match="nobody/nothing: no directory, and not to be had"):
        fewnode.GPN.from_pretrained("nobody/nothing")
    fewnode.GPN(way=3, shot=3, episodes=1).fit(planted).save_pretrained(tmp_path / "saved")
    with (tmp_path / "saved" / "model.safetensors").open("ab") as file:
        file.write(b"x")
    with pytest.raises(FewnodeError, match="damaged"):
        fewnode.GPN.from_pretrained(tmp_path / "saved")
