"""Nodes worth labelling, as a table."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from fewnode.display import SHOWN, as_frame, table_html

COLUMNS = ("node", "likely", "probability", "member", "covers")


@dataclass(frozen=True)
class Suggestion:
    """A node worth labelling: the likeliest class and P(it is in it), P(it is in any), as `predict` has them.

    `member` is None where it cannot be told: then `probability` takes for granted that it is in one of them. `covers`
    is the share of the classes' nodes that it stands for. From `find`, `likely` is the class that it is asked about.
    """

    node: int
    likely: Hashable
    probability: float
    member: float | None
    covers: float


class Suggestions(list[Suggestion]):
    """A list of suggestions that is also a table: in a notebook, as text, and for pandas. `names` are of the nodes."""

    def __init__(self, found: Iterable[Suggestion], names: Sequence[str]) -> None:
        super().__init__(found)
        self.names = list(names)

    def rows(self) -> list[tuple[Any, ...]]:
        """Name, likeliest class, its probability, that of being in any, and how much it stands for."""
        return [
            (name, each.likely, each.probability, each.member, each.covers)
            for name, each in zip(self.names, self, strict=True)
        ]

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame`, a row a node."""
        return as_frame(dict(zip(COLUMNS, zip(*self.rows(), strict=True), strict=True)) if self else {})

    def _repr_html_(self) -> str:
        rows = [[_short(cell) for cell in row] for row in self.rows()[:SHOWN]]
        return table_html("Label these next", COLUMNS, rows, len(self))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name} ({each.likely}?)" for name, each in zip(self.names[:SHOWN], self, strict=False))
        return f"<Suggestions: {shown}{', …' if len(self) > SHOWN else ''}>"


def _short(cell: object) -> object:
    return "" if cell is None else f"{cell:.3f}" if isinstance(cell, float) else cell
