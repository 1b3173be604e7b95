"""GPN+ on disk: with every kind of block it comes back as it was, and forged tensors are refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from fewnode.dataset import ClassSplit, Dataset
from fewnode.errors import FewnodeError
from fewnode.formats.directory import read_record, write_record
from fewnode.graph import Block, Graph, Relation
from fewnode.methods.plus import GPNPlus
from fewnode.model.estimator import Estimator
from fewnode.model.model_files import load_model

Array = NDArray[Any]
State = dict[str, Array]


@pytest.fixture(name="mixed", scope="module")
def _mixed(planted: Dataset) -> Dataset:
    """Words, a vector, numbers, and a column of which nothing is said."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(planted.graph.n, 10)).astype(np.float32)
    noise[:, :6] += rng.normal(size=(len(planted.class_names), 6))[planted.y]
    words = planted.graph.n_features
    x = sp.hstack([planted.graph.x, sp.csr_array(noise)], format="csr")
    kinds = (Block("words", 0, words), Block("vector", words, words + 6), Block("numbers", words + 6, words + 9))
    return replace(planted, graph=Graph(planted.graph.adj, x, blocks=kinds))


@pytest.fixture(name="model", scope="module", params=["base classes", "none"])
def _model(request: pytest.FixtureRequest, mixed: Dataset) -> Estimator:
    split = mixed.split if request.param == "base classes" else ClassSplit((), (), ())
    return Estimator("gpn-plus", way=3, shot=3, rank=16).fit(replace(mixed, split=split))


def changed(name: str, change: Callable[[Array], Array]) -> Callable[[State], State]:
    return lambda state: {**state, name: change(state[name].copy())}


def put(name: str, *place: int, value: float) -> Callable[[State], State]:
    def change(tensor: Array) -> Array:
        tensor[place] = value
        return tensor

    return changed(name, change)


FORGED: dict[str, Callable[[State], State]] = {
    "a tensor too many": lambda state: {**state, "extra": np.zeros(1, np.float32)},
    "no modes": lambda state: {name: t for name, t in state.items() if name != "modes"},
    "modes in a square": changed("modes", lambda t: t.reshape(1, -1)),
    "a view of no source": put("views", 0, 0, value=9),
    "a source below the structure": put("views", 0, 0, value=-2),
    "a diffusion that is none": put("views", 0, 1, value=99),
    "a diffusion below zero": put("views", 0, 1, value=-1),
    "a rank that is none": put("views", 0, 2, value=99),
    "a view twice": lambda state: {**state, "views": state["views"][[0, *range(len(state["views"]) - 1)]]},
    "no view": lambda state: {**state, "views": state["views"][:0], "tau": state["tau"][:0]},
    "views of two numbers": changed("views", lambda t: t[:, :2]),
    "a weight too few": changed("tau", lambda t: t[:-1]),
    "a weight below zero": put("tau", 0, value=-1),
    "a source that ends before it begins": put("source.0.columns", 2, value=0),
    "a source beyond the attributes": put("source.3.columns", 2, value=10_000),
    "sources that overlap": put("source.1.columns", 1, value=0),
    "a kind that is none": put("source.0.columns", 0, value=7),
    "a kind below zero": put("source.0.columns", 0, value=-1),
    "a scaling that is none": put("source.0.columns", 3, value=7),
    "numbers that are no integers": changed("source.0.columns", lambda t: t.astype(np.float64)),
    "directions too short": changed("source.0.directions", lambda t: t[:-1]),
    "directions too narrow": changed("source.1.directions", lambda t: t[:, :-1]),
    "a mean too long": changed("source.0.mean", lambda t: np.concatenate([t, t])),
    "an idf too short": changed("source.0.idf", lambda t: t[:-1]),
    "a source without a mean": lambda state: {name: t for name, t in state.items() if name != "source.0.mean"},
    "a fusion too narrow": changed("fusion.mean", lambda t: t[:-1]),
    "a fusion of one number": changed("fusion.projection", lambda t: t[0, 0]),
    "no fusion": lambda state: {name: t for name, t in state.items() if not name.startswith("fusion.")},
}
FORGED |= {
    f"a projection without {part}": lambda state, part=part: {
        name: t for name, t in state.items() if not (name.startswith("projection.") and name.endswith(part))
    }
    for part in ("mean", "axes", "variance")
}
FORGED["a projection too wide"] = lambda state: {
    name: np.concatenate([t, t], axis=1) if name.endswith(".axes") else t for name, t in state.items()
}


@pytest.mark.parametrize("forged", FORGED)
def test_forged_tensors_are_refused_in_a_line(model: Estimator, mixed: Dataset, tmp_path: Path, forged: str) -> None:
    """Through the door that a stranger's run comes by, with right checksums."""
    model.save(tmp_path / "run")
    meta, _ = read_record(tmp_path / "run", "model")
    state = {name: np.ascontiguousarray(t) for name, t in FORGED[forged](model.method_.state()).items()}
    write_record(tmp_path / "forged", "model", {k: v for k, v in meta.items() if k != "sha256"}, state)
    with pytest.raises(FewnodeError, match="not a complete model") as caught:
        load_model(tmp_path / "forged").predict_proba(mixed.graph, [0, 5], ["a", "b"], [1])
    assert "\n" not in str(caught.value)


FORGED_RELATIONS: dict[str, Callable[[State], State]] = {
    "odds out of range": put("relations.odds", 0, value=1e9),
    "odds that are no number": put("relations.odds", 0, value=float("nan")),
    "a relation that is none": put("relations.chosen", 1, value=9),
    "a relation twice": lambda state: {**state, "relations.chosen": state["relations.chosen"][[0, 1, 1]]},
    "a relation too few": changed("relations.chosen", lambda t: t[:-1]),
    "a mode that is none": put("relations.chosen", 0, value=2),
}


@pytest.fixture(name="of_kinds", scope="module")
def _of_kinds(planted: Dataset) -> Estimator:
    some = Graph.from_edges(planted.graph.edge_index()[:, ::7], planted.graph.n).adj
    graph = Graph.from_relations([Relation("some", some), Relation("all", planted.graph.adj)], planted.graph.x)
    return Estimator("gpn-plus", way=5, shot=5, query=5, rank=16).fit(replace(planted, graph=graph))


def test_what_was_learned_of_relations_comes_back(of_kinds: Estimator, planted: Dataset) -> None:
    again = GPNPlus(rank=16).restore(planted.graph.n_features, of_kinds.method_.state())
    assert again.mixture_.relations == of_kinds.method_.mixture_.relations
    assert len(again.mixture_.relations.odds) == 2


@pytest.mark.parametrize("forged", FORGED_RELATIONS)
def test_forged_relations_are_refused(of_kinds: Estimator, planted: Dataset, forged: str) -> None:
    with pytest.raises(ValueError, match=r"relations|numbers|shape|range|expected"):
        GPNPlus(rank=16).restore(planted.graph.n_features, FORGED_RELATIONS[forged](of_kinds.method_.state()))
