"""The command line, called in this process: the same entry point, without the seconds that importing takes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fewnode.cli import main
from fewnode.dataset import Dataset
from fewnode.experiment.run import open_dataset
from fewnode.formats.directory import save_dataset
from fewnode.formats.sources import BUILT_IN, load_debian
from fewnode.graph import Graph


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
def part_of_debian() -> Dataset:
    """Twenty-four packages of each section of the embedded network, and words that three of them have."""
    data = load_debian()
    kept = np.sort(np.concatenate([np.flatnonzero(data.y == c)[:24] for c in range(len(data.class_names))]))
    x = data.graph.x[kept]
    said = np.flatnonzero(np.bincount(x.indices, minlength=x.shape[1]) > 2)
    graph = Graph(data.graph.adj[kept][:, kept], x[:, said])
    names, words = (tuple(known[i] for i in of) for known, of in ((data.node_names, kept), (data.feature_names, said)))
    return replace(data, graph=graph, y=data.y[kept], node_names=names, feature_names=words)


@pytest.fixture
def small_debian(part_of_debian: Dataset, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """In place of the embedded network, a part of it: seconds instead of a minute."""
    monkeypatch.setitem(BUILT_IN, "debian", lambda: part_of_debian)
    open_dataset.cache_clear()
    yield
    open_dataset.cache_clear()


@pytest.fixture(scope="session")
def dataset_dir(planted: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("data") / "planted"
    save_dataset(planted, directory)
    return directory


@pytest.fixture(scope="session")
def run_dir(dataset_dir: Path, planted: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from fewnode.model.estimator import Estimator

    directory = tmp_path_factory.mktemp("runs") / "gpn"
    model = Estimator("gpn", way=3, shot=3, episodes=30).fit(planted)
    model.trained_["data"]["path"] = str(dataset_dir)
    model.save(directory)
    return directory
