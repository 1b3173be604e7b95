"""Whether views over kinds and directions of edges are of use: judged on classes that did not weigh them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from fewnode.graph import Graph, Ints
from fewnode.represent.kinds import BY_WEIGHT, KIND_VIEWS, kind_views
from fewnode.represent.mix import mix_weights
from fewnode.represent.practice import PracticeTasks, labels, practice_tasks, stacked
from fewnode.represent.views import View

FEWEST = 4
"""Known classes that a trial needs: two to weigh views by, two to judge by."""
SURE = 2.0
"""Standard errors that accuracy must gain by: there are many such views, and one of them always looks good."""


@dataclass(frozen=True, eq=False)
class KindsTrial:
    """Tasks of one half of the known classes and tasks of the other half, none where there is nothing to judge."""

    halves: tuple[list[PracticeTasks], ...] = ()

    @classmethod
    def of(cls, views: Sequence[View], known: Sequence[Ints], seed: int) -> KindsTrial:
        if not any(on_trial(view) for view in views) or len(known) < FEWEST:
            return cls()
        halves = tuple(practice_tasks(known[start::2], seed + 2) for start in (0, 1))
        return cls(halves if all(halves) else ())

    @property
    def tasks(self) -> list[PracticeTasks]:
        return [tasks for half in self.halves for tasks in half]

    def passed(
        self,
        views: Sequence[View],
        closeness: Sequence[Float[Tensor, "t q n m"]],
        prior: NDArray[np.float64],
        penalty: float,
    ) -> bool:
        """Whether accuracy on the other half of the classes is better with those views, beyond chance.

        `closeness` is that of each of `tasks`; `prior` is what is expected of each view.
        """
        if not self.halves:
            return False
        plain = np.array([not on_trial(view) for view in views])
        first = len(self.halves[0])
        sides = (slice(0, first), slice(first, None))
        gains = []
        for own, other in (sides, sides[::-1]):
            tau, without = (
                _weights(closeness[own], self.tasks[own], prior, penalty, chosen) for chosen in (plain | True, plain)
            )
            for close, tasks in zip(closeness[other], self.tasks[other], strict=True):
                gains.append(_right(close, tau, tasks) - _right(close, without, tasks))
        gain = np.concatenate(gains)
        return bool(gain.mean() > SURE * gain.std() / gain.size**0.5)


def on_trial(view: View) -> bool:
    """Weights are known to mean something; kinds and directions are not."""
    return view.name in KIND_VIEWS and view.name not in BY_WEIGHT


def unused_kinds(method: Any, graph: Graph) -> list[str]:
    """What a method that weighs views learned to leave out of what the edges of this graph say."""
    mixture = getattr(method, "mixture_", None)
    if mixture is None or not set(kind_views(graph)) - set(BY_WEIGHT) or any(map(on_trial, mixture.weight)):
        return []
    return ["kinds and directions of edges, by which known classes did not gain"]


def _weights(
    closeness: Sequence[Float[Tensor, "t q n m"]],
    tasks: Sequence[PracticeTasks],
    prior: NDArray[np.float64],
    penalty: float,
    chosen: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """The weight of each view, 0 of those that are not chosen."""
    tau = np.zeros(chosen.size)
    close = stacked([part[..., torch.from_numpy(chosen)] for part in closeness])
    tau[chosen] = mix_weights(close, labels(tasks), prior[chosen], penalty)
    return tau


def _right(closeness: Float[Tensor, "t q n m"], tau: NDArray[np.float64], tasks: PracticeTasks) -> NDArray[np.float64]:
    """The accuracy of each task."""
    found = (closeness @ torch.from_numpy(tau).float()).argmax(dim=2)
    return np.asarray((found == tasks.query_y).double().mean(dim=1).numpy())
