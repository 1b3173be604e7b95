"""Options of `fewnode data import` and `extend` about tables of nodes and edges, and what is made of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

from fewnode.errors import FewnodeError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from fewnode.datasets.splits import Split
    from fewnode.machine.delimited import Dialect


ALL = ""
"""What a bare `--directed` gives."""


def _unless_standard(out: Path | None) -> Path | None:
    """`-` is standard output, as elsewhere, and not a file of that name."""
    return None if out == Path("-") else out


OutTable = typer.Option(
    None, "--out", help="Where the table goes; default: -, standard output.", callback=_unless_standard
)
Out = typer.Option(..., "--out", help="Directory for the dataset; it must not hold one yet.")
Edges = typer.Option(
    [], "--edges", metavar="[NAME:]FILE", help="Table of edges: two columns of node ids. NAME: their kind. Repeatable."
)
IdColumn = typer.Option(
    None, "--id", metavar="COLUMN", help="Column of node ids; default: id, node, name or the first."
)
LabelColumn = typer.Option(
    None, "--label", metavar="COLUMN", help="Column of classes; default: label or class. Empty cell: unknown."
)
SourceColumn = typer.Option(
    None, "--source-column", metavar="COLUMN", help="Of the edges; default: source, from, src or the first."
)
TargetColumn = typer.Option(
    None, "--target-column", metavar="COLUMN", help="Of the edges; default: target, to, dst or the second."
)
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
UnknownEnds = typer.Option("refuse", "--unknown-ends", help="Edges to unknown nodes: refuse or drop.")
Separator = typer.Option(None, "--separator", help="Between cells: one character, tab or space; default: recognised.")
Decimal = typer.Option(None, "--decimal", help="Decimal mark of numbers, . or , ; default: recognised.")
Encoding = typer.Option(None, "--encoding", help="Of files of text, as latin-1 or utf-16; default: UTF-8.")
Missing = typer.Option(
    [], "--missing", metavar="WORD", help="One more word for a missing value. Repeatable. '': only empty cells are."
)
EncoderFolder = typer.Option(
    None, "--encoder", metavar="FOLDER", help="A text encoder on this machine; its vectors join the words of the text."
)
Multiline = typer.Option(False, "--multiline", help="Quoted cells may have several lines.")
NoHeader = typer.Option(False, "--no-header", help="The first line of the edges is an edge, not names of columns.")
NoNodeHeader = typer.Option(
    False, "--no-node-header", help="That of the nodes is a node; columns are `column 1`, `column 2` …"
)


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


def split_of(split: str | None, lists: Mapping[str, Path | None]) -> Split | None:
    """How classes are split, if anything was said about it."""
    given = {part: path for part, path in lists.items() if path is not None}
    if given and split is not None:
        raise FewnodeError("--split deals the classes and --train-classes, --valid-classes, --test-classes list them")
    return given or split


def columns_and_files(vector: Sequence[str]) -> tuple[list[str], list[str]]:
    """`--vector` is about both: columns of the table, and files beside it."""
    files = [given for given in vector if given.lower().endswith(".npy")]
    return [given for given in vector if given not in files], files


def dialect_of(
    separator: str | None, decimal: str | None, encoding: str | None, missing: Sequence[str], multiline: bool
) -> Dialect:
    """How the tables are written."""
    from fewnode.machine.delimited import Dialect

    if "" in missing and len(missing) > 1:
        raise FewnodeError("--missing '' says that only empty cells are missing; give it alone, or only words")
    return Dialect(separator, decimal, encoding, tuple(missing) or None, multiline=multiline)


def stop_words_of(option: str) -> Collection[str]:
    """The words to leave out, or those in a file of one a line."""
    from fewnode.datasets.bag import STOP_WORDS
    from fewnode.machine.files import read_lines

    if option in ("english", "none"):
        return STOP_WORDS if option == "english" else ()
    return {line.strip().lower() for _, line in read_lines(Path(option))}
