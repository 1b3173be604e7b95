"""Options of the commands that make a dataset and that are no fields of `ImportSpec`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fewnode.cli.options import Command
from fewnode.errors import FewnodeError
from fewnode.options import Options, option


class Target(Options):
    """Where a dataset goes."""

    out: Path = option("Directory for the dataset; it must not hold one yet.", ...)


EDGES = option(
    "Table of edges, or FILE:SOURCE,TARGET with its columns of node ids. NAME: their kind. Repeatable.",
    [],
    metavar="[NAME:]FILE",
)


class ImportCommand(Command):
    """A command whose `--directed` may have a value or not.

    A word behind it is the name of a relation, unless it is the file to import.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        tables = any(arg.split("=")[0] in ("--nodes", "--edges") for arg in args)
        given: list[str] = []
        for arg, after in zip(args, [*args[1:], "-"], strict=True):
            bare = arg == "--directed" and (after.startswith("-") or (not tables and Path(after).exists()))
            given.append("--directed=" if bare else arg)
        return super().parse_args(ctx, given)


def named_files(flag: str, files: Sequence[str]) -> list[Any]:
    """The files, those of a named kind under its name. A name ends at a colon behind which there is a file.

    Behind a file of edges and a colon two columns may stand, the ends of its edges.
    """
    found: list[Any] = []
    for given in files:
        table = _table(given)
        name, colon, rest = given.partition(":")
        if table is None and colon and name.strip() and (named := _table(rest)) is not None:
            table = {name.strip(): named}
        elif table is None and colon:
            raise FewnodeError(f"{flag} {given}: no such file, expected FILE or NAME:FILE, and {rest!r} is no file")
        found.append(Path(given) if table is None else table)
    return found


def _table(given: str) -> Any:
    """A file, or a file and the two columns behind it; None if there is no such file."""
    from fewnode.tables.edges import EdgeTable

    if Path(given).exists():
        return Path(given)
    file, colon, columns = given.rpartition(":")
    if not colon or not Path(file).is_file() or columns.count(",") != 1:
        return None
    source, target = columns.split(",")
    return EdgeTable(Path(file), source.strip(), target.strip())
