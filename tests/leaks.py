"""The table of docs/leaks.md, which the tests hold methods to."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).parents[1] / "docs" / "leaks.md"


class MaySee(NamedTuple):
    """A row of the table."""

    training: str
    validation: str
    test_nodes: str
    transductive: str


def may_see() -> dict[str, MaySee]:
    """Each method's row."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {name.strip("`"): MaySee(*seen) for name, *seen in cells}
