"""Numbers that tell a node from others as they tell the examples: amounts, degrees and sums of weights by kind."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fewnode.dataset import Dataset
from fewnode.graph import Ints, is_sparse

Doubles = NDArray[np.float64]
EXTREME = 0.9
"""A number is told if it is beyond this share of all nodes, and so are most of the examples."""
MOST = 2 / 3
NUMBER = " (number)"
"""How the names of attributes that are numbers end."""
SHOWN = 3


@dataclass(frozen=True)
class TellingNumber:
    """A number that is larger, or smaller, than that of most nodes, as it is with so many examples.

    >>> print(TellingNumber("in_6m", 12400.0, 0.98, 3, 3))
    in_6m 12,400: above 98 % of nodes, as 3 of 3 examples
    """

    name: str
    value: float | None
    """None where the scale of a column is not known."""
    share: float
    """Of all nodes, those below; or -1 times those above."""
    in_examples: int
    examples: int

    def __str__(self) -> str:
        value = "" if self.value is None else f" {self.value:,.4g}" if abs(self.value) < 100 else f" {self.value:,.0f}"
        side = "above" if self.share > 0 else "below"
        share = f"{abs(self.share):.1%}".replace(".0%", "%").replace("%", " %")
        return f"{self.name}{value}: {side} {share} of nodes, as {self.in_examples} of {self.examples} examples"


@dataclass(frozen=True, eq=False)
class Numbers:
    """The numbers of all nodes, by name."""

    data: Dataset

    @cached_property
    def columns(self) -> dict[str, Doubles]:
        """Attributes that are numbers, as they were in the table, then degrees and sums of weights by kind of edge."""
        graph, found = self.data.graph, dict[str, Doubles]()
        for name, place in self._attributes.items():
            column = graph.x[:, [place]]
            mean, deviation = self._scale.get(name, (0.0, 1.0))
            found[name] = np.ravel(column.toarray() if is_sparse(column) else column) * float(deviation) + float(mean)
        for relation in graph.relations:
            sides = {"in": np.diff(relation.adj.indptr)}
            sides |= {"out": np.bincount(relation.adj.indices, minlength=graph.n)} if relation.directed else {}
            for side, count in sides.items():
                found[f"{relation.name}, {side}-degree" if relation.directed else f"{relation.name}, degree"] = count
        return found

    @cached_property
    def _attributes(self) -> dict[str, int]:
        """The columns of the attributes that are numbers."""
        names = enumerate(self.data.feature_names or ())
        return {name.removesuffix(NUMBER): place for place, name in names if name.endswith(NUMBER)}

    @cached_property
    def _scale(self) -> dict[str, tuple[float, float]]:
        """Mean and deviation of each column that came from a table."""
        encoding = (self.data.encoding or {}).get("encoding", {})
        return {name: scale for name, scale in encoding.get("numeric", []) if name not in encoding.get("dates", {})}

    @cached_property
    def _ordered(self) -> dict[str, Doubles]:
        return {name: np.sort(column) for name, column in self.columns.items()}

    def telling(self, node: int, examples: Ints) -> tuple[TellingNumber, ...]:
        """The most unusual numbers of a node in which most examples are unusual in the same direction."""
        others, found = examples[examples != node], []
        for name, column in self.columns.items():
            ordered = self._ordered[name]
            own, theirs = (column[rows] for rows in (np.array([node]), others))
            for sign, side in ((1, "left"), (-1, "right")):
                beyond = [np.searchsorted(ordered, values, side) / ordered.size for values in (own, theirs)]  # type: ignore[call-overload]
                mine, examples_beyond = (share if sign > 0 else 1 - share for share in beyond)
                alike = int(np.count_nonzero(examples_beyond >= EXTREME))
                if mine[0] >= EXTREME and alike and alike >= MOST * others.size:
                    known = name in self._scale or name not in self._attributes
                    value = float(own[0]) if known else None
                    found.append(TellingNumber(name, value, sign * float(round(mine[0], 4)), alike, others.size))
        return tuple(sorted(found, key=lambda each: -abs(each.share))[:SHOWN])
