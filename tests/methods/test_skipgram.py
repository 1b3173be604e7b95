"""Skip-gram against a slow one: updates, negatives, pairs."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from fewnode.methods import skipgram
from fewnode.methods.skipgram import Noise, deal, pair_trainer, skip_gram


def splitmix(counter: int) -> int:
    mask = 2**64 - 1
    bits = (counter ^ (counter >> 30)) * 0xBF58476D1CE4E5B9 & mask
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB & mask
    return bits ^ (bits >> 31)


@pytest.mark.parametrize("negatives", [1, 2, 3, 6])
def test_updates_are_those_of_a_slow_skip_gram(rng: np.random.Generator, negatives: int) -> None:
    n, lr, counter = 7, 0.3, 12345  # few nodes, hence every way in which targets can coincide
    z, out = (rng.normal(size=(n, 20)).astype(np.float32) for _ in range(2))
    centre, context = (rng.integers(0, n, 40).astype(np.int32) for _ in range(2))
    noise = Noise(np.zeros(n, np.uint8), rng.random(n), 1)
    nodes, keep, alias = noise.table(0)
    slow_z, slow_out = z.astype(float), out.astype(float)
    train_pairs = pair_trainer(20)
    train_pairs(z, out, centre, context, nodes, keep, alias, negatives, np.float32(lr), np.uint64(counter))
    for u, v in zip(centre, context, strict=True):
        targets = [(v, 1.0)]
        for _ in range(negatives):
            counter = (counter + 0x9E3779B97F4A7C15) % 2**64
            bits = splitmix(counter)
            place = (bits >> 32) * n >> 32
            w = nodes[place] if (bits & 0xFFFFFF) / 2**24 < keep[place] else alias[place]
            targets += [(w, 0.0)] if w != v else []
        before = slow_z[u].copy()
        steps = [lr * (label - 1 / (1 + np.exp(-before @ slow_out[w]))) for w, label in targets]
        for step, (w, _) in zip(steps, targets, strict=True):
            slow_z[u] += step * slow_out[w]
            slow_out[w] += step * before
    assert np.allclose(z, slow_z, atol=1e-4)
    assert np.allclose(out, slow_out, atol=1e-4)


def test_negatives_of_a_part_are_in_proportion_to_their_weight(rng: np.random.Generator) -> None:
    part, weight = rng.integers(0, 3, 50).astype(np.uint8), rng.random(50) ** 3
    noise = Noise(part, weight, 4)  # nothing is in the last part
    for i in range(4):
        nodes, keep, alias = noise.table(i)
        chance = np.zeros(50)
        np.add.at(chance, nodes, keep / max(nodes.size, 1))
        np.add.at(chance, alias, (1 - keep) / max(nodes.size, 1))
        assert np.allclose(chance * weight[part == i].sum(), np.where(part == i, weight, 0), atol=1e-5)


def test_weights_of_negatives_are_frequencies_to_the_power_of_three_quarters(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = []
    monkeypatch.setattr(
        skipgram, "Noise", lambda part, weight, parts: weights.append(weight) or Noise(part, weight, parts)
    )
    skip_gram(np.array([[0, 1, 0, 1], [0, 2, -1, -1]], np.int32), 4, dimensions=2)
    assert np.allclose(weights[0], np.array([3, 2, 1, 0]) ** 0.75)


def test_every_pair_within_reach_is_dealt_once_and_to_its_block(rng: np.random.Generator) -> None:
    walks = rng.integers(0, 30, (40, 9)).astype(np.int32)
    walks[::3, 5:] = -1
    reach = rng.integers(1, 4, walks.shape).astype(np.int32)
    part = rng.integers(0, 4, 30).astype(np.uint8)
    with ThreadPoolExecutor(2) as pool:
        grid = deal(walks, reach, part, 4, pool)
    slow = [
        (u, v)
        for row, far in zip(walks.tolist(), reach.tolist(), strict=True)
        for i, u in enumerate(row)
        for j, v in enumerate(row)
        if i != j and abs(i - j) <= far[i] and u >= 0 and v >= 0
    ]
    assert Counter(zip(grid.centre.tolist(), grid.context.tolist(), strict=True)) == Counter(slow)
    block = part[grid.centre] * 4 + part[grid.context]
    assert np.array_equal(block, np.repeat(np.arange(16), np.diff(grid.edges)))
