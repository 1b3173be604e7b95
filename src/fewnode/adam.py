"""The optimiser, on weights as arrays of NumPy, whatever computes with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fewnode.engine.rows import descend

Weights: TypeAlias = dict[str, NDArray[Any]]
"""By name. Training changes them in place."""


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
