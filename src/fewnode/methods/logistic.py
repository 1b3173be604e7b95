"""Logistic regression on propagated attributes: what a practitioner tries first."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from torch import Tensor

from fewnode.engine.sparse import normalised
from fewnode.episodes import EpisodeSampler, Task
from fewnode.errors import FewnodeError
from fewnode.graph import Graph, Ints
from fewnode.method import Probabilities
from fewnode.methods.linear import Filter, Floats, Rescaling, ScaledAttributes, check_steps, coordinates


class Logistic:
    """SGC (Wu et al., ICML 2019): softmax(Â^steps X W + b), trained on the support set alone, by scikit-learn.

    No base class is needed, and none is looked at. Rows of Â^steps X are brought to unit length: a few support nodes
    would else be told apart by how many neighbours they have. With `centre`, what all nodes have in common is taken
    off, as in `nearest-mean`. `c` is the inverse strength of the L2 penalty. Classes count alike, however many support
    nodes each has.
    """

    _seen: tuple[Graph, Filter, Rescaling] | None = None

    needs_base = False

    def __init__(self, steps: int = 2, scaling: str = "tf-idf", c: float = 1000.0, centre: bool = True) -> None:
        self.steps, self.scaling, self.c, self.centre = steps, scaling, c, centre

    def fit(self, graph: Graph, train: EpisodeSampler, valid: EpisodeSampler) -> Logistic:
        """Look at the attributes; no episode is looked at."""
        self._check()
        self.attributes_, self._seen = ScaledAttributes(self.scaling).fit(graph), None
        return self

    def _check(self) -> None:
        check_steps(self.steps)
        if not 0 < self.c < math.inf:
            raise FewnodeError(f"c is {self.c}, expected a number above 0")

    def predict_proba(self, graph: Graph, task: Task) -> Probabilities:
        return self.of_nodes(graph, task.support, task.support_y)[task.query].astype(np.float32)

    def of_nodes(self, graph: Graph, support: Ints, support_y: Ints) -> Floats:
        """The probabilities of every node of the graph."""
        from sklearn.linear_model import LogisticRegression  # costs a second to import

        if support_y.max() == 0:
            return np.ones((graph.n, 1))
        filtered, rescaling = self._filter(graph)
        h = coordinates(self.attributes_.of(graph), filtered, support, rescaling)
        # newton-cg, for lbfgs stops three digits short of the optimum
        model = LogisticRegression(C=self.c, class_weight="balanced", solver="newton-cg", tol=1e-6, max_iter=1000)
        found: Floats = model.fit(_wide(h[support]), support_y).predict_proba(_wide(h))
        return found

    def _filter(self, graph: Graph) -> tuple[Filter, Rescaling]:
        if self._seen is None or self._seen[0] is not graph:
            filtered = Filter(normalised(graph), self.steps)
            self._seen = (graph, filtered, Rescaling.of(self.attributes_.of(graph), filtered, self.centre))
        return self._seen[1:]

    def state(self) -> dict[str, Tensor]:
        return self.attributes_.state()

    def restore(self, n_features: int, state: Mapping[str, Tensor]) -> Logistic:
        """Become the method that gave `state`."""
        self._check()
        self.attributes_, self._seen = ScaledAttributes(self.scaling).restore(n_features, state), None
        return self


def _wide(h: Floats) -> Floats:
    """At least one column: support rows may all be empty, and scikit-learn needs something to read."""
    return h if h.shape[1] else np.zeros((h.shape[0], 1))
