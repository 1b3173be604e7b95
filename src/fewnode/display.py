"""How things look in a notebook: small tables in HTML. Names in them are somebody's text, and are escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from fewnode.errors import visible

SHOWN = 10
"""Rows of a long table."""


class Shown:
    """Something with a short text, and a small table in a notebook: both from its facts."""

    def facts(self) -> dict[str, object]:
        """What a person wants to know first, by name. What is empty is not shown."""
        raise NotImplementedError

    def __repr__(self) -> str:
        told = ", ".join(f"{name} {value}" for name, value in self.facts().items() if value not in (None, ""))
        return visible(f"<{type(self).__name__}: {told}>")

    def _repr_html_(self) -> str:
        rows = [(name, value) for name, value in self.facts().items() if value not in (None, "")]
        left = " style='text-align:left'"
        body = "".join(f"<tr><th{left}>{_plain(name)}</th><td{left}>{_plain(value)}</td></tr>" for name, value in rows)
        return f"<table><caption{left}><b>{type(self).__name__}</b></caption>{body}</table>"


def table_html(title: str, header: Sequence[str], rows: Sequence[Sequence[object]], total: int) -> str:
    """A table with its title, and how many rows of `total` are not in it."""
    head = "".join(f"<th>{_plain(name)}</th>" for name in header)
    body = "".join(f"<tr>{''.join(f'<td>{_plain(cell)}</td>' for cell in row)}</tr>" for row in rows)
    more = f"<p>… and {total - len(rows):,} more</p>" if total > len(rows) else ""
    caption = f"<caption style='text-align:left'><b>{_plain(title)}</b></caption>"
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _plain(value: object) -> str:
    return escape(visible(str(value)))
