"""The optimiser: Adam with L2 weight decay, by torch's fused kernel."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.optim.adam import adam


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
