"""Meta-training (Algorithm 1): episode after episode by Adam, early stopping on validation classes.

What step t does depends on the weights and on (seed, t) alone, so a resumed run continues with the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.adam import adam

from fewnode.errors import FewnodeError
from fewnode.team import ALONE, Gradients, Team

VALID_TASKS = 50


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

    @property
    def best(self) -> Point:
        """The first of the most accurate points."""
        return max(self.points, key=lambda point: point.accuracy)

    @property
    def done(self) -> int:
        """How many episodes have been trained on."""
        return self.points[-1].episode if self.points else 0


class Journal:
    """Who is told of each step. This one keeps nothing; `checkpoint.Checkpoints` keeps what is continued from."""

    def report(self, episode: int, loss: float, history: History) -> None:
        """Episode by episode, and once more after a validation."""

    def resume(self, model: nn.Module, optimizer: Adam) -> tuple[History, dict[str, Tensor]]:
        """Bring both to where a training was left; its history, and the weights that validated best."""
        return History(), weights_of(model)

    def save(self, model: nn.Module, optimizer: Adam, history: History, best: Mapping[str, Tensor]) -> None:
        """All that `resume` needs."""

    def within(self, part: str) -> Self:
        """The journal of one part of a training that has several."""
        return self

    def agreeing(self, settings: Mapping[str, Any]) -> Self:
        """One that continues no training of other settings."""
        return self


QUIET = Journal()


def meta_train(
    model: nn.Module,
    gradients: Callable[[int], Gradients],
    validate: Callable[[], float],
    schedule: Schedule,
    journal: Journal = QUIET,
    team: Team = ALONE,
) -> History:
    """Minimise the loss of Eq. (14) batch by batch; leave the weights that validated best in `model`.

    `gradients(k)` is the loss of batch k and its gradient by each parameter, with the weights of now.
    """
    optimizer = Adam(list(model.parameters()), schedule.lr, schedule.weight_decay)
    history, best = journal.resume(model, optimizer)
    while history.done < schedule.episodes and not history.stopped:
        stop = min(history.done + schedule.validate_every, schedule.episodes)
        losses = []
        for t in range(history.done, stop):
            try:
                losses.append(step(model, optimizer, gradients, t, team))
            except Diverged:
                model.load_state_dict(best)
                raise
            if team.leads:
                journal.report(t + 1, losses[-1], history)
        accuracy = team.agree(validate() if team.leads else 0.0)
        history.points.append(Point(stop, float(np.mean(losses)), accuracy))
        if history.best.episode == stop:
            best = weights_of(model)
        history.stopped = stop - history.best.episode >= schedule.patience * schedule.validate_every
        if team.leads:
            journal.save(model, optimizer, history, best)
            journal.report(stop, losses[-1], history)
    model.load_state_dict(best)
    model.eval()
    return history


def step(model: nn.Module, optimizer: Adam, gradients: Callable[[int], Gradients], t: int, team: Team = ALONE) -> float:
    """Batch t, or those that the team has in step t."""
    value, found = team.mean(model, gradients, t)
    if not math.isfinite(value):
        raise Diverged(f"training diverged: the loss of episode {t + 1} is {value}; try a smaller learning rate")
    if not all(math.isfinite(float(gradient.sum())) for gradient in found):
        raise Diverged(f"training diverged: a gradient of episode {t + 1} is not finite; try a smaller learning rate")
    optimizer.step(found)
    return value


def by_autograd(model: nn.Module, loss_of: Callable[[int], Tensor], seed: int) -> Callable[[int], Gradients]:
    """The gradients of a loss that torch follows. What it draws, as dropout does, depends on (seed, k) alone."""

    def gradients(k: int) -> Gradients:
        model.train()
        with seeded(seed, k):
            loss = loss_of(k)
        value, parameters = float(loss.detach()), list(model.parameters())
        if not math.isfinite(value):
            return value, [torch.zeros_like(parameter) for parameter in parameters]
        return value, list(torch.autograd.grad(loss, parameters, allow_unused=True, materialize_grads=True))

    return gradients


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


class Adam:
    """Adam (Kingma & Ba, 2015) with L2 weight decay: torch's fused kernel, without torch's optimizer classes.

    Building one of those imports the compiler, which takes longer than the first hundred episodes.
    """

    def __init__(self, parameters: list[nn.Parameter], lr: float, weight_decay: float) -> None:
        self.parameters, self.lr, self.weight_decay = parameters, lr, weight_decay
        self.state = {
            "exp_avg": [torch.zeros_like(p, requires_grad=False) for p in parameters],
            "exp_avg_sq": [torch.zeros_like(p, requires_grad=False) for p in parameters],
            "step": [torch.zeros((), device=p.device) for p in parameters],
        }

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor]) -> None:
        adam(
            params=list(self.parameters),
            grads=list(gradients),
            exp_avgs=self.state["exp_avg"],
            exp_avg_sqs=self.state["exp_avg_sq"],
            max_exp_avg_sqs=[],
            state_steps=self.state["step"],
            lr=self.lr,
            weight_decay=self.weight_decay,
            beta1=0.9,
            beta2=0.999,
            eps=1e-8,
            amsgrad=False,
            maximize=False,
            fused=True,
        )

    def flat(self) -> dict[str, Tensor]:
        """The state as named tensors; writing to them is writing to the state."""
        return {f"{name}.{i}": tensor for name, tensors in self.state.items() for i, tensor in enumerate(tensors)}


def stream(*key: int) -> int:
    """A seed of 63 bits that depends on `key`, such as (seed, t), alone."""
    return int(np.random.SeedSequence(key).generate_state(1, np.uint64)[0] >> np.uint64(1))


@contextmanager
def seeded(*key: int) -> Iterator[None]:
    """Draws of torch inside depend on `key`, such as (seed, t), alone; the caller's stream is left as it was.

    `torch.manual_seed` would do, but without a GPU it keeps a stack trace of every call for later.
    """
    generators = [torch.default_generator, *(torch.cuda.default_generators if torch.cuda.is_initialized() else ())]
    before = [generator.get_state() for generator in generators]
    try:
        for generator in generators:
            generator.manual_seed(stream(*key))
        yield
    finally:
        for generator, state in zip(generators, before, strict=True):
            generator.set_state(state)
