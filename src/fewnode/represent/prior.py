"""What other networks taught about the weights of views: where to begin, and where to stay without base classes."""

from __future__ import annotations

from collections.abc import Sequence

from fewnode.represent.mixture import View
from fewnode.represent.sources import STRUCTURE


def prior_weights(sources: Sequence[str]) -> dict[View, float]:
    """The weight τ of each view that counts, for a network with these sources."""
    if list(sources) == [STRUCTURE]:
        return {View(STRUCTURE, name, 0): 3.0 for name in ("itself", "near", "far", "farther")}
    return {View(source, name, 8): 3.0 for source in sources if source != STRUCTURE for name in ("itself","near", "far", "farther")}
