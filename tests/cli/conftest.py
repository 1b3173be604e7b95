"""The command line, called in this process: the same entry point, without the seconds that importing takes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fewnode.cli import main
from fewnode.dataset import Dataset
from fewnode.io import save_dataset


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def fewnode(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    def call(*arguments: object) -> Outcome:
        monkeypatch.setattr("sys.argv", ["fewnode", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        captured = capsys.readouterr()
        return Outcome(int(end.value.code or 0), captured.out, captured.err)

    return call


@pytest.fixture(scope="session")
def dataset_dir(planted: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("data") / "planted"
    save_dataset(planted, directory)
    return directory


@pytest.fixture(scope="session")
def run_dir(dataset_dir: Path, planted: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from fewnode.estimator import Estimator

    directory = tmp_path_factory.mktemp("runs") / "gpn"
    model = Estimator("gpn", way=3, shot=3, episodes=30).fit(planted)
    model.trained_["data"]["path"] = str(dataset_dir)
    model.save(directory)
    return directory
