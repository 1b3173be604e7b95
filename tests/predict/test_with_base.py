"""New classes beside base classes, and known shares of classes, from Python."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import fewnode
from fewnode.dataset import ClassSplit, Dataset
from fewnode.errors import FewnodeError
from fewnode.estimator import Estimator, load_model
from fewnode.graph import Graph
from fewnode.predict.with_base import evaluate_with_base
from graphs import planted


@pytest.fixture(scope="module", name="blurred")
def _blurred() -> Dataset:
    """Classes that are hard to tell apart, so that base classes take nodes from new ones."""
    clear, rng = planted(size=60), np.random.default_rng(0)
    n, words = clear.graph.x.shape
    place = (np.repeat(np.arange(n), 12), rng.integers(0, words, 12 * n))
    edges = np.concatenate([clear.graph.edge_index(), rng.integers(0, n, (2, 4 * n))], axis=1)
    x = clear.graph.x + sp.csr_array((np.ones(12 * n, np.float32), place), (n, words))
    return replace(clear, graph=Graph.from_edges(edges, n, x))


@pytest.fixture(scope="module", name="blurred_model")
def _blurred_model(blurred: Dataset) -> Estimator:
    return Estimator("gpn-plus", way=3, shot=1).fit(blurred)


@pytest.fixture(scope="module")
def model(planted: Dataset) -> Estimator:
    return Estimator("gpn-plus", way=3, shot=1).fit(planted)


def new_classes(data: Dataset, shots: int = 1) -> dict[str, list[int]]:
    return {name: np.flatnonzero(data.y == c)[:shots].tolist() for name, c in zip("xy", data.split.test, strict=False)}


# --- base classes ---


def test_the_correction_helps_new_classes_and_the_harmonic_mean(blurred_model: Estimator, blurred: Dataset) -> None:
    found = [evaluate_with_base(blurred_model, blurred, shot=1, tasks=30, corrected=each) for each in (False, True)]
    plain, corrected = ({name: result[name].mean for name in result.per_task} for result in found)
    assert blurred_model.trained_["base_bias"]["1"] > 0
    assert corrected["accuracy_new"] > plain["accuracy_new"]
    assert corrected["accuracy_base"] <= plain["accuracy_base"]
    assert corrected["harmonic_mean"] > plain["harmonic_mean"]


def test_a_result_says_what_was_asked(model: Estimator, planted: Dataset) -> None:
    result = evaluate_with_base(model, planted, way=2, shot=3, tasks=4, seed=1)
    told = result.to_json()
    assert (told["way"], told["shot"], told["query"], told["base"], told["tasks"]) == (2, 3, 5, 10, 4)
    assert told["base_bias"] == model.trained_["base_bias"]["3"]
    new, base, mean = (
        np.array(told["per_task"][f"{n}"][0]) for n in ("accuracy_new", "accuracy_base", "harmonic_mean")
    )
    assert mean == pytest.approx(2 * new * base / (new + base))
    again = evaluate_with_base(model, planted, way=2, shot=3, tasks=4, seed=1)
    assert again.to_json()["per_task"] == told["per_task"]


def test_nodes_are_found_in_new_and_in_base_classes(model: Estimator, planted: Dataset) -> None:
    given = new_classes(planted, 5)
    first, base = planted.split.test[0], planted.split.train[0]
    asked = [*np.flatnonzero(planted.y == first)[5:], *np.flatnonzero(planted.y == base)]
    found = fewnode.recognise(planted, given, asked, model=model, with_base=True, closed_set=True)
    known = [planted.class_names[c] for c in (*planted.split.train, *planted.split.valid)]
    assert found.classes == sorted(["x", "y", *known])
    truth = ["x"] * (len(asked) - 24) + [planted.class_names[base]] * 24
    assert np.mean([a == b for a, b in zip(found.labels, truth, strict=True)]) > 0.8
    assert found.probabilities.sum(axis=1) == pytest.approx(1, abs=1e-4)


def test_the_head_start_is_taken_off(blurred_model: Estimator, blurred: Dataset) -> None:
    """Odds of new classes against base classes grow by the bias, whatever the node."""
    given = new_classes(blurred)
    asked = np.setdiff1d(np.arange(blurred.graph.n), [*given["x"], *given["y"]])
    corrected = fewnode.recognise(blurred, given, asked, model=blurred_model, with_base=True, closed_set=True)
    bias = blurred_model.trained_["base_bias"]
    try:
        blurred_model.trained_["base_bias"] = {}
        with pytest.warns(fewnode.UnusedInput, match="base classes keep their head start"):
            plain = fewnode.recognise(blurred, given, asked, model=blurred_model, with_base=True, closed_set=True)
    finally:
        blurred_model.trained_["base_bias"] = bias
    is_new = np.isin(corrected.classes, ["x", "y"])
    new = [each.probabilities[:, is_new].sum(axis=1) for each in (plain, corrected)]
    clear = np.all([(share > 1e-3) & (share < 1 - 1e-3) for share in new], axis=0)
    assert clear.sum() > 3
    odds = [np.log(share[clear] / (1 - share[clear])) for share in new]
    assert odds[1] - odds[0] == pytest.approx(bias["1"], abs=0.02)


def test_a_node_given_for_a_new_class_does_not_stand_for_its_base_class(model: Estimator, planted: Dataset) -> None:
    stolen = np.flatnonzero(planted.y == planted.split.train[0])
    found = fewnode.recognise(planted, {"x": stolen[:3]}, [0], model=model, with_base=True)
    name = planted.class_names[planted.split.train[0]]
    assert [label for _, label in found.support].count(name) == 21
    assert [label for node, label in found.support if node == planted.node_name(stolen[0])] == ["x"]
    with pytest.warns(fewnode.UnusedInput, match=f"base class '{name}': all its nodes are given for new classes"):
        assert name not in fewnode.recognise(planted, {"x": stolen}, [0], model=model, with_base=True).classes


def test_a_base_class_stands_by_fifty_nodes_at_most() -> None:
    y = np.repeat(range(6), 80)
    data = Dataset.from_scipy(y[:, None] == y, np.eye(6)[y], y, split=ClassSplit((0, 1), (2, 3), (4, 5)))
    model = Estimator("gpn-plus", way=2, shot=1, seed=3).fit(data)
    found = [fewnode.recognise(data, {"new": [400]}, [401, 3], model=model, with_base=True) for _ in range(2)]
    assert len(found[0].support) == 1 + 4 * 50
    assert found[0].support == found[1].support
    assert found[0].labels == ["new", "0"]


def test_a_method_that_learned_no_correction_says_so(planted: Dataset) -> None:
    model = Estimator("sgc", way=3, shot=2, episodes=5).fit(planted)
    with pytest.warns(fewnode.UnusedInput, match="base classes keep their head start"):
        fewnode.recognise(planted, new_classes(planted), [0], model=model, with_base=True)


def test_what_cannot_be_is_refused(model: Estimator, planted: Dataset) -> None:
    name = planted.class_names[planted.split.valid[0]]
    with pytest.raises(FewnodeError, match=f"class '{name}' is a base class of planted already"):
        fewnode.recognise(planted, {name: [0]}, [1], model=model, with_base=True)
    with pytest.raises(FewnodeError, match=r"differ only in case, .*; the first is a base class of planted: give the"):
        fewnode.recognise(planted, {name.upper(): [0]}, [1], model=model, with_base=True)
    bare = replace(planted, split=ClassSplit((), (), planted.split.test))
    with pytest.raises(FewnodeError, match="planted has no base classes to stand beside the new ones"):
        fewnode.recognise(bare, {"x": [0]}, [1], model=model, with_base=True)
    with pytest.raises(FewnodeError, match="planted has no base classes to stand beside the new ones"):
        evaluate_with_base(model, bare)
    with pytest.raises(FewnodeError, match="at least one task is needed, not 0"):
        evaluate_with_base(model, planted, tasks=0)
    y = np.where(np.isin(planted.y, planted.split.test), planted.y, -1)
    for c in planted.split.train:
        y[np.flatnonzero(planted.y == c)[0]] = c
    with pytest.raises(FewnodeError, match="its base classes have one node each"):
        evaluate_with_base(model, replace(planted, y=y), shot=1)


def test_the_correction_is_kept_in_the_model(model: Estimator, planted: Dataset, tmp_path: Path) -> None:
    model.save(tmp_path / "run")
    loaded = load_model(tmp_path / "run")
    assert loaded.trained_["base_bias"] == model.trained_["base_bias"]
    before, after = (evaluate_with_base(each, planted, tasks=3).to_json()["per_task"] for each in (model, loaded))
    assert before == after


# --- known shares ---


@pytest.mark.parametrize("closed_set", [False, True])
def test_classes_get_their_shares(model: Estimator, planted: Dataset, closed_set: bool) -> None:
    given, shares = new_classes(planted, 2), {"x": 0.2, "y": 0.8}
    found = fewnode.recognise(planted, given, model=model, closed_set=closed_set, proportions=shares)
    assert found.probabilities.sum(axis=0) / found.probabilities.sum() == pytest.approx([0.2, 0.8], abs=1e-4)
    plain = fewnode.recognise(planted, given, model=model, closed_set=closed_set)
    assert found.member == pytest.approx(plain.member), "who is a member does not change"
    for name, nodes in given.items():
        assert found.probabilities[nodes, "xy".index(name)].tolist() == [1, 1]


def test_true_shares_help_where_one_class_is_rare(model: Estimator, planted: Dataset) -> None:
    given = new_classes(planted)
    x, y = (np.flatnonzero(planted.y == c) for c in planted.split.test[:2])
    asked, truth = [*x[1:3], *y[1:]], ["x"] * 2 + ["y"] * 23
    right = [
        np.mean(
            np.array(fewnode.recognise(planted, given, asked, model=model, closed_set=True, **more).labels) == truth
        )
        for more in ({}, {"proportions": {"x": 2 / 25, "y": 23 / 25}})
    ]
    assert right[1] >= right[0]


def test_support_nodes_stay_even_where_their_class_has_no_share(model: Estimator, planted: Dataset) -> None:
    given = new_classes(planted)
    found = fewnode.recognise(planted, given, model=model, closed_set=True, proportions={"x": 0, "y": 1.0})
    assert [planted.node(node) for node, label in zip(found.nodes, found.labels, strict=True) if label == "x"] == (
        given["x"]
    )
    alone = fewnode.recognise(planted, given, given["x"], model=model, proportions={"x": 0, "y": 1.0})
    assert alone.labels == ["x"]


def test_a_method_that_cannot_tell_members_takes_shares_too(planted: Dataset) -> None:
    model = Estimator("sgc", way=3, shot=2, episodes=5).fit(planted)
    given, shares = new_classes(planted), {"x": 0.3, "y": 0.7}
    found = fewnode.recognise(planted, given, model=model, proportions=shares)
    assert found.probabilities.mean(axis=0) == pytest.approx([0.3, 0.7], abs=1e-4)


def test_shares_of_base_and_new_classes_together(model: Estimator, planted: Dataset) -> None:
    names = ["x", "y", *(planted.class_names[c] for c in (*planted.split.train, *planted.split.valid))]
    shares = dict.fromkeys(names, 1 / 12)
    found = fewnode.recognise(planted, new_classes(planted), model=model, with_base=True, proportions=shares)
    mass = found.probabilities.sum(axis=0)
    assert mass / mass.sum() == pytest.approx([1 / 12] * 12, abs=0.02)


def test_shares_of_other_classes_are_refused(model: Estimator, planted: Dataset) -> None:
    with pytest.raises(FewnodeError, match="'z' is none of the classes"):
        fewnode.recognise(planted, new_classes(planted), [0], model=model, proportions={"x": 0.5, "z": 0.5})
