"""Options about edges and classes that `fewnode data import` and `extend` share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand

from fewnode.errors import FewnodeError

ALL = ""
"""What a bare `--directed` gives."""

Weight = typer.Option(None, "--weight", metavar="COLUMN", help="Of the edges: numbers from 0 on.")
WeightScale = typer.Option(
    None,
    "--weight-scale",
    metavar="SCALE",
    help="none or log; default: log if a few are far larger than the rest.",
)
Relation = typer.Option(None, "--relation", metavar="COLUMN", help="Of the edges: what kind of edge each is.")
Directed = typer.Option(
    [],
    "--directed",
    metavar="[NAME]",
    help="Keep the direction of all edges, or of the relation NAME only. Repeatable.",
)
LabelSeparator = typer.Option(
    None, "--label-separator", metavar="MARK", help="Between several classes in a cell, as '|'."
)
NoLabel = typer.Option(False, "--no-label", help="No column holds classes: they are told later, when you ask.")
Labels = typer.Option(None, "--labels", metavar="FILE", help="Table node,class with a row for each class of a node.")
Hierarchy = typer.Option(
    None, "--hierarchy", metavar="MARK|FILE", help="'/' if a/b is a part of class a; or a table class,parent."
)
Kind = typer.Option(None, "--kind", metavar="COLUMN", help="Of the nodes: what kind of node each is.")


class ImportCommand(TyperCommand):
    """A command whose `--directed` may have a value or not.

    A word behind it is the name of a relation, unless it is the file to import.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        tables = any(arg.split("=")[0] in ("--nodes", "--edges") for arg in args)
        given: list[str] = []
        for arg, after in zip(args, [*args[1:], "-"], strict=True):
            bare = arg == "--directed" and (after.startswith("-") or (not tables and Path(after).exists()))
            given.append(f"--directed={ALL}" if bare else arg)
        return super().parse_args(ctx, given)


def directions(given: Sequence[str]) -> bool | tuple[str, ...]:
    """True for all edges, or the names of relations."""
    if ALL in given and len(given) > 1:
        raise FewnodeError("--directed alone is about all edges; give it alone, or only with names of relations")
    return ALL in given or tuple(given) or False


def named_files(option: str, files: Sequence[str]) -> list[Path | dict[str, Path]]:
    """The files, those of a named kind under its name. A name ends at a colon behind which there is a file."""
    found: list[Path | dict[str, Path]] = []
    for given in files:
        name, colon, rest = given.partition(":")
        if not colon or Path(given).exists():
            found.append(Path(given))
        elif not name.strip() or not Path(rest).exists():
            raise FewnodeError(f"{option} {given}: no such file, expected FILE or NAME:FILE, and {rest!r} is no file")
        else:
            found.append({name.strip(): Path(rest)})
    return found


def hierarchy_of(given: str | None) -> str | Path | None:
    """A mark, or the file of a table."""
    return given if given is None or len(given) < 3 else Path(given)
