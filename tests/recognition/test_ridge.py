"""Leave-one-out by its formula against leaving each node out; what it chooses where only one side tells."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from fewnode.recognition.ridge import SHARES, chosen_factors, class_weights, left_out, ridge_prototypes, share_factors


@pytest.mark.parametrize("shots", [(3, 3, 3), (1, 2, 6), (8, 1)])
@pytest.mark.parametrize("width", [4, 30])
def test_left_out_is_refitting_without_each_node(rng: np.random.Generator, shots: tuple[int, ...], width: int) -> None:
    y = torch.repeat_interleave(torch.arange(len(shots)), torch.tensor(shots))
    z = F.normalize(torch.from_numpy(rng.normal(size=(len(y), width))).float())
    label = F.one_hot(y, len(shots)).float()
    weight = class_weights(label)
    found = left_out(z, label, weight)
    for i in range(len(y)):
        rest = torch.arange(len(y)) != i
        assert torch.allclose(found[i], z[i] @ ridge_prototypes(z[rest], label[rest], weight[rest]), atol=1e-4), i


def test_left_out_is_not_what_the_node_itself_says(rng: np.random.Generator) -> None:
    z = F.normalize(torch.from_numpy(rng.normal(size=(6, 50))).float())
    label = F.one_hot(torch.arange(6) % 2, 2).float()
    own = z @ ridge_prototypes(z, label, torch.ones(6))
    assert (own.argmax(dim=1) == label.argmax(dim=1)).all(), "in so many directions every label can be learned by heart"
    assert not torch.allclose(left_out(z, label, torch.ones(6)), own, atol=0.1)


def rows(rng: np.random.Generator, tells: str, shots: int, ways: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    """Six columns of attributes, of which z has 70 %, and six of structure; one of the two tells classes apart."""
    y = torch.arange(ways).repeat_interleave(shots)
    sides = []
    for side in ("attributes", "structure"):
        noise = torch.from_numpy(rng.normal(size=(len(y), 6))).float()
        sides.append(F.normalize(torch.eye(6)[y] + (0.3 if side == tells else 100) * noise))
    return torch.cat([0.7**0.5 * sides[0], 0.3**0.5 * sides[1]], dim=1), F.one_hot(y, ways).float()


def share_of(factors: torch.Tensor, expected: float = 0.3) -> float:
    """The share of the structure that these factors give it."""
    first, second = float(factors[0]) ** 2 * (1 - expected), float(factors[-1]) ** 2 * expected
    return second / (first + second)


@pytest.mark.parametrize(
    ("tells", "shots", "low", "high"),
    [("structure", 3, 0.5, 1.0), ("structure", 5, 0.5, 1.0), ("attributes", 3, 0.0, 0.15), ("attributes", 20, 0, 0)],
)
def test_leave_one_out_finds_the_side_that_tells(
    rng: np.random.Generator, tells: str, shots: int, low: float, high: float
) -> None:
    z, label = rows(rng, tells, shots)
    factors = chosen_factors(z, label, expected=0.3, own=6)
    assert low <= share_of(factors) <= high
    assert torch.equal(factors[:6], factors[:1].repeat(6))
    assert torch.equal(factors[6:], factors[6:7].repeat(6))


@pytest.mark.parametrize("share", SHARES)
def test_the_share_of_the_structure_is_as_asked_for(rng: np.random.Generator, share: float) -> None:
    sides = [F.normalize(torch.from_numpy(rng.normal(size=(9, 4))).float()) for _ in range(2)]
    z = torch.cat([0.8**0.5 * sides[0], 0.2**0.5 * sides[1]], dim=1) * share_factors(share, 0.2, 8, 4)
    assert torch.allclose(z[:, 4:].square().sum(dim=1), torch.full((9,), share), atol=1e-5)
    assert torch.allclose(z.norm(dim=1), torch.ones(9), atol=1e-5)


def test_with_one_label_a_class_there_is_nothing_to_choose_by(rng: np.random.Generator) -> None:
    z, label = rows(rng, "structure", shots=1)
    assert torch.equal(chosen_factors(z, label, 0.3, 6), torch.ones(12))


@pytest.mark.parametrize("expected", [0.0, 1.0])
def test_with_one_side_there_is_nothing_to_choose(rng: np.random.Generator, expected: float) -> None:
    z, label = rows(rng, "structure", shots=5)
    assert torch.equal(chosen_factors(z, label, expected, 6 if expected == 0 else 0), torch.ones(12))


def test_nodes_alone_in_their_class_do_not_judge(rng: np.random.Generator) -> None:
    """Two classes of five, and one node of a third: whatever it is like, the choice is that of the others."""
    z, label = rows(rng, "structure", shots=5, ways=2)
    label = F.pad(label, (0, 1))
    lone = torch.tensor([[0.0, 0, 1]])
    found = []
    for side in (0, 1):
        node = torch.zeros(1, 12)
        node[0, 5 + 6 * side] = 1.0
        found.append(share_of(chosen_factors(torch.cat([z, node]), torch.cat([label, lone]), 0.3, 6)))
    assert found[0] == found[1] >= 0.5


@pytest.mark.parametrize("rows", [4, 40], ids=["fewer rows than columns", "more"])
def test_what_is_no_number_gives_no_prototype_that_looks_like_one(rows: int) -> None:
    z, label = torch.randn(2, rows, 8), torch.eye(2).repeat(rows // 2, 1)
    z[1, 2, 3] = torch.nan
    found = ridge_prototypes(z, label, class_weights(label))
    assert found[0].isfinite().all()
    assert not found[1].isfinite().any()
