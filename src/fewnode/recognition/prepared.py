"""A support set made ready to be asked with."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from fewnode.recognition.calibration import LeftOut


@dataclass(frozen=True, eq=False)
class PreparedSupport:
    """A support set made ready: what depends on it alone, computed once for any number of queries."""

    z: Float[Tensor, "k d"]
    beta: Float[Tensor, " k"]
    prototypes: Float[Tensor, "n d"]
    shots: Float[Tensor, " n"]
    ridge: Float[Tensor, "d n"] | None = None
    """The prototypes of GPN+, which answer in place of the others."""
    count: Float[Tensor, " k"] | None = None
    """What each row counts beside the others of its class, where that differs."""
    left_out: LeftOut | None = None
