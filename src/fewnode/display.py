"""How things look in a notebook: small tables in HTML. Names in them are somebody's text, and are escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from fewnode.errors import FewnodeError, visible

SHOWN = 10
"""Rows of a long table."""


class Shown:
    """Something with a short text, and a small table in a notebook: both from its facts."""

    def facts(self) -> dict[str, object]:
        """What a person wants to know first, by name."""
        raise NotImplementedError

    def __repr__(self) -> str:
        told = ", ".join(f"{name} {value}" for name, value in self.facts().items() if value not in (None, ""))
        return visible(f"<{type(self).__name__}: {told}>")

    def _repr_html_(self) -> str:
        return facts_html(type(self).__name__, self.facts())


def facts_html(title: str, facts: Mapping[str, object]) -> str:
    """A title, and a row for each fact; what is empty is left out."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{_plain(name)}</th><td style='text-align:left'>{_plain(value)}</td></tr>"
        for name, value in facts.items()
        if value not in (None, "")
    )
    return f"<table><caption style='text-align:left'><b>{_plain(title)}</b></caption>{rows}</table>"


def table_html(title: str, header: Sequence[str], rows: Sequence[Sequence[object]], total: int | None = None) -> str:
    """A table with its title; `total` says how many rows there are, if these are not all."""
    head = "".join(f"<th>{_plain(name)}</th>" for name in header)
    body = "".join(f"<tr>{''.join(f'<td>{_plain(cell)}</td>' for cell in row)}</tr>" for row in rows)
    more = f"<p>… and {total - len(rows):,} more</p>" if total is not None and total > len(rows) else ""
    caption = f"<caption style='text-align:left'><b>{_plain(title)}</b></caption>"
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def as_frame(columns: Mapping[str, Any]) -> Any:
    """A `pandas.DataFrame`, if pandas is there."""
    try:
        import pandas as pd
    except ModuleNotFoundError:
        raise FewnodeError("to_pandas needs pandas: pip install pandas") from None
    return pd.DataFrame(dict(columns))


def _plain(value: object) -> str:
    return escape(visible(str(value)))
