"""Who computes a training step: this process alone, or several together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias, runtime_checkable

from torch import Tensor, nn

Gradients: TypeAlias = tuple[float, list[Tensor]]
"""A loss, and its gradient by each parameter."""


@runtime_checkable
class Team(Protocol):
    """Who computes a step: this process alone, or several, each with a batch of episodes of its own.

    Share s of step t is batch t · size + s, so that `size` workers see in a step what one worker would see that takes
    batches `size` times as large: the mean of their gradients is the gradient of the mean loss.
    """

    @property
    def size(self) -> int: ...

    @property
    def leads(self) -> bool:
        """Whether this process validates, reports and writes."""

    def begin(self, rate: float) -> None:
        """A training with that rate of dropout starts."""

    def mean(self, model: nn.Module, own: Callable[[int], Gradients], t: int) -> Gradients:
        """The mean over the shares of step t; `own` computes the gradients of one batch here."""

    def agree(self, value: float) -> float:
        """What the leader says."""


class _Alone:
    size, leads = 1, True

    def begin(self, rate: float) -> None:
        pass

    def mean(self, model: nn.Module, own: Callable[[int], Gradients], t: int) -> Gradients:
        return own(t)

    def agree(self, value: float) -> float:
        return value


ALONE = _Alone()
