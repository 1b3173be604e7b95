"""Views of a graph that GRACE contrasts: some of its arcs and of its attributes are left out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fewnode.engine.sparse import CSR


class View(NamedTuple):
    """Which columns of X are masked, and Â of the arcs that are left. Those that are not have a weight of 0."""

    masked: NDArray[np.bool_]
    adj: CSR


class EdgeDropping:
    """Â of a graph without a share of its arcs; each direction of an edge is drawn on its own, as in the sources."""

    def __init__(self, adj: sp.csr_array) -> None:
        closed = (adj + sp.eye_array(adj.shape[0], dtype=np.float32, format="csr")).tocsr()
        self.rows = np.repeat(np.arange(adj.shape[0]), np.diff(closed.indptr))
        self.closed, self.loop = closed, self.rows == closed.indices

    def view(self, rate: float, rng: np.random.Generator) -> CSR:
        """D^-1/2 (A' + I) D^-1/2, D the sums of rows of A' + I."""
        n, columns = self.closed.shape[0], self.closed.indices
        kept = self.closed.data * ((rng.random(columns.size) >= rate) | self.loop)
        scale = np.bincount(self.rows, weights=kept, minlength=n) ** -0.5
        values = (kept * scale[self.rows] * scale[columns]).astype(np.float32)
        return CSR(self.closed.indptr[:-1], self.closed.indptr[1:], columns, values, (n, n))
