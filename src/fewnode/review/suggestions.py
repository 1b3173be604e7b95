"""Nodes worth labelling, as a table."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any

from fewnode.display import SHOWN, table_html

COLUMNS = ("node", "label", "probability", "member", "covers", "purpose")


@dataclass(frozen=True)
class Suggestion:
    """A node to ask about: the class it is likeliest in, or is asked about, and P(it is in it), as `judge` has it.

    `member` is P(it is in any class), None where that cannot be told: then `probability` takes for granted that it is
    in one of them. `covers` is the share of the classes' nodes that it stands for. `purpose` is what the answer is for.
    """

    node: str
    label: str
    probability: float
    member: float | None
    covers: float
    purpose: str


class Suggestions(list[Suggestion]):
    """A list of suggestions that is also a table: in a notebook, as text, and for pandas."""

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame`, a row a node."""
        import pandas as pd

        return pd.DataFrame(map(astuple, self), columns=COLUMNS if self else [])

    def _repr_html_(self) -> str:
        rows = [
            ["" if cell is None else f"{cell:.3f}" if isinstance(cell, float) else cell for cell in astuple(each)]
            for each in self[:SHOWN]
        ]
        return table_html("Label these next", COLUMNS, rows, len(self))

    def __repr__(self) -> str:
        shown = ", ".join(f"{each.node} ({each.label}?)" for each in self[:SHOWN])
        return f"<Suggestions: {shown}{', …' if len(self) > SHOWN else ''}>"
