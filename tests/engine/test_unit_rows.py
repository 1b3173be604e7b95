"""Rows to unit length: the same input gives the same bits, wherever it lies in memory."""

from __future__ import annotations

import numpy as np

from fewnode.engine.rows import centre_rows, stretch_rows
from fewnode.engine.unit_rows import backwards, first_and_mean


def test_bits_do_not_depend_on_where_arrays_lie() -> None:
    rng = np.random.default_rng(0)
    given = [rng.standard_normal(shape).astype(np.float32) for shape in ((6, 5, 16), (16,), (16,))]
    there = np.ones((6, 5), np.float32)
    slopes = [rng.standard_normal((6, 16)).astype(np.float32) for _ in range(2)]
    seen: set[bytes] = set()
    held: list[list[np.ndarray]] = [[] for _ in range(50)]  # some of what was before, so that arrays lie anywhere
    for _ in range(5_000):
        own = [part.copy() for part in given]
        forth = first_and_mean(*own, there)
        back = backwards(*own, there, forth[2], *slopes)
        held[rng.integers(50)] = [np.empty(rng.integers(1, 400), np.uint8), *own[1:], *forth, *back]
        seen.add(b"".join(part.tobytes() for part in (*forth, *back)))
    assert len(seen) == 1


def test_so_it_is_where_rows_are_centred_and_stretched() -> None:
    rng = np.random.default_rng(0)
    rows, mean = rng.standard_normal((3, 16)).astype(np.float32), rng.standard_normal(16).astype(np.float32)
    seen: set[bytes] = set()
    held: list[list[np.ndarray]] = [[] for _ in range(50)]
    for _ in range(5_000):
        own = [rows.copy(), mean.copy(), np.empty((3, 16), np.float32), np.empty((3, 16), np.float32)]
        centre_rows(*own[:3])
        stretch_rows(*own[:2], own[3])
        held[rng.integers(50)] = [np.empty(rng.integers(1, 400), np.uint8), *own]
        seen.add(own[2].tobytes() + own[3].tobytes())
    assert len(seen) == 1
