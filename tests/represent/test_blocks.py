"""In blocks from disk to disk, the numbers are those of the plain computation in memory."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import astuple, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from fewnode.dataset import ClassSplit, Dataset
from fewnode.engine.fields import ReceptiveFields
from fewnode.errors import FewnodeError
from fewnode.estimator import Estimator, load_model
from fewnode.graph import Graph
from fewnode.predict.predictions import NONE
from fewnode.represent.blocks import Propagation, Stage, here, is_prepared, open_prepared, prepare
from fewnode.scale.bulk import Bulk, classify
from fewnode.storage.io import load_dataset, read_record, save_dataset, write_record
from graphs import planted, predictions_of, random_graph, weighted_graph

pytestmark = pytest.mark.usefixtures("opened_anew")
LAST = 3
DRIFT = 1e-4
"""Twenty steps of 0.005, each off by a thousandth. Adam divides by the size of a gradient: a sum in another order,
1e-7 of the largest gradient, is up to 1e-3 of a small one. The order depends on the processor."""


def dense(data: Dataset) -> Dataset:
    x = data.graph.x
    return replace(data, graph=Graph(data.graph.adj, x.toarray()), feature_names=None)


@pytest.fixture(scope="module", name="network")
def _network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset directory that was prepared in seven blocks of rows and four of columns."""
    home = tmp_path_factory.mktemp("blocks") / "data"
    save_dataset(dense(planted()), home)
    prepare(plan(home))
    return home


def plan(home: Path, rows: int = 53, columns: int = 25) -> Propagation:
    data = load_dataset(home)
    return replace(Propagation.plan(data.graph, rows=rows), columns=columns)


@pytest.mark.parametrize("forge", ["far", "negative", "values", "p", "shape", "type", "starts", "missing", "manifest"])
def test_a_strangers_blocks_are_refused(network: Path, tmp_path: Path, forge: str) -> None:
    """Their checksums are right, and compiled loops would read wherever they point to."""
    shutil.copytree(network, tmp_path / "data")
    folder = tmp_path / "data" / "prepared"
    meta, arrays = read_record(folder, "prepared")
    own = {name: array.copy() for name, array in arrays.items()}
    if forge in ("far", "negative"):
        own["indices"][5] = 1 << 30 if forge == "far" else -7
    elif forge in ("values", "p"):
        own[forge][0] = np.nan
    elif forge == "shape":
        own["p"] = own["p"][:, :-1].copy()
    elif forge == "type":
        own["p"] = own["p"].astype(np.float64)
    elif forge == "starts":
        own["indptr"][1:-1] = own["indptr"][-1]
    elif forge == "missing":
        del own["values"]
    write_record(folder, "prepared", {} if forge == "manifest" else {"data": meta["data"]}, own)
    with pytest.raises(FewnodeError, match="delete it and prepare again"):
        open_prepared(load_dataset(tmp_path / "data").graph)


def assert_prepared(graph: Graph) -> None:
    """P is on disk, with the bits of the plain product."""
    assert torch.equal(open_prepared(graph).p, ReceptiveFields.of(graph).p)


@pytest.mark.parametrize("drawn", [random_graph, weighted_graph])
@pytest.mark.parametrize("seed", range(6))
def test_blocks_are_bit_for_bit_the_plain_product(drawn: Callable[[int], Graph], seed: int, tmp_path: Path) -> None:
    graph = drawn(seed)
    graph = Graph(graph.adj, graph.x if isinstance(graph.x, np.ndarray) else graph.x.toarray())
    save_dataset(Dataset(graph, np.zeros(graph.n, int), ClassSplit((0,), (), ())), tmp_path)
    prepare(plan(tmp_path, rows=1 + seed, columns=1 + seed % 3))
    found, plain = open_prepared(load_dataset(tmp_path).graph), ReceptiveFields.of(graph)
    assert found is not None
    for part in ("start", "stop", "indices", "values"):
        assert np.array_equal(getattr(found.adj, part), getattr(plain.adj, part))
    assert torch.equal(found.p, plain.p)
    assert not list((tmp_path / "prepared").glob("blocks-*"))


def test_the_plan_keeps_the_limit(network: Path) -> None:
    data = load_dataset(network)
    small, large = (Propagation.plan(data.graph, limit) for limit in (1 << 16, 1 << 33))
    assert 4 * small.columns * data.graph.n <= 1 << 15 < 4 * data.graph.n * data.graph.n_features
    assert (large.columns, large.rows) == (data.graph.n_features, data.graph.n)
    assert small.folder != large.folder


def test_training_reads_the_disk_and_learns_the_same(network: Path) -> None:
    data = load_dataset(network)
    one = Estimator("gpn", 3, 3, episodes=20).fit(data)
    other = Estimator("gpn", 3, 3, episodes=20).fit(dense(planted()))
    assert one.method_.engine(data.graph, one.method_.networks_).fields.on_disk
    learned, expected = one.method_.state(), other.method_.state()
    apart = {name: float((tensor - expected[name]).abs().max()) for name, tensor in learned.items()}
    assert max(apart.values()) <= DRIFT, apart
    for reached, point in zip(one.method_.history_.points, other.method_.history_.points, strict=True):
        assert astuple(reached) == pytest.approx(astuple(point), abs=DRIFT)
    for mode, found in one.trained_["temperature"].items():
        assert found == pytest.approx(other.trained_["temperature"][mode], abs=1e-3)


def test_a_task_is_answered_without_all_nodes(network: Path) -> None:
    data = load_dataset(network)
    model = Estimator("gpn", 3, 3, episodes=5).fit(data)
    task = ([1, 2, 3, 4], ["a", "a", "b", "b"], [5, 9, 100])
    found = model.predict_proba(data.graph, *task)
    assert not model.has_embedding(data.graph)
    plain = dense(planted()).graph
    assert np.allclose(found, model.predict_proba(plain, *task), atol=1e-5)
    assert np.array_equal(model.explain(data.graph, *task).nearest, model.explain(plain, *task).nearest)


class Stopped(Exception):
    pass


def stopping(after: int) -> Callable[[Stage, Sequence[tuple[int, ...]], Callable[[], None]], None]:
    """A runner that is killed after so many blocks."""

    def run(stage: Stage, keys: Sequence[tuple[int, ...]], done: Callable[[], None]) -> None:
        here(stage, keys[:after], done)
        raise Stopped

    return run


def test_what_was_stopped_goes_on_block_by_block(tmp_path: Path) -> None:
    save_dataset(dense(planted()), tmp_path)
    with pytest.raises(Stopped):
        prepare(plan(tmp_path), runner=stopping(5))
    assert not is_prepared(load_dataset(tmp_path).graph)
    with pytest.raises(FewnodeError, match="unfinished run; continue it with --resume"):
        prepare(plan(tmp_path))
    seen: list[tuple[int, int]] = []
    prepare(plan(tmp_path), resume=True, report=lambda done, total: seen.append((done, total)))
    assert seen[0] == (5, 28)
    assert seen[-1] == (28, 28)
    assert len(seen) == 24
    assert torch.equal(
        open_prepared(load_dataset(tmp_path).graph).p, ReceptiveFields.of(load_dataset(tmp_path).graph).p
    )


def test_blocks_of_another_size_or_network_are_not_mixed_in(tmp_path: Path) -> None:
    save_dataset(dense(planted()), tmp_path)
    with pytest.raises(Stopped):
        prepare(plan(tmp_path), runner=stopping(5))
    prepare(plan(tmp_path, rows=100), resume=True)
    assert torch.equal(
        open_prepared(load_dataset(tmp_path).graph).p, ReceptiveFields.of(load_dataset(tmp_path).graph).p
    )


def test_a_disk_that_is_full_in_the_middle_of_a_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_dataset(dense(planted()), tmp_path)
    real, left = os.fsync, [9]

    def full(descriptor: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        prepare(plan(tmp_path))
    monkeypatch.setattr(os, "fsync", real)
    made = list((tmp_path / "prepared").rglob("*.safetensors"))
    assert 0 < len(made) < 28
    assert not list((tmp_path / "prepared").rglob("*.tmp"))
    prepare(plan(tmp_path), resume=True)
    assert torch.equal(
        open_prepared(load_dataset(tmp_path).graph).p, ReceptiveFields.of(load_dataset(tmp_path).graph).p
    )


def test_sparse_attributes_and_no_directory_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FewnodeError, match="dataset directory"):
        Propagation.plan(dense(planted()).graph)
    save_dataset(planted(), tmp_path)
    with pytest.raises(FewnodeError, match="sparse attributes"):
        Propagation.plan(load_dataset(tmp_path).graph)


def test_what_was_prepared_of_another_network_is_refused(network: Path, tmp_path: Path) -> None:
    save_dataset(dense(planted(seed=1)), tmp_path)  # of the same shape
    (tmp_path / "prepared").symlink_to(network / "prepared")
    with pytest.raises(FewnodeError, match="another network"):
        open_prepared(load_dataset(tmp_path).graph)


# --- every node ---------------------------------------------------------------------------------------------------


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
    for after, resume in ((2, False), (3, True), (3, True), (2, True)):
        with pytest.raises(Stopped):
            classify(job(network, runs["gpn"]), out, resume, stopping(after))
    with pytest.raises(FewnodeError, match="continue it with --resume"):
        classify(job(network, runs["gpn"]), out)
    classify(job(network, runs["gpn"]), out, resume=True)
    assert out.read_bytes() == whole.read_bytes()


def test_other_methods_say_that_they_cannot(network: Path, tmp_path: Path) -> None:
    Estimator("propagation", 3, 3).fit(load_dataset(network)).save(tmp_path / "run")
    with pytest.raises(FewnodeError, match="gpn, gpn-naive and pn"):
        classify(job(network, tmp_path / "run"), tmp_path / "out.csv")
