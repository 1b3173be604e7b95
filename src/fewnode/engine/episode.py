"""The equations of an episode as compiled loops, forwards and backwards: the engine's copy of what `gpn.py` defines.

Sections 4.2 to 4.4 in the order of the paper. What is as wide as the attributes, X W and X w, is done by the caller;
here all is narrow. Derivatives are written by hand and tested against those of `gpn.py`. Loops are compiled, what puts
them together is not: a compiled function that calls another one has it compiled again as a part of itself. For the
same reason all of them make arrays in the same few ways.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload
from numpy.typing import NDArray

from fewnode.engine.lanes import compiled, inlined
from fewnode.engine.loops import Sparse, add_transposed, hashed, multiply

Array = NDArray[Any]
EncoderHops = tuple[Sparse | None, Sparse | None]
"""Of the first and of the second layer; None: each node sees itself alone."""
ScoreHops = tuple[Sparse, Array, Sparse, Array]
"""Inwards, from far and from near, each with the places of the nodes that it leads to."""
Scores = Any
SAFE = 40
"""Exponents up to this need no shift: neither they nor their sum overflow, nor vanish."""


# --- the network encoder (4.2) ------------------------------------------------------------------------------------


def convolve(hop: Sparse | None, hw: Array, bias: Array) -> Array:
    """One layer, from the product of its input and its weight: ReLU(hop (H W) + b), or of an MLP ReLU(H W + b)."""
    h = hw if hop is None else multiply(*hop, hw, np.empty((hop[0].size, hw.shape[1]), hw.dtype))
    h += bias
    return np.maximum(h, 0, out=h)


@compiled
def drop(h: Array, nodes: Array, rate: float, seed: int, layer: int) -> None:
    """Dropout, in the same memory. Row i is that of nodes[i], and its units are kept by `gpn.kept_units`."""
    scale, limit = h.dtype.type(1 / (1 - rate)), np.uint64(rate * 2.0**32)
    key = hashed(hashed(np.uint64(seed)) ^ np.uint64(layer))
    for i in range(h.shape[0]):
        word = hashed(key ^ np.uint64(nodes[i]))
        for c in range(h.shape[1]):
            kept = hashed(word + np.uint64(c)) >> np.uint64(32) >= limit
            h[i, c] = h[i, c] * scale if kept else h.dtype.type(0)


def encode(
    hw: Array, hops: EncoderHops, bias: Sequence[Array], weight: Array, nodes: Array, rate: float, seed: int
) -> tuple[Array, Array]:
    """z, and the hidden layer behind it, from X times the first weight. The hidden layer is that of `nodes`."""
    h = convolve(hops[0], hw, bias[0])
    if rate > 0:
        drop(h, nodes, rate, seed, 1)
    return convolve(hops[1], h @ weight, bias[1]), h


def encode_gradient(
    z: Array, h: Array, hops: EncoderHops, rows: int, weight: Array, by_z: Array, rate: float
) -> tuple[Array, Array, Array, Array]:
    """The derivatives by hw, which has so many rows, by the first bias, by the second weight and by its bias."""
    by_z *= z > 0
    by_second = spread_back(hops[1], by_z, h.shape[0])
    by_h = by_second @ weight.T
    by_h *= (h > 0) * h.dtype.type(1 / (1 - rate))  # where ReLU or dropout gave 0, it is 0
    return spread_back(hops[0], by_h, rows), by_h.sum(axis=0), h.T @ by_second, by_z.sum(axis=0)


def spread_back(hop: Sparse | None, gradient: Array, rows: int) -> Array:
    """The derivative of a layer by the rows that its hop leaves from."""
    if hop is None:
        return gradient
    out = np.zeros((rows, gradient.shape[1]), gradient.dtype)
    add_transposed(*hop, gradient, out)
    return out


# --- the node valuator (4.3) --------------------------------------------------------------------------------------


def power(x: Any) -> Any:
    """e^x."""
    return np.exp(x)


def _power(x: Any) -> Any:
    """What `power` is in compiled code: for single precision a polynomial, which the compiler can work into its loops.

    e^x = 2^k e^f with a whole k and |f| < 0.35. 2^k is k in the exponent's bits, and e^f its Taylor series up to f^7.
    ln 2 is subtracted in two parts, of which the first, times k, needs no rounding (Cody & Waite, 1980).
    """

    def by_library(x: Any) -> Any:
        return np.exp(x)

    if x != types.float32:
        return by_library
    factors = tuple(np.float32(1 / math.factorial(i)) for i in range(7, -1, -1))
    per_octave, half, most = np.float32(1 / math.log(2)), np.float32(0.5), np.float32(87)
    coarse, fine = np.float32(0.693359375), np.float32(math.log(2) - 0.693359375)

    def by_polynomial(x: Any) -> Any:
        x = min(max(x, -most), most)
        k = np.floor(x * per_octave + half)
        f, total = (x - k * coarse) - k * fine, factors[0]
        for factor in factors[1:]:
            total = total * f + factor
        return total * np.int32((np.int32(k) + np.int32(127)) << np.int32(23)).view(np.float32)

    return by_polynomial


overload(power, inline="always")(_power)


@compiled
def squashed(x: Array, bias: float) -> Array:
    """tanh(x + bias), in the same memory. By an exponential: the library's own function takes six times as long."""
    one, two = x.dtype.type(1), x.dtype.type(2)
    for i in range(x.size):
        x[i] = one - two / (power(two * (x[i] + bias)) + one)
    return x


@inlined
def largest(x: Array) -> Any:
    """The largest magnitude."""
    found = x.dtype.type(0)
    for value in x:
        found = max(found, abs(value))
    return found


@compiled
def aggregate(start: Array, stop: Array, indices: Array, s_i: Array, s: Array, a: Array) -> tuple[Array, Array, Array]:
    """Eqs. (6)-(7) for rows with own scores s_i: the new scores, and what each softmax subtracts and its total."""
    out, top, total = np.zeros(s_i.size, s.dtype), np.zeros(s_i.size, s.dtype), np.zeros(s_i.size, s.dtype)
    low = s.dtype.type(0.2)
    bounded = abs(a[0]) * largest(s_i) + abs(a[1]) * largest(s) < SAFE
    for i in range(s_i.size):
        mine, most = a[0] * s_i[i], s.dtype.type(0)
        if not bounded:
            most = s.dtype.type(-np.inf)
            for e in range(start[i], stop[i]):
                most = max(most, mine + a[1] * s[np.uint64(indices[e])])
            most = most if most > 0 else low * most  # LeakyReLU rises, so the largest stays the largest
        weights, sums = s.dtype.type(0), s.dtype.type(0)
        for e in range(start[i], stop[i]):
            s_j = s[np.uint64(indices[e])]
            raw = mine + a[1] * s_j
            weight = power((raw if raw > 0 else low * raw) - most)
            weights += weight
            sums += weight * s_j
        out[i], top[i], total[i] = sums / weights, most, weights
    return out, top, total


@compiled
def aggregate_gradient(
    start: Array,
    stop: Array,
    indices: Array,
    own: Array,
    s: Array,
    a: Array,
    out: Array,
    top: Array,
    total: Array,
    gradient: Array,
) -> tuple[Array, Array]:
    """The derivatives of `aggregate` by s and a, where s_i is s[own]; out, top and total are what it gave.

    Weights are computed anew: they take less time than memory.
    """
    by_i, by_s, by_a = np.zeros(own.size, s.dtype), np.zeros(s.size, s.dtype), np.zeros(2, s.dtype)
    one, low = s.dtype.type(1), s.dtype.type(0.2)
    by_a0, by_a1 = 0.0, 0.0
    for i in range(own.size):
        s_i = s[np.uint64(own[i])]
        mine, share = a[0] * s_i, gradient[i] / total[i]
        by_mine, by_other = s.dtype.type(0), s.dtype.type(0)
        for e in range(start[i], stop[i]):
            j = np.uint64(indices[e])
            raw = mine + a[1] * s[j]
            slope = one if raw > 0 else low
            weight = share * power(slope * raw - top[i])
            by_raw = weight * (s[j] - out[i]) * slope
            by_s[j] += weight + a[1] * by_raw
            by_mine += by_raw
            by_other += by_raw * s[j]
        by_i[i] = a[0] * by_mine
        by_a0 += by_mine * s_i
        by_a1 += by_other
    for i in range(own.size):
        by_s[np.uint64(own[i])] += by_i[i]
    by_a[0], by_a[1] = by_a0, by_a1
    return by_s, by_a


def value(raw: Array, bias: Array, hops: ScoreHops, a: Array, degree: Array, eps: float) -> tuple[Array, Scores]:
    """s̃ of some nodes: Eqs. (6)-(10), from X w of those that they see; and what `value_gradient` needs."""
    far, own_far, near, own_near = hops
    s_0 = squashed(raw, bias[0])
    first = aggregate(*far[:3], s_0[own_far], s_0, a[0])
    second = aggregate(*near[:3], first[0][own_near], first[0], a[1])
    centrality = np.log(degree + degree.dtype.type(eps))
    return 1 / (1 + np.exp(-centrality * second[0])), (s_0, first, second, centrality)


def value_gradient(
    importance: Array, scores: Scores, hops: ScoreHops, a: Array, by: Array
) -> tuple[Array, Array, Array]:
    """The derivatives by X w, by the bias and by a, from those by the importance."""
    s_0, first, second, centrality = scores
    far, own_far, near, own_near = hops
    by = by * centrality * importance * (1 - importance)
    by_1, by_near = aggregate_gradient(*near[:3], own_near, first[0], a[1], *second, by)
    by_0, by_far = aggregate_gradient(*far[:3], own_far, s_0, a[0], *first, by_1)
    by_0 *= 1 - s_0 * s_0
    return by_0, by_0.sum(keepdims=True), np.stack([by_far, by_near])


# --- few-shot classification (4.4) --------------------------------------------------------------------------------


@compiled
def prototype_loss(
    z: Array, importance: Array, segment: Array, task: Array, y: Array, n_way: int, n_tasks: int
) -> tuple[float, Array, Array]:
    """Eqs. (11)-(14) by squared distance, and the derivatives by z and by importance.

    The first rows of z are support nodes, of the classes `segment`; the others are queries.
    """
    k, width = importance.size, z.shape[1]
    top, total = np.zeros(n_way * n_tasks), np.zeros(n_way * n_tasks)
    for c in range(top.size):
        top[c] = -np.inf
    for i in range(k):
        top[segment[i]] = max(top[segment[i]], importance[i])
    for i in range(k):
        total[segment[i]] += np.exp(importance[i] - top[segment[i]])
    beta, p = np.zeros(k), np.zeros((n_way * n_tasks, width))
    for i in range(k):
        c = segment[i]
        beta[i] = np.exp(importance[i] - top[c]) / total[c]
        for d in range(width):
            p[c, d] += beta[i] * z[i, d]
    by_z, by_p, loss = np.zeros(z.shape, z.dtype), np.zeros((n_way * n_tasks, width)), 0.0
    share = np.zeros(n_way)
    for q in range(y.size):
        row, first = k + q, task[q] * n_way
        nearest, sums = -np.inf, 0.0
        for c in range(n_way):
            share[c] = 0.0
            for d in range(width):
                share[c] -= (z[row, d] - p[first + c, d]) ** 2
            nearest = max(nearest, share[c])
        loss -= (share[y[q]] - nearest) / y.size
        for c in range(n_way):
            share[c] = np.exp(share[c] - nearest)
            sums += share[c]
        loss += np.log(sums) / y.size
        for c in range(n_way):
            pull = -2 * (share[c] / sums - (c == y[q])) / y.size
            for d in range(width):
                by_z[row, d] += pull * (z[row, d] - p[first + c, d])
                by_p[first + c, d] -= pull * (z[row, d] - p[first + c, d])
    by_beta, mean, by_importance = np.zeros(k), np.zeros(n_way * n_tasks), np.zeros(k, importance.dtype)
    for i in range(k):
        for d in range(width):
            by_z[i, d] = beta[i] * by_p[segment[i], d]
            by_beta[i] += z[i, d] * by_p[segment[i], d]
        mean[segment[i]] += beta[i] * by_beta[i]
    for i in range(k):
        by_importance[i] = beta[i] * (by_beta[i] - mean[segment[i]])
    return loss, by_z, by_importance
