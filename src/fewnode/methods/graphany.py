"""Closed-form linear GNNs, as GraphAny has them (Zhao et al., ICLR 2025, section 3.1)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from torch import Tensor

from fewnode.episodes import EpisodeSampler, Task
from fewnode.errors import FewnodeError, closest
from fewnode.graph import Attributes, Graph
from fewnode.method import Probabilities
from fewnode.methods.linear import Filter, Floats, ScaledAttributes, coordinates, one_hot, undirected
from fewnode.represent.diffusion import random_walk

CHANNELS = {"x": (0, False), "sgc1": (1, False), "sgc2": (2, False), "hgc1": (1, True), "hgc2": (2, True)}
"""Linear, LinearSGC1, LinearSGC2, LinearHGC1 and LinearHGC2: steps of the filter, and whether it is I - P or P."""


class LinearGNNs:
    """Ŷ = F F_L^+ Y_L for each of several filters F = M X, and the mean of their answers. P is D^-1 A, edges both ways.

    It is not GraphAny itself. There an attention over the five answers, learned on another network, weighs them for
    each node; here each of the `channels` counts alike. Their code too leaves hgc1 and hgc2 to the attention's input.
    Answers of a regression are no probabilities: the softmax of them, times `sharpness`, is given for such.
    """

    _seen: tuple[Graph, list[Filter]] | None = None

    needs_base = False

    def __init__(
        self, channels: Sequence[str] = ("x", "sgc1", "sgc2"), scaling: str = "l2", sharpness: float = 10.0
    ) -> None:
        self.channels, self.scaling, self.sharpness = tuple(channels), scaling, sharpness

    def fit(self, graph: Graph, train: EpisodeSampler, valid: EpisodeSampler) -> LinearGNNs:
        """Look at the attributes; no episode is looked at."""
        self._check()
        self.attributes_, self._seen = ScaledAttributes(self.scaling).fit(graph), None
        return self

    def _check(self) -> None:
        for name in self.channels:
            if name not in CHANNELS:
                raise FewnodeError(
                    f"unknown channel {name!r}{closest(str(name), CHANNELS)}; known are {', '.join(CHANNELS)}"
                )
        if not self.channels or len(set(self.channels)) < len(self.channels):
            raise FewnodeError(f"channels are {list(self.channels)}, expected some of {', '.join(CHANNELS)}, each once")
        if not 0 < self.sharpness < math.inf:
            raise FewnodeError(f"sharpness is {self.sharpness}, expected a number above 0")

    def predict_proba(self, graph: Graph, task: Task) -> Probabilities:
        x = self.attributes_.of(graph)
        answers = [linear_gnn(x, channel, task)[task.query] for channel in self._filters(graph)]
        from scipy.special import softmax  # costs a tenth of a second to import

        found: Probabilities = softmax(self.sharpness * np.mean(answers, axis=0), axis=1).astype(np.float32)
        return found

    def _filters(self, graph: Graph) -> list[Filter]:
        if self._seen is None or self._seen[0] is not graph:
            walk = random_walk(undirected(graph))
            self._seen = (graph, [Filter(walk, *CHANNELS[name]) for name in self.channels])
        return self._seen[1]

    def state(self) -> dict[str, Tensor]:
        return self.attributes_.state()

    def restore(self, n_features: int, state: Mapping[str, Tensor]) -> LinearGNNs:
        """Become the method that gave `state`."""
        self._check()
        self.attributes_, self._seen = ScaledAttributes(self.scaling).restore(n_features, state), None
        return self


def linear_gnn(x: Attributes, channel: Filter, task: Task) -> Floats:
    """Ŷ of every node: Eqs. (2)-(3). Least squares on the labelled rows, of least norm among equals."""
    h = coordinates(x, channel, task.support)
    found: Floats = h @ (np.linalg.pinv(h[task.support]) @ one_hot(task.support_y))
    return found
