"""What to label next: coverage by hand, and better than chance."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from fewnode.dataset import ClassSplit, Dataset
from fewnode.errors import FewnodeError
from fewnode.estimator import Estimator
from fewnode.predict import labelling
from fewnode.predict.labelling import Suggestion, cover, draw, likeliest, reach, suggest, unlabelled


def test_the_centre_of_the_uncovered_group_comes_first() -> None:
    """Two groups in one class; the labelled node is in the first, so the middle of the second is worth most."""
    angle = torch.tensor([0.0, 0.1, -0.1, 1.4, 1.5, 1.6])
    z = torch.stack([angle.cos(), angle.sin()], dim=1)
    picked, gains = cover(z, z[:1], torch.full((6,), 1 / 6), torch.ones(6), 2)
    assert int(picked[0]) == 4
    assert gains[0] > 5 * gains[1]
    assert len(set(picked.tolist())) == 2
    doubtful = torch.tensor([1, 1, 1, 1, 0.5, 1])
    assert int(cover(z, z[:1], torch.full((6,), 1 / 6), doubtful, 1)[0]) in (3, 5)
    assert sorted(cover(z, z[:1], torch.full((6,), 1 / 6), torch.zeros(6), 6)[0].tolist()) == list(range(6))


def test_the_more_was_rejected_the_more_a_node_must_look_like_a_member(
    model: Estimator, planted: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[torch.Tensor] = []

    def watched(*given: Any) -> tuple[torch.Tensor, list[float]]:
        seen.append(given[3])
        return cover(*given)

    monkeypatch.setattr(labelling, "cover", watched)
    support = [int(np.flatnonzero(planted.y == c)[0]) for c in planted.split.test[:2]]
    strangers = np.flatnonzero(planted.y == planted.split.test[2]).tolist()
    for rejected, power in (([], 0.0), (strangers[:2], 0.5), (strangers[:6], 0.75)):
        suggest(model, planted, support, ["a", "b"], 1, strangers[6:], rejected)
        given, label = [*support, *rejected], list(range(2 + len(rejected)))
        member = model.predict_proba(planted.graph, given, label, strangers[6:])[:, :2].sum(axis=1)
        member *= model.familiar(planted.graph, given, label, strangers[6:])
        assert np.allclose(seen[-1], member**power, rtol=1e-4)
        assert member.mean() < 0.7


def test_of_too_many_nodes_the_likely_are_drawn() -> None:
    weight = torch.cat([torch.full((50,), 0.02), torch.zeros(50)])
    kept, counted = draw(weight, 20)
    assert kept.max() < 50
    assert len(set(kept.tolist())) == 20
    assert torch.allclose(counted, torch.full((20,), 0.05))
    few, counted = draw(weight, 200)
    assert few.tolist() == list(range(50))
    assert torch.equal(counted, weight[:50])
    assert draw(torch.zeros(3), 20)[0].tolist() == [0, 1, 2]


def test_a_class_has_its_likeliest_nodes_only() -> None:
    share = torch.tensor([[0.9, 0.1], [0.2, 0.3], [0.5, 0.4]])
    assert torch.equal(likeliest(share, 3), share)
    assert likeliest(share, 2).tolist() == [[pytest.approx(0.9), 0], [0, pytest.approx(0.3)], [0.5, pytest.approx(0.4)]]


def test_one_looks_as_far_as_known_classes_are_scattered(planted: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    known = planted.split.train + planted.split.valid
    size = int(np.median([(planted.y == c).sum() for c in known]))
    together = torch.eye(int(planted.y.max()) + 1)[torch.from_numpy(planted.y.copy())]
    assert reach(together, planted, 7) == 3 * size
    scattered = torch.nn.functional.normalize(
        torch.randn(planted.graph.n, 8, generator=torch.Generator().manual_seed(0))
    )
    far = reach(scattered, planted, 7)
    assert far == pytest.approx(planted.graph.n / 2, rel=0.2)
    monkeypatch.setattr(labelling, "BLOCK", 50)
    assert reach(scattered, planted, 7) == pytest.approx(far, abs=1)  # the last bits may differ
    assert reach(together, replace(planted, y=np.full_like(planted.y, -1)), 7.2) == 7, "nothing else is known"


@pytest.mark.parametrize("dense", [False, True])
def test_nodes_of_a_kind_that_has_no_classes_are_not_asked_about(planted: Dataset, dense: bool) -> None:
    """Nodes without attributes, unless a labelled node is one of them."""
    bare = planted.split.test[0]
    has = (planted.y != bare)[:, None]
    x = planted.graph.x.toarray() * has if dense else sp.csr_array(planted.graph.x.multiply(has))
    if not dense:
        x.eliminate_zeros()
    data = replace(planted, graph=replace(planted.graph, x=x))
    other, one = (int(np.flatnonzero(planted.y == c)[0]) for c in (planted.split.test[1], bare))
    unseen = np.isin(planted.y, planted.split.train + planted.split.valid, invert=True)
    assert unlabelled(data, [other]) == np.flatnonzero(unseen & has[:, 0]).tolist()
    assert unlabelled(data, [other, one]) == np.flatnonzero(unseen).tolist()
    nothing = replace(planted, graph=replace(planted.graph, x=np.zeros((planted.graph.n, 0), np.float32)))
    assert unlabelled(nothing, [other]) == np.flatnonzero(unseen).tolist()


def test_strangers_beyond_the_size_of_a_class_are_not_asked_about(
    model: Estimator, planted: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def watched(*given: Any) -> tuple[torch.Tensor, list[float]]:
        asked.append(given[0].shape[0])
        return cover(*given)

    monkeypatch.setattr(labelling, "cover", watched)
    monkeypatch.setattr(labelling, "reach", lambda *_: 30)
    own = planted.split.test[:2]
    support = [int(np.flatnonzero(planted.y == c)[0]) for c in own]
    found = suggest(model, planted, support, ["a", "b"], 10, range(planted.graph.n))
    assert asked == [60]
    assert np.isin(planted.y[[s.node for s in found]], own).mean() > 0.4  # a sixth of all nodes are
    suggest(model, planted, support, ["a", "b"], 50, range(planted.graph.n))
    assert 50 <= asked[1] <= 100  # as many as are wanted, however small classes are


@pytest.fixture(name="model")
def _model(fitted_plus: Estimator) -> Estimator:
    return fitted_plus


def test_suggestions_are_mostly_of_the_classes(model: Estimator, planted: Dataset) -> None:
    """Of any three test classes out of five, from any two first nodes: chance would be 60 %."""
    inside = []
    for own, k in itertools.product(itertools.combinations(planted.split.test, 3), (0, 5)):
        first = [int(np.flatnonzero(planted.y == c)[k]) for c in own]
        found = suggest(model, planted, first, list("abc"), 12)
        inside.append(np.isin(planted.y[[s.node for s in found]], own).mean())
        chance = np.isin(planted.y[unlabelled(planted, first)], own).mean()
    assert chance == pytest.approx(0.6)
    assert np.mean(inside) > chance + 0.2


def test_without_base_classes_suggestions_are_mostly_of_the_classes(planted: Dataset) -> None:
    """Two classes of fifteen: chance would be 13 %."""
    data = replace(planted, split=ClassSplit((), (), ()))
    model = Estimator("gpn-plus", rank=32).fit(data)
    inside = []
    for own in itertools.combinations(range(0, 15, 3), 2):
        first = [int(node) for c in own for node in np.flatnonzero(planted.y == c)[:2]]
        found = suggest(model, data, first, list("aabb"), 8)
        inside.append(np.isin(planted.y[[s.node for s in found]], own).mean())
    assert np.mean(inside) > 0.5


def test_suggestions_are_new_and_distinct(model: Estimator, planted: Dataset) -> None:
    first = [int(np.flatnonzero(planted.y == c)[0]) for c in planted.split.test[:3]]
    found = suggest(model, planted, first, list("abc"), 12)
    nodes = [s.node for s in found]
    assert len(set(nodes) - set(first)) == 12
    assert {s.likely for s in found} == set("abc")
    gains = [s.covers for s in found]
    assert gains == sorted(gains, reverse=True), "each adds less than the one before"
    assert suggest(model, planted, first, list("abc"), 12) == found


def test_a_choice_among_given_nodes(model: Estimator, planted: Dataset) -> None:
    assert {s.node for s in suggest(model, planted, [0, 1], ["a", "b"], 5, among=[0, 1, 7, 8])} == {7, 8}
    with pytest.raises(FewnodeError, match="no node left"):
        suggest(model, planted, [0, 1], ["a", "b"], 5, among=[0, 1])


def test_a_method_without_embedding_is_refused(planted: Dataset) -> None:
    model = Estimator("deepwalk", 3, 3, dimensions=8, walks=1, length=5).fit(planted)
    with pytest.raises(FewnodeError, match="gpn-plus"):
        suggest(model, planted, [0, 1], ["a", "b"])


def test_what_training_saw_is_not_asked_about(planted: Dataset) -> None:
    """Its class is known. Unless a support node is among it: then the wanted classes are others than the dataset's."""
    known, new = (int(np.flatnonzero(planted.y == part[0])[0]) for part in (planted.split.train, planted.split.test))
    assert set(planted.y[unlabelled(planted, [new])].tolist()) == set(planted.split.test)
    assert unlabelled(planted, [new, known]) == list(range(planted.graph.n))


def test_what_is_like_rejected_nodes_is_worth_less(model: Estimator, planted: Dataset) -> None:
    """A node of a class that nobody wants: once two of its like are rejected, it seems less wanted and covers less."""
    wanted, other = planted.split.test[:2], np.flatnonzero(planted.y == planted.split.test[2]).tolist()
    first = [int(np.flatnonzero(planted.y == c)[0]) for c in wanted]

    def asked(*told: int) -> Suggestion:
        return suggest(model, planted, first, ["a", "b"], 1, [*first, *other[:3]], told)[0]

    assert {asked().node} < set(other[:3])
    told = asked(*other[:2])
    assert told.node == other[2]
    assert told.covers < asked().covers / 2
    assert told.covers < asked().covers / 2
    assert asked(*other[:2], first[0]) == told, "what is labelled since is not rejected"
    with pytest.raises(FewnodeError, match="no node left"):
        asked(*other)
