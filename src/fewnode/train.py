"""Meta-training (Algorithm 1): episode after episode by Adam, early stopping on validation classes.

What step t does depends on the weights and on (seed, t) alone, so a resumed run continues with the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fewnode.engine.rows import descend
from fewnode.errors import FewnodeError

VALID_TASKS = 50
Weights: TypeAlias = dict[str, NDArray[Any]]
"""By name. Training changes them in place."""
Gradients: TypeAlias = tuple[float, Weights]
"""A loss, and its gradient by each weight."""


class Diverged(FewnodeError):
    """The loss is no longer a number. The last checkpoint, and the weights that validated best, are intact."""


@dataclass(frozen=True)
class Schedule:
    """How long and how fast to train; the defaults are the paper's (section 5.1)."""

    episodes: int = 300
    lr: float = 0.005
    weight_decay: float = 5e-4
    validate_every: int = 10
    patience: int = 10
    """Validations without a better one before training stops."""
    keep: str = "best"
    """The weights that validated best, or the last."""


@dataclass(frozen=True)
class Point:
    """One validation: the mean loss of the episodes since the last one, and the accuracy on validation classes."""

    episode: int
    loss: float
    accuracy: float


@dataclass
class History:
    points: list[Point] = field(default_factory=list)
    stopped: bool = False
    engine: str = ""
    """What computed the losses and their gradients."""
    part: str = ""  # of a training that has several, such as one for each rate of dropout

    @property
    def best(self) -> Point:
        """The first of the most accurate points."""
        return max(self.points, key=lambda point: point.accuracy)

    @property
    def done(self) -> int:
        """How many episodes have been trained on."""
        return self.points[-1].episode if self.points else 0


class Adam:
    """Adam (Kingma & Ba, 2015) with L2 weight decay. It changes the weights in place."""

    def __init__(self, weights: Weights, lr: float, weight_decay: float) -> None:
        self.weights, self.lr, self.weight_decay = weights, lr, weight_decay
        self.steps = np.zeros(1, np.int64)
        self.mean, self.square = ({name: np.zeros_like(array) for name, array in weights.items()} for _ in range(2))

    def step(self, gradients: Weights) -> None:
        self.steps += 1
        t = int(self.steps[0])
        rate, scale = self.lr / (1 - 0.9**t), (1 - 0.999**t) ** -0.5
        for name, gradient in gradients.items():
            arrays = self.weights[name], np.ascontiguousarray(gradient), self.mean[name], self.square[name]
            descend(*(array.reshape(-1) for array in arrays), rate, scale, self.weight_decay)

    def state(self) -> Weights:
        """All that it remembers, as named arrays; writing to them is writing to the state."""
        moments = {"mean": self.mean, "square": self.square}
        named = {f"{what}.{name}": array for what, arrays in moments.items() for name, array in arrays.items()}
        return {"steps": self.steps, **named}


def copied(weights: Weights) -> Weights:
    return {name: array.copy() for name, array in weights.items()}


def overwrite(weights: Weights, others: Mapping[str, NDArray[Any]]) -> None:
    """Write the other numbers into the memory of these."""
    for name, array in weights.items():
        array[...] = others[name]


OnStep: TypeAlias = Callable[[int, float, History], None]
"""Told once of each step: its number, its loss, the history with the validation after it. What it raises ends all."""


@dataclass(frozen=True, kw_only=True)
class Journal:
    """Who is told of a training, or of a part of it. This one keeps nothing to continue from; `Checkpoints` does."""

    on_step: OnStep = lambda step, loss, history: None
    part: str = ""

    def resume(self, weights: Weights, optimizer: Adam) -> tuple[History, Weights]:
        """Bring both to where a training was left; its history, and the weights that validated best."""
        return History(part=self.part), copied(weights)

    def save(self, weights: Weights, optimizer: Adam, history: History, best: Weights) -> None:
        """All that `resume` needs."""

    def within(self, part: str) -> Self:
        """The journal of one part of a training that has several."""
        return replace(self, part=part)


QUIET = Journal()


@np.errstate(over="ignore", invalid="ignore")  # a loss that is no number is told apart by itself
def meta_train(
    weights: Weights,
    gradients: Callable[[int], Gradients],
    validate: Callable[[], float],
    schedule: Schedule,
    journal: Journal = QUIET,
    engine: str = "",
) -> History:
    """Minimise the loss of Eq. (14) batch by batch; leave the weights that are to be kept in `weights`.

    `gradients(k)` is the loss of batch k and its gradients, with the weights of now.
    """
    optimizer = Adam(weights, schedule.lr, schedule.weight_decay)
    history, best = journal.resume(weights, optimizer)
    history.engine = engine
    while history.done < schedule.episodes and not history.stopped:
        stop = min(history.done + schedule.validate_every, schedule.episodes)
        losses = []
        for t in range(history.done, stop):
            try:
                losses.append(step(optimizer, gradients, t))
            except Diverged:
                overwrite(weights, best)
                raise
            if t + 1 < stop:
                journal.on_step(t + 1, losses[-1], history)
        history.points.append(Point(stop, float(np.mean(losses)), validate()))
        if history.best.episode == stop:
            best = copied(weights)
        history.stopped = stop - history.best.episode >= schedule.patience * schedule.validate_every
        journal.save(weights, optimizer, history, best)
        journal.on_step(stop, losses[-1], history)
    if schedule.keep == "best":
        overwrite(weights, best)
    return history


def step(optimizer: Adam, gradients: Callable[[int], Gradients], t: int) -> float:
    """Batch t: its loss, and one step along the gradients."""
    value, found = gradients(t)
    if not math.isfinite(value):
        raise Diverged(f"training diverged: the loss of episode {t + 1} is {value}; try a smaller learning rate")
    if not all(math.isfinite(float(gradient.sum())) for gradient in found.values()):
        raise Diverged(f"training diverged: a gradient of episode {t + 1} is not finite; try a smaller learning rate")
    optimizer.step(found)
    return value
