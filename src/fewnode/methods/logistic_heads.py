"""Linear heads of few-shot tasks: logistic regression on the support's rows of z, for many tasks at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewnode.episodes import Task
from fewnode.method import Probabilities

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MOST = 512
"""Weights of a head whose matrix of second derivatives is formed."""
TOGETHER = 1 << 22
"""Numbers in those matrices that are in memory at a time."""
NEAR = 1e-8
"""A head is done after a step of this length, measured by the second derivatives: the next would be its square."""
ROUNDS, HALVINGS = 100, 30


def logistic_heads(z: NDArray[np.floating[Any]], tasks: Sequence[Task], c: float) -> list[Probabilities]:
    """As `logistic_head` answers each task. Tasks of one shape are solved together, by Newton's method."""
    answers: dict[int, Probabilities] = {}
    shapes: dict[tuple[int, int], list[int]] = {}
    for i, task in enumerate(tasks):
        shapes.setdefault((task.support.size, task.n_way), []).append(i)
    for (k, n_way), places in shapes.items():
        size = n_way * (min(k, z.shape[1]) + 1)
        if n_way == 1 or size > MOST:
            answers |= {i: logistic_head(z, tasks[i], c) for i in places}
            continue
        step = max(1, TOGETHER // size**2)
        for first in range(0, len(places), step):
            part = places[first : first + step]
            rows = np.stack([z[tasks[i].support] for i in part]).astype(np.float64)
            directions = _directions(rows)
            # of two classes scikit-learn has one vector, the difference, and penalises that
            strength = c / 2 if n_way == 2 else c
            weight = newton(rows @ directions, np.stack([tasks[i].support_y for i in part]), n_way, strength)
            for i, along, w in zip(part, directions, weight, strict=True):
                answers[i] = softmax(z[tasks[i].query].astype(np.float64) @ along @ w[:-1] + w[-1]).astype(np.float32)
    return [answers[i] for i in range(len(tasks))]


def logistic_head(z: NDArray[np.floating[Any]], task: Task, c: float) -> Probabilities:
    """Multinomial logistic regression on the support's rows of z; classes count alike, however many nodes each has.

    Its weights lie in the span of those rows, so it is solved there. By scikit-learn, however large it is.
    """
    from sklearn.linear_model import LogisticRegression  # costs a second to import

    if task.n_way == 1 or task.query.size == 0:
        return np.ones((task.query.size, task.n_way), np.float32)
    # newton-cg, for lbfgs stops three digits short of the optimum, and threads of BLAS wait for each other in it
    model = LogisticRegression(C=c, class_weight="balanced", solver="newton-cg", tol=1e-6, max_iter=1000)
    directions = _directions(z[task.support].astype(np.float64))
    support, query = (z[nodes].astype(np.float64) @ directions for nodes in (task.support, task.query))
    return model.fit(support, task.support_y).predict_proba(query).astype(np.float32)  # type: ignore[no-any-return]


def _directions(rows: Floats) -> Floats:
    """Orthonormal, and the rows lie in their span: as many as there are rows, or columns if there are fewer of them."""
    k, d = rows.shape[-2:]
    return np.linalg.qr(np.swapaxes(rows, -1, -2))[0] if d > k else np.broadcast_to(np.eye(d), (*rows.shape[:-2], d, d))


def newton(rows: Floats, y: Ints, n_way: int, c: float) -> Floats:
    """Weights, with the intercepts below them, that minimise c Σ s_i loss_i + |W|² / 2 for each of several tasks.

    s makes classes count alike. Intercepts are not penalised, so that a number added to all of them changes nothing.
    The matrix of second derivatives gets a term along it, and steps have no part in it.
    """
    tasks, k, _ = rows.shape
    x = np.concatenate([rows, np.ones((tasks, k, 1))], axis=2)
    width = x.shape[2]
    truth = np.eye(n_way)[y]
    s = c * k / n_way / np.take_along_axis(truth.sum(axis=1), y, axis=1)
    penalty = np.eye(width)
    penalty[-1, -1] = 0
    own = np.kron(np.eye(n_way), penalty)
    shift = np.tile(np.eye(width)[-1], n_way)
    own += np.outer(shift, shift)
    w = np.zeros((tasks, width, n_way))

    def value(w: Floats, at: Ints) -> Floats:
        score = x[at] @ w
        top = score.max(axis=2, keepdims=True)
        loss = np.log(np.exp(score - top).sum(axis=2)) - ((score - top) * truth[at]).sum(axis=2)
        return np.asarray((s[at] * loss).sum(axis=1) + np.square(w[:, :-1]).sum(axis=(1, 2)) / 2)

    left = np.arange(tasks)
    for _ in range(ROUNDS):
        here, p = x[left], softmax(x[left] @ w[left])
        slope = np.swapaxes(here, 1, 2) @ (s[left][..., None] * (p - truth[left])) + penalty @ w[left]
        weighed = np.swapaxes(s[left][..., None] * p, 1, 2)  # tasks, classes, rows
        pairs = (np.swapaxes(p, 1, 2)[..., None] * here[:, None]).swapaxes(1, 2).reshape(left.size, k, -1)
        second = own - np.swapaxes(pairs, 1, 2) @ (s[left][..., None] * pairs)
        blocks = np.swapaxes(here, 1, 2)[:, None] @ (weighed[..., None] * here[:, None])
        for a in range(n_way):
            part = slice(a * width, (a + 1) * width)
            second[:, part, part] += blocks[:, a]
        flat = np.swapaxes(slope, 1, 2).reshape(left.size, -1, 1)
        found = np.linalg.solve(second, flat)
        gain = (flat * found).sum(axis=(1, 2))
        step = np.swapaxes(found.reshape(left.size, n_way, width), 1, 2)
        w[left] = _descend(value, w[left], step, gain, left)
        left = left[gain > NEAR**2]
        if left.size == 0:
            break
    return w


def _descend(value: Any, w: Floats, step: Floats, gain: Floats, at: Ints) -> Floats:
    """A step, or half of it, and so on, until the value is lower by a share of what was expected."""
    before, share = value(w, at), np.ones(at.size)
    for _ in range(HALVINGS):
        after = value(w - share[:, None, None] * step, at)
        bad = after > before - 1e-4 * share * gain + 1e-12 * np.abs(before)
        if not bad.any():
            break
        share[bad] /= 2
    return w - share[:, None, None] * step


def softmax(score: Floats) -> Floats:
    found = np.exp(score - score.max(axis=-1, keepdims=True))
    return np.asarray(found / found.sum(axis=-1, keepdims=True))
