"""Options about tables that `fewnode data import` and `extend` share, and what is made of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from fewnode.errors import FewnodeError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from fewnode.datasets.splits import Split
    from fewnode.machine.delimited import Dialect


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
