"""What every method must do, present and future: STYLE of the interface, not of the method."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fewnode.dataset import Dataset
from fewnode.episodes import EpisodeSampler, Task
from fewnode.errors import FewnodeError
from fewnode.evaluation import evaluate
from fewnode.method import predict_tasks
from fewnode.methods.table import METHODS, build_method
from fewnode.model.estimator import Estimator
from fewnode.model.model_files import load_model
from leaks import MaySee, may_see

RESEARCH = Path(__file__).parents[1] / "research"
PLUGINS = {
    f"{RESEARCH / name}": MaySee(*labels, "all", "no")
    for name, labels in {
        "label_spreading.py:LabelSpreading": ("no", "no"),
        "correct_and_smooth.py:CorrectAndSmooth": ("no", "no"),
        "linear_gnns.py:LinearGNNs": ("no", "no"),
        "gcn_support.py:GCNOnSupport": ("no", "no"),
        "grace.py:GRACE": ("no", "stop"),
        "naq.py:NaQ": ("no", "stop"),
        "cosmic.py:COSMIC": ("yes", "yes"),
    }.items()
}
"""Methods of files of somebody's own, and what they may see."""
GRACE, NAQ, COSMIC = (str(RESEARCH / name) for name in ("grace.py:GRACE", "naq.py:NaQ", "cosmic.py:COSMIC"))
GCN = str(RESEARCH / "gcn_support.py:GCNOnSupport")
QUICK: dict[str, dict[str, Any]] = {
    "propagation": {},
    "nearest-mean": {},
    "logistic": {},
    **{name: {} for name in PLUGINS},
    GCN: {"epochs": 50},
    GRACE: {"epochs": 20, "hidden": 16, "lr": 0.01},
    NAQ: {"episodes": 20, "hidden": 16, "batch": 4, "lr": 0.01},
    COSMIC: {"episodes": 20, "hidden": 16, "lr": 0.01},
    "gpn-plus": {"rank": 32},
    "deepwalk": {"dimensions": 32, "length": 20},
    "node2vec": {"dimensions": 32, "length": 20},
}
"""Options that make a method quick to fit here; any other method is given fewer episodes."""
NUMBERED = ("deepwalk", "node2vec", GCN)
"""Methods whose vectors belong to the nodes of one network, or that draw dropout by the numbers of nodes."""
NEED_NO_BASE = (
    "nearest-mean",
    "logistic",
    "deepwalk",
    "node2vec",
    "gpn-plus",
    *(name for name in PLUGINS if name != COSMIC),
)
"""Methods that can be fitted where there are no base classes."""


def among(names: Iterable[str]) -> list[Any]:
    """Parameters of a test; files of one's own are tried in `make check`."""
    return [
        pytest.param(name, id=Path(name).name, marks=[pytest.mark.check] if name in PLUGINS else []) for name in names
    ]


EVERY = among([*METHODS, *PLUGINS])

fitted: dict[str, Estimator] = {}


@pytest.fixture(params=EVERY)
def model(request: pytest.FixtureRequest, planted: Dataset) -> Estimator:
    name = request.param
    if name not in fitted:
        fitted[name] = fit(name, planted)
    return fitted[name]


def fit(name: str, data: Dataset) -> Estimator:
    return Estimator(name, way=3, shot=3, seed=1, **QUICK.get(name, {"episodes": 30})).fit(data)


def task(data: Dataset) -> tuple[list[int], list[int], list[int]]:
    """Unequal shots of three test classes, and ten queries."""
    nodes = [np.flatnonzero(data.y == c) for c in data.split.test[:3]]
    support = [*nodes[0][:1], *nodes[1][:4], *nodes[2][:2]]
    query = [int(v) for members in nodes for v in members[10:14]]
    return [int(v) for v in support], [0, 1, 1, 1, 1, 2, 2], query


def test_rows_are_probabilities(model: Estimator, planted: Dataset) -> None:
    p = model.predict_proba(planted.graph, *task(planted))
    assert p.shape == (12, 3)
    assert p.dtype == np.float32
    assert (p >= 0).all()
    assert np.allclose(p.sum(axis=1), 1, atol=1e-5)


def test_order_of_support_is_irrelevant(model: Estimator, planted: Dataset) -> None:
    support, labels, query = task(planted)
    order = np.random.default_rng(0).permutation(len(support))
    shuffled = model.predict_proba(planted.graph, [support[i] for i in order], [labels[i] for i in order], query)
    assert np.allclose(model.predict_proba(planted.graph, support, labels, query), shuffled, atol=1e-4)


def test_renaming_labels_permutes_columns(model: Estimator, planted: Dataset) -> None:
    support, labels, query = task(planted)
    rename = [2, 0, 1]
    renamed = model.predict_proba(planted.graph, support, [rename[c] for c in labels], query)
    assert np.allclose(model.predict_proba(planted.graph, support, labels, query), renamed[:, rename], atol=1e-4)


def test_order_of_queries_is_irrelevant(model: Estimator, planted: Dataset) -> None:
    support, labels, query = task(planted)
    backwards = model.predict_proba(planted.graph, support, labels, query[::-1])[::-1]
    assert np.allclose(model.predict_proba(planted.graph, support, labels, query), backwards, atol=1e-5)


def test_one_shot_and_one_query(model: Estimator, planted: Dataset) -> None:
    support, _, query = task(planted)
    p = model.predict_proba(planted.graph, [support[0], support[1]], [0, 1], query[:1])
    assert p.shape == (1, 2)
    assert np.isfinite(p).all()


class Sealed(Task):
    """A task on which looking for an answer, or for anything else that it does not hold, is caught."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"a method asked the task for {name!r}")


def test_no_answer_is_within_reach(model: Estimator, planted: Dataset) -> None:
    sealed = Sealed(*map(np.array, task(planted)))
    for transductive in {False, hasattr(model.method_, "prepare")}:
        found = predict_tasks(model.method_, planted.graph, [sealed], transductive)[0]
        assert found.shape == (12, 3)
    with pytest.raises(AssertionError, match="query_y"):
        sealed.query_y  # noqa: B018


def test_graph_is_untouched(model: Estimator, planted: Dataset) -> None:
    before = planted.sha256
    model.predict_proba(planted.graph, *task(planted))
    assert replace(planted).sha256 == before


def test_above_chance_on_a_planted_graph(model: Estimator, planted: Dataset) -> None:
    result = evaluate(model, planted, way=5, shot=5, tasks=40)
    assert result.accuracy.mean - result.accuracy.ci95 > 0.3


def test_no_leak_the_same_bits_by_the_same_seed_when_hidden_labels_are_shuffled(
    model: Estimator, planted: Dataset
) -> None:
    """Those of test classes and, where docs/leaks.md says so, those of training and validation classes.

    Nor do the seeds matter that others draw by.
    """
    row = {**may_see(), **PLUGINS}[model.method]
    hidden = ["test", *(part for part, seen in (("train", row.training), ("valid", row.validation)) if seen == "no")]
    y = planted.y.copy()
    for part in hidden:
        own = np.isin(planted.y, planted.split.part(part))
        y[own] = np.random.default_rng(0).permutation(y[own])
    torch.manual_seed(99)
    np.random.seed(99)
    shuffled = fit(model.method, replace(planted, y=y))
    assert np.array_equal(
        model.predict_proba(planted.graph, *task(planted)), shuffled.predict_proba(planted.graph, *task(planted))
    )


def test_no_leak_other_queries_make_no_difference(model: Estimator, planted: Dataset) -> None:
    support, labels, query = task(planted)
    together = model.predict_proba(planted.graph, support, labels, query)
    company = [v for v in range(planted.graph.n) if v not in (*support, *query)][::7]
    for i in (0, 7):
        alone = model.predict_proba(planted.graph, support, labels, query[i : i + 1])
        among = model.predict_proba(planted.graph, support, labels, [*company, query[i]])
        assert np.allclose(together[i], alone[0], atol=1e-5)
        assert np.allclose(together[i], among[-1], atol=1e-5)


def test_renumbering_nodes_permutes_answers(model: Estimator, planted: Dataset) -> None:
    """Inductive methods see no node numbers. The fitted model is asked about the renumbered graph."""
    if model.method in NUMBERED:
        before = model.predict_proba(planted.graph, *task(planted))
        assert np.isfinite(before).all()
        return
    order = np.random.default_rng(3).permutation(planted.graph.n)
    place = np.argsort(order)
    graph = type(planted.graph)(planted.graph.adj[order][:, order], planted.graph.x[order])
    support, labels, query = task(planted)
    moved = model.predict_proba(graph, place[support], labels, place[query])
    assert np.allclose(model.predict_proba(planted.graph, support, labels, query), moved, atol=1e-4)


def test_saved_and_loaded_it_gives_the_same_answers(model: Estimator, planted: Dataset, tmp_path: Path) -> None:
    model.save(tmp_path / "run")
    if model.method in METHODS:
        again = load_model(tmp_path / "run")
        assert again.trained_ == model.trained_
    else:  # it keeps no state, and is fitted again
        again = load_model(tmp_path / "run", method=model.method).fit(planted)
    assert np.array_equal(
        model.predict_proba(planted.graph, *task(planted)), again.predict_proba(planted.graph, *task(planted))
    )
    assert (again.way, again.shot, again.seed) == (3, 3, 1)


@pytest.mark.parametrize("name", EVERY)
def test_without_base_classes_it_answers_or_says_that_it_needs_them(name: str, planted: Dataset) -> None:
    method = build_method(name, 1, QUICK.get(name, {"episodes": 30}))
    none = EpisodeSampler.none()
    if name not in NEED_NO_BASE:
        with pytest.raises(FewnodeError, match="no base classes to learn from"):
            method.fit(planted.graph, none, none)
        return
    method.fit(planted.graph, none, none)
    (p,) = predict_tasks(method, planted.graph, [Task(*map(np.array, task(planted)))])
    assert p.shape == (12, 3)
    assert np.allclose(p.sum(axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("name", among(name for name in NEED_NO_BASE if name != "node2vec"))
def test_one_class_no_query_and_a_node_of_which_nothing_is_known(name: str, planted: Dataset) -> None:
    x = planted.graph.x.toarray()
    x[:5] = 0
    adj = planted.graph.adj.tolil()
    adj[:5], adj[:, :5] = 0, 0
    for attributes in (x, type(planted.graph.x)(x)):
        graph = type(planted.graph)(adj.tocsr(), attributes)
        none = EpisodeSampler.none()
        method = build_method(name, 1, QUICK[name])
        method.fit(graph, none, none)
        support = np.array([0, 1, 40, 50])
        labels = (np.array([0, 0, 1, 2]), np.array([0, 0, 1, 1]), np.zeros(4, int))
        asked = (np.array([2, 3, 60, 0]), np.zeros(0, int), np.array([7, 8]))
        tasks = [Task(support, y, query) for y, query in zip(labels, asked, strict=True)]
        found, nothing, alone = predict_tasks(method, graph, tasks)
        assert np.allclose(found.sum(axis=1), 1, atol=1e-5)
        assert nothing.shape == (0, 2)
        assert alone.tolist() == [[1], [1]]
