"""Skip-gram against a slow one: updates, negatives, pairs."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from fewnode.methods.walks import GROUP, contexts, noise_table, train_pairs


def splitmix(counter: int) -> int:
    mask = 2**64 - 1
    bits = (counter ^ (counter >> 30)) * 0xBF58476D1CE4E5B9 & mask
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB & mask
    return bits ^ (bits >> 31)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize(("negatives", "shared"), [(1, 1), (2, 1), (1, 5), (3, 5), (6, 4)])
def test_steps_are_those_of_a_slow_skip_gram(rng: np.random.Generator, negatives: int, shared: int) -> None:
    n, width, lr, counter = 7, 64, 0.05, 12345  # few nodes, hence every way in which targets can coincide
    z, out = (rng.normal(size=(n, width)).astype(np.float32) / 4 for _ in range(2))
    start = np.array([0, 3, 3, 10, 18, 20, 60])  # none, less and more than a group
    stop, context = np.append(start[1:], 130), rng.integers(0, n, 130).astype(np.int32)
    ends = np.append(start, 130)
    noise = noise_table(rng.random(n), 0.5)
    slow_z, slow_out = z.astype(float), out.astype(float)
    train_pairs(z, out, ends, context, noise, negatives, shared, np.float32(lr), np.uint64(counter))
    for u in range(n):
        for first in range(start[u], stop[u], GROUP):
            contexts = context[first : min(first + GROUP, stop[u])].tolist()
            drawn = []
            for _ in range(negatives * -(-len(contexts) // shared)):
                counter = (counter + 0x9E3779B97F4A7C15) % 2**64
                drawn.append(noise[(splitmix(counter) >> 32) * noise.size >> 32])
            steps = [(v, lr * k * (1 - sigmoid(slow_z[u] @ slow_out[v]))) for v, k in Counter(contexts).items()]
            for w in drawn:
                pairs = sum(v != w for v in contexts)  # a negative that is the context itself takes no step
                steps.append((w, -lr * pairs * negatives / len(drawn) * sigmoid(slow_z[u] @ slow_out[w])))
            before = slow_z[u].copy()
            for v, step in steps:
                slow_z[u] += step * slow_out[v]
                slow_out[v] += step * before
    assert np.allclose(z, slow_z, atol=1e-5)
    assert np.allclose(out, slow_out, atol=1e-5)


@pytest.mark.parametrize(("length", "window"), [(9, 3), (60, 40)])
def test_every_pair_within_reach_is_there_once(rng: np.random.Generator, length: int, window: int) -> None:
    walks = rng.integers(0, 30, (40, length)).astype(np.int32)
    walks[::3, 5:] = -1
    reach = rng.integers(1, window, walks.shape, endpoint=True).astype(np.int32)
    first, context = contexts(walks, reach, 30)
    pairs = [(u, v) for u in range(30) for v in context[first[u] : first[u + 1]].tolist()]
    slow = [
        (u, v)
        for row, far in zip(walks.tolist(), reach.tolist(), strict=True)
        for i, u in enumerate(row)
        for j, v in enumerate(row)
        if i != j and abs(i - j) <= far[i] and u >= 0 and v >= 0
    ]
    assert Counter(pairs) == Counter(slow)
