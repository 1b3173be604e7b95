"""How tables become a dataset: one model, which is the keyword arguments of `read_tables`, the options of
`fewnode data import`, what a dataset keeps of its import, and what new rows are read by."""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from fewnode.errors import FewnodeError, closest
from fewnode.machine.files import one_line

MISSING = ("NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "n.a.", "NaN", "nan", "NAN", "-NaN", "-nan", "NaT",
           "None", "NULL", "Null", "null", "-", "--", "?")  # fmt: skip
"""Words that stand for a missing value in what spreadsheets, databases, R and pandas write."""
NAMED_SEPARATORS = {"tab": "\t", "\\t": "\t", "space": " "}
ROLES = ("text", "numeric", "category", "vector")
SHARES = "50/20/30"
Columns: TypeAlias = tuple[str, ...]
Split: TypeAlias = str | Mapping[str, Sequence[str] | Path]
"""Shares `50/20/30`, class counts `40,17,20`, or class names of some parts: a sequence, or a file with one a line."""


def _option(
    description: str, default: Any = None, flag: str | None = None, metavar: str | None = None, door: str = "both"
) -> Any:
    """A field, its help, and what the command line calls it. `door` python: only code can give it."""
    return Field(default, description=description, json_schema_extra={"flag": flag, "metavar": metavar, "door": door})


class ImportSpec(BaseModel):
    """What is said about tables of nodes and edges. What is not said is recognised, or refused where it cannot be.

    >>> ImportSpec(numeric="size", separator="tab").numeric
    ('size',)
    """

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True, hide_input_in_errors=True)

    id: str | None = _option("Column of node ids; default: id, node, name or the first.", metavar="COLUMN")
    label: str | None = _option("Column of classes; default: label or class. Empty cell: unknown.", metavar="COLUMN")
    no_label: bool = _option("No column holds classes: they are told later, when you ask.", default=False)
    label_separator: str | None = _option("Between several classes in a cell, as '|'.", metavar="MARK")
    labels: Any = _option("Table node,class with a row for each class of a node.", metavar="FILE")
    hierarchy: Any = _option("'/' if a/b is a part of class a; or a table class,parent.", metavar="MARK|FILE")
    kind: str | None = _option("Of the nodes: what kind of node each is.", metavar="COLUMN")
    text: Columns = _option("A column of text: its words are counted. Repeatable.", (), metavar="COLUMN")
    numeric: Columns = _option("A column of numbers or dates, standardised. Repeatable.", (), metavar="COLUMN")
    category: Columns = _option("A column of categories, one-hot. Repeatable.", (), metavar="COLUMN")
    vector: Columns = _option(
        "Lists of numbers, scaled as a whole, or a FILE.npy beside the table. Repeatable.", (), metavar="COLUMN"
    )
    vectors: Any = _option("Matrices beside the table, a row for each node, by name.", door="python")
    only: bool = _option("Use the columns that are named and no others.", default=False)
    encoder: Any = _option("A text encoder on this machine; its vectors join the words of the text.", metavar="FOLDER")
    source: str | None = _option(
        "Of the edges; default: source, from, src or the first.", flag="--source-column", metavar="COLUMN"
    )
    target: str | None = _option(
        "Of the edges; default: target, to, dst or the second.", flag="--target-column", metavar="COLUMN"
    )
    weight: str | None = _option("Of the edges: numbers from 0 on.", metavar="COLUMN")
    weight_scale: str | None = _option(
        "none or log; default: log if a few are far larger than the rest.", metavar="SCALE"
    )
    relation: str | None = _option("Of the edges: what kind of edge each is.", metavar="COLUMN")
    directed: bool | Columns = _option(
        "Keep the direction of all edges, or of the relation NAME only. Repeatable.", default=False, metavar="[NAME]"
    )
    unknown_ends: Literal["refuse", "drop"] = _option("Edges to unknown nodes: refuse or drop.", default="refuse")
    separator: str | None = _option("Between cells: one character, tab or space; default: recognised.")
    decimal: Literal[".", ","] | None = _option("Decimal mark of numbers, . or , ; default: recognised.")
    encoding: str | None = _option("Of files of text, as latin-1 or utf-16; default: UTF-8.")
    missing: Columns | None = _option(
        "One more word for a missing value. Repeatable. '': only empty cells are.", metavar="WORD"
    )
    multiline: bool = _option("Quoted cells may have several lines.", default=False)
    no_header: bool = _option("The first line of the edges is an edge, not names of columns.", default=False)
    no_node_header: bool = _option("That of the nodes is a node; columns are `column 1`, `column 2` …", default=False)
    split: Any = _option("Shares of classes, 50/20/30, or counts, 40,17,20; replaces the file's own.")
    seed: int = _option("Of that split.", default=0)
    min_nodes: int = _option("Smaller classes are in no part of that split.", default=10)
    train_classes: Path | None = _option("File of class names, one a line.", metavar="FILE")
    valid_classes: Path | None = _option("File of class names for validation.", metavar="FILE")
    test_classes: Path | None = _option("File of class names for test.", metavar="FILE")
    vocabulary: int = _option("Words at most.", default=10_000)
    min_count: int = _option("Nodes that a word is in at least.", default=2)
    max_share: float = _option("Share of nodes that a word is in at most.", default=0.5)
    stop_words: Any = _option("english, none, or a file with one a line.", default="english")
    name: str | None = _option("Of the network; in a folder of published files: which one.")
    memory: str | None = _option(
        "Stay within this much memory, as 6G; what is larger waits on the disk.", metavar="SIZE"
    )

    @classmethod
    def of(cls, given: Mapping[str, Any], door: Callable[[str], str] = str) -> Self:
        """The model of what was given, or a sentence about the first thing that is wrong; `door` words a field."""
        if unknown := [name for name in given if name not in cls.model_fields]:
            raise FewnodeError(f"there is no option {unknown[0]!r}{closest(unknown[0], cls.model_fields)}")
        try:
            return cls(**given)
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            what = fault["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
            told = what if fault["type"] == "value_error" else f"found {fault['input']!r:.60}, expected {what}"
            field = str(fault["loc"][0]) if fault["loc"] else ""
            raise FewnodeError(one_line(ValueError(f"{door(field)}: {told}" if field else told))) from None

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

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.missing and "" in self.missing and len(self.missing) > 1:
            raise ValueError("missing '' says that only empty cells are missing; give it alone, or only words")
        if self.weight is not None and self.weight == self.relation:
            raise ValueError("weight and relation are two columns, and the two of them have one name")
        for what, mark in (("label separator", self.label_separator), ("hierarchy", self.path_mark)):
            if mark is not None and not mark.strip():
                raise ValueError(f"{what} {mark!r}: expected a mark such as | or /")
        if self.split is not None and self.class_lists:
            raise ValueError("split deals the classes, and train_classes, valid_classes, test_classes list them")
        if self.min_count < 1 or not 0 < self.max_share <= 1 or self.vocabulary < 1:
            found = f"words of {self.min_count} nodes to a share of {self.max_share}, {self.vocabulary} at most"
            raise ValueError(f"{found}: expected at least 1, 0 to 1, at least 1")
        if self.seed < 0 or self.min_nodes < 1:
            raise ValueError("seed counts from 0, and min_nodes from 1")
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
    def path_mark(self) -> str | None:
        """What stands between a class and its parts, as the / in `a/b`: a short text that is no file."""
        mark = self.hierarchy
        return mark if isinstance(mark, str) and len(mark.strip()) < 3 and not Path(mark).is_file() else None

    @property
    def class_lists(self) -> dict[str, Path]:
        lists = {part: getattr(self, f"{part}_classes") for part in ("train", "valid", "test")}
        return {part: path for part, path in lists.items() if path is not None}

    def kept(self) -> dict[str, Any]:
        """What a dataset remembers: how its values are written and what its columns are called."""
        kept = {name: getattr(self, name) for name in REMEMBERED if getattr(self, name) is not None}
        return {**kept, **({"hierarchy": self.path_mark} if self.path_mark else {})}


REMEMBERED = ("id", "label", "label_separator", "kind", "weight", "relation", "decimal", "missing")
"""New rows have the columns of the old ones, and their values are written as theirs are."""
