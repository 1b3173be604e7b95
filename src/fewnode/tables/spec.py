"""How tables become a dataset: one model, which is the keyword arguments of `read_tables`, the options of
`fewnode data import`, what a dataset keeps of its import, and what new rows are read by."""

from __future__ import annotations

import codecs
import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias

from pydantic import field_validator, model_validator

from fewnode.errors import FewnodeError
from fewnode.options import Options, option

MISSING = ("NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "n.a.", "NaN", "nan", "NAN", "-NaN", "-nan", "NaT",
           "None", "NULL", "Null", "null", "-", "--", "?")  # fmt: skip
"""Words that stand for a missing value in what spreadsheets, databases, R and pandas write."""
NAMED_SEPARATORS = {"tab": "\t", "\\t": "\t", "space": " "}
ROLES = ("text", "numeric", "category", "vector")
SHARES = "50/20/30"
Columns: TypeAlias = tuple[str, ...]
Split: TypeAlias = str | Mapping[str, Sequence[str] | Path]
"""Shares `50/20/30`, class counts `40,17,20`, or class names of some parts: a sequence, or a file with one a line."""


class ImportSpec(Options):
    """What is said about tables of nodes and edges. What is not said is recognised, or refused where it cannot be.

    >>> ImportSpec(numeric="size", separator="tab").numeric
    ('size',)
    """

    id: str | None = option("Column of node ids; default: id, node, name or the first.", metavar="COLUMN")
    label: str | None = option("Column of classes; default: label or class. Empty cell: unknown.", metavar="COLUMN")
    no_label: bool = option("No column holds classes: they are told later, when you ask.", default=False)
    label_separator: str | None = option("Between several classes in a cell, as '|'.", metavar="MARK", rare=True)
    labels: Any = option("Table node,class with a row for each class of a node.", metavar="FILE", rare=True)
    hierarchy: str | None = option("'/' if a/b is a part of class a.", metavar="MARK", rare=True)
    kind: str | None = option("Of the nodes: what kind of node each is.", metavar="COLUMN", rare=True)
    text: Columns = option("A column of text: its words are counted. Repeatable.", (), metavar="COLUMN")
    numeric: Columns = option("A column of numbers or dates, standardised. Repeatable.", (), metavar="COLUMN")
    category: Columns = option("A column of categories, one-hot. Repeatable.", (), metavar="COLUMN")
    vector: Columns = option(
        "Lists of numbers, scaled as a whole, or a FILE.npy beside the table. Repeatable.", (), metavar="COLUMN"
    )
    vectors: Any = option("Matrices beside the table, a row for each node, by name.", door="python")
    only: bool = option("Use the columns that are named and no others.", default=False, rare=True)
    encoder: Any = option(
        "A text encoder on this machine; its vectors join the words of the text.", metavar="FOLDER", rare=True
    )
    source: str | None = option(
        "Of the edges; default: source, from, src or the first.", flag="--source-column", metavar="COLUMN"
    )
    target: str | None = option(
        "Of the edges; default: target, to, dst or the second.", flag="--target-column", metavar="COLUMN"
    )
    weight: str | None = option("Of the edges: numbers from 0 on.", metavar="COLUMN")
    weight_scale: str | None = option(
        "none or log; default: log if a few are far larger than the rest.", metavar="SCALE", rare=True
    )
    relation: str | None = option("Of the edges: what kind of edge each is.", metavar="COLUMN", rare=True)
    directed: bool | Columns = option(
        "Keep the direction of all edges, or of the relation NAME only. Repeatable.", default=False, metavar="[NAME]"
    )
    unknown_ends: Literal["refuse", "drop"] = option(
        "Edges to unknown nodes: refuse or drop.", default="refuse", rare=True
    )
    separator: str | None = option("Between cells: one character, tab or space; default: recognised.")
    decimal: Literal[".", ","] | None = option("Decimal mark of numbers, . or , ; default: recognised.", rare=True)
    encoding: str | None = option("Of files of text, as latin-1 or utf-16; default: UTF-8.", rare=True)
    missing: Columns | None = option(
        "One more word for a missing value. Repeatable. '': only empty cells are.", metavar="WORD", rare=True
    )
    multiline: bool = option("Quoted cells may have several lines.", default=False, rare=True)
    no_header: bool = option("The first line of the edges is an edge, not names of columns.", default=False, rare=True)
    no_node_header: bool = option(
        "That of the nodes is a node; columns are `column 1`, `column 2` …", default=False, rare=True
    )
    split: Any = option("Shares of classes, 50/20/30, or counts, 40,17,20; replaces the file's own.", rare=True)
    seed: int = option("Of that split.", default=0, rare=True, ge=0)
    min_nodes: int = option("Smaller classes are in no part of that split.", default=10, rare=True, ge=1)
    train_classes: Path | None = option("File of class names, one a line.", metavar="FILE", rare=True)
    valid_classes: Path | None = option("File of class names for validation.", metavar="FILE", rare=True)
    test_classes: Path | None = option("File of class names for test.", metavar="FILE", rare=True)
    vocabulary: int = option("Words at most.", default=10_000, rare=True, ge=1)
    min_count: int = option("Nodes that a word is in at least.", default=2, rare=True, ge=1)
    max_share: float = option("Share of nodes that a word is in at most.", default=0.5, rare=True)
    stop_words: Any = option("english, none, or a file with one a line.", default="english", rare=True)
    link: str | None = option(
        "Address of a node, as 'https://…/{id}', for people who judge it.", metavar="URL", rare=True
    )
    name: str | None = option("Of the network; in a folder of published files: which one.", rare=True)
    memory: str | None = option(
        "Stay within this much memory, as 6G; what is larger waits on the disk.", metavar="SIZE", rare=True
    )

    @field_validator("text", "numeric", "category", "vector", "missing", mode="before")
    @classmethod
    def _several(cls, given: Any) -> Any:
        return (given,) if isinstance(given, (str, os.PathLike)) else given

    @field_validator("directed", mode="before")
    @classmethod
    def _some_directed(cls, given: Any) -> Any:
        if isinstance(given, (list, tuple)) and "" in given:
            if len(given) > 1:
                raise ValueError("give it alone, for all edges, or only with names of relations")
            return True
        return (given,) if isinstance(given, str) else given or False

    @field_validator("separator")
    @classmethod
    def _one_character(cls, given: str | None) -> str | None:
        mark = given if given is None else NAMED_SEPARATORS.get(given, given)
        if mark is not None and (len(mark) != 1 or not mark.isascii() or mark.isalnum() or mark in '"\r\n\0'):
            raise ValueError(f"found {given!r}, expected one character such as ; or |, or tab or space")
        return mark

    @field_validator("encoding")
    @classmethod
    def _known_encoding(cls, given: str | None) -> str | None:
        """Only encodings of text: those that read ASCII as it is, and the wide ones of Unicode."""
        plain = b'a,b;c|d\te"f" 1.5 .xn--mnchen-3ya. \\x41\\u0041 +AGE-\r\n'
        try:
            wide = given is None or codecs.lookup(given).name.startswith(("utf-16", "utf-32"))
            fits = wide or plain.decode(str(given)) == plain.decode("ascii")
        except (LookupError, ValueError):
            fits = False
        if not fits:
            raise ValueError(f"{str(given)[:40]!r} is not known for text; try latin-1, cp1252, utf-16 or utf-8")
        return given

    @field_validator("link")
    @classmethod
    def _leads_to_a_node(cls, given: str | None) -> str | None:
        if given is not None and (not given.startswith(("https://", "http://")) or "{id}" not in given):
            raise ValueError(f"{given[:60]!r}: expected https://, and {{id}} where the name of the node stands")
        return given

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.missing and "" in self.missing and len(self.missing) > 1:
            raise ValueError("missing '' says that only empty cells are missing; give it alone, or only words")
        if self.weight is not None and self.weight == self.relation:
            raise ValueError("weight and relation are two columns, and the two of them have one name")
        for what, mark in (("label separator", self.label_separator), ("hierarchy", self.hierarchy)):
            if mark is not None and (not mark.strip() or (what == "hierarchy" and len(mark.strip()) > 2)):
                raise ValueError(f"{what} {mark[:40]!r}: expected a mark such as | or /")
        if self.split is not None and self.class_lists:
            raise ValueError("split deals the classes, and train_classes, valid_classes, test_classes list them")
        if not 0 < self.max_share <= 1:
            raise ValueError(f"max share {self.max_share}: expected more than 0, and at most 1")
        return self

    # --- what follows from it -------------------------------------------------------------------------------------

    @cached_property
    def roles(self) -> dict[str, str]:
        """The role of each column that was named."""
        roles: dict[str, str] = {}
        for role in ROLES:
            for column in getattr(self, role):
                if column.lower().endswith(".npy") and role == "vector":
                    continue
                if roles.setdefault(column, role) != role:
                    raise FewnodeError(f"column {column!r} is given as {roles[column]} and as {role}; choose one")
        return roles

    @property
    def vector_files(self) -> list[str]:
        return [column for column in self.vector if column.lower().endswith(".npy")]

    @cached_property
    def missing_words(self) -> frozenset[str]:
        """What stands for a missing value, beside an empty cell."""
        if self.missing == ("",):
            return frozenset()
        return frozenset((*MISSING, *(word.strip() for word in self.missing or ()))) - {""}

    @property
    def class_lists(self) -> dict[str, Path]:
        lists = {part: getattr(self, f"{part}_classes") for part in ("train", "valid", "test")}
        return {part: path for part, path in lists.items() if path is not None}

    def kept(self) -> dict[str, Any]:
        """What a dataset remembers: how its values are written and what its columns are called."""
        return {name: getattr(self, name) for name in REMEMBERED if getattr(self, name) is not None}


REMEMBERED = ("id", "label", "label_separator", "hierarchy", "kind", "weight", "relation", "decimal", "missing")
"""New rows have the columns of the old ones, and their values are written as theirs are."""
