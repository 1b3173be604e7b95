"""Rows centred and stretched: the same input gives the same bits, wherever it lies in memory."""

from __future__ import annotations

import numpy as np

from fewnode.engine.rows import centre_rows, stretch_rows


def test_bits_do_not_depend_on_where_arrays_lie() -> None:
    rng = np.random.default_rng(0)
    rows, mean = rng.standard_normal((3, 16)).astype(np.float32), rng.standard_normal(16).astype(np.float32)
    seen: set[bytes] = set()
    held: list[list[np.ndarray]] = [[] for _ in range(50)]  # some of what was before, so that arrays lie anywhere
    for _ in range(5_000):
        own = [rows.copy(), mean.copy(), np.empty((3, 16), np.float32), np.empty((3, 16), np.float32)]
        centre_rows(*own[:3])
        stretch_rows(*own[:2], own[3])
        held[rng.integers(50)] = [np.empty(rng.integers(1, 400), np.uint8), *own]
        seen.add(own[2].tobytes() + own[3].tobytes())
    assert len(seen) == 1
