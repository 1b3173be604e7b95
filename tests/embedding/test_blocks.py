"""In blocks from disk to disk, every node is classified as in memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fewnode.dataset import Dataset
from fewnode.embedding.workers import Workers
from fewnode.errors import FewnodeError
from fewnode.formats.directory import load_dataset, save_dataset
from fewnode.graph import Graph
from fewnode.model.bulk import Bulk, classify
from fewnode.model.estimator import Estimator
from fewnode.model.model_files import load_model
from fewnode.recognition.answers import NONE
from graphs import planted, predictions_of

pytestmark = pytest.mark.usefixtures("opened_anew")


def dense(data: Dataset) -> Dataset:
    x = data.graph.x
    return replace(data, graph=Graph(data.graph.adj, x.toarray()), feature_names=None)


@pytest.fixture(scope="module", name="network")
def _network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("blocks") / "data"
    save_dataset(dense(planted()), home)
    return home


class Stopped(Exception):
    pass


def stopping(after: int) -> Workers:
    """A process that is killed after so many blocks."""

    def report(what: str, done: int, total: int) -> None:
        if done == after:
            raise Stopped

    return Workers(report=report)


@pytest.fixture(scope="module", name="runs")
def _runs(network: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    found = {}
    for method in ("gpn", "pn"):
        found[method] = tmp_path_factory.mktemp(method) / "run"
        Estimator(method, 3, 3, episodes=10).fit(load_dataset(network)).save(found[method])
    return found


def job(network: Path, run: Path, **more: object) -> Bulk:
    return Bulk(run, network, (1, 2, 3, 4), ("a", "a", "b", "b"), rows=100, **more)  # type: ignore[arg-type]


def numbers(text: str) -> tuple[list[list[str]], np.ndarray]:
    rows = [line.split(",") for line in text.splitlines()]
    return [[*row[:2], *row[6:]] for row in rows], np.array([row[2:6] for row in rows[1:]], float)


@pytest.mark.parametrize("method", ["gpn", "pn"])
def test_every_node_is_classified_as_in_memory(
    network: Path, runs: dict[str, Path], method: str, tmp_path: Path
) -> None:
    out = tmp_path / "predictions.csv"
    answer = classify(job(network, runs[method], explain=True, threshold=0.4), out)
    data = dense(planted())
    everyone = list(range(data.graph.n))
    labels = ["a", "a", "b", "b"]
    plain = predictions_of(load_model(runs[method]), data, [1, 2, 3, 4], labels, everyone, explain=True, threshold=0.4)
    assert 0 < plain.labels.count(NONE) < data.graph.n
    (names, found), (expected, numbers_) = numbers(out.read_text()), numbers(plain.to_csv())
    assert [row[:2] for row in names] == [row[:2] for row in expected]
    assert np.abs(found - numbers_).max() < 1e-5
    assert answer.support_csv() == plain.support_csv()
    assert not (tmp_path / "predictions.csv.blocks").exists()


def test_a_classification_that_was_stopped_goes_on(network: Path, runs: dict[str, Path], tmp_path: Path) -> None:
    out, whole = tmp_path / "out.csv", tmp_path / "whole.csv"
    classify(job(network, runs["gpn"]), whole)
    for after, resume in ((1, False), (2, True)):
        with pytest.raises(Stopped):
            classify(job(network, runs["gpn"]), out, resume, stopping(after))
    with pytest.raises(FewnodeError, match="continue it with `resume`"):
        classify(job(network, runs["gpn"]), out)
    classify(job(network, runs["gpn"]), out, resume=True)
    assert out.read_bytes() == whole.read_bytes()


def test_other_methods_say_that_they_cannot(network: Path, tmp_path: Path) -> None:
    Estimator("sgc", 3, 3).fit(load_dataset(network)).save(tmp_path / "run")
    with pytest.raises(FewnodeError, match="gpn, gpn-naive and pn"):
        classify(job(network, tmp_path / "run"), tmp_path / "out.csv")
