"""The grid file: which methods are tried on which networks, how often, and what is drawn from it.

A grid is a TOML file. It has parts, each of which becomes a table or a figure of the report; what the part is for is
the name of its table: `[[compare]]`, `[[sweep]]`, `[[ablation]]` or `[[case]]`. Lists in a part multiply.
`docs/experiments.md` explains every key.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any, NoReturn

from fewnode.errors import FewnodeError, closest
from fewnode.machine.files import one_line, read_text

KINDS = ("compare", "sweep", "ablation", "case")
SHAPE = ("way", "shot", "query")
PART_KEYS = ("title", "datasets", "methods", *SHAPE, "seeds", "tasks", "pool_seed", "queries", "protocol")
DEFAULT_KEYS = PART_KEYS[1:]
METHOD_KEYS = ("method", "options", "seeds", "mode")
MODES, QUERIES = ("inductive", "transductive"), ("balanced", "long-tail")
PROTOCOLS = ("episodes", "all-classes")
DRAWS = 30
"""Of the protocol all-classes, unless `tasks` says otherwise."""
GRID_KEYS = ("title", "reported", "defaults", "methods", *KINDS)
TAKEN = ("method", "seed", *SHAPE)
"""What an option of a method cannot be called: the grid itself says these."""
MAX_CELLS = 1_000_000
MAX_BYTES = 1 << 18


@dataclass(frozen=True)
class Cell:
    """One training and its score on a pool of test tasks; of kind `case`, a close look at one of those tasks.

    `query` is M, the queries a class in training; test tasks ask for as many as `shot` (Deviation D5). By the protocol
    all-classes there is no training: `tasks` are draws, `query` is 0, and `way` is known once the network is.
    """

    dataset: str
    method: str
    way: int
    shot: int
    query: int
    seed: int
    tasks: int
    pool_seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    mode: str = MODES[0]
    queries: str = QUERIES[0]
    kind: str = "score"
    protocol: str = PROTOCOLS[0]

    def __str__(self) -> str:
        options = "".join(f" {name}={value}" for name, value in self.options.items())
        queries = "" if self.query in (0, self.shot) else f" {self.query}-query"
        what = " case study" if self.kind == "case" else f" seed {self.seed}"
        queries += "".join(f" {each}" for each in (self.mode, self.queries) if each not in (MODES[0], QUERIES[0]))
        return (
            f"{self.dataset} {self.method}{options} {setting_text(self.way, self.shot, self.protocol)}{queries}{what}"
        )


def setting_text(way: int, shot: int, protocol: str) -> str:
    """N and K in words."""
    return f"{way}-way {shot}-shot" if protocol == PROTOCOLS[0] else f"all classes {shot}-shot"


@dataclass(frozen=True)
class GridRow:
    """Cells that differ in the seed alone: one number of a table, one point of a curve."""

    label: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class GridPart:
    """One table or figure. `along` is the axis of a sweep."""

    kind: str
    title: str
    rows: tuple[GridRow, ...]
    along: str | None = None


@dataclass(frozen=True)
class Grid:
    """What one or several grid files ask for. `folders` are theirs: paths in a grid may be relative to it."""

    title: str
    parts: tuple[GridPart, ...]
    reported: tuple[dict[str, Any], ...] = ()
    folders: tuple[Path, ...] = ()

    @property
    def cells(self) -> list[Cell]:
        """Every cell once or more, in the order of the file."""
        return [cell for part in self.parts for row in part.rows for cell in row.cells]


def read_grids(paths: Sequence[Path]) -> Grid:
    """Several files as one grid; the first one's title is its title."""
    grids = [read_grid(path) for path in paths]
    return replace(
        grids[0],
        parts=tuple(part for grid in grids for part in grid.parts),
        reported=tuple(number for grid in grids for number in grid.reported),
        folders=tuple(dict.fromkeys(folder for grid in grids for folder in grid.folders)),
    )


def read_grid(path: Path) -> Grid:
    """A grid file, checked: what is wrong is said with the file, the place and what was expected."""
    top = TomlTable(path, "", read_toml(path), GRID_KEYS)
    defaults = top.table("defaults", DEFAULT_KEYS)
    methods = {
        name: TomlTable(path, f"[methods.{name}]", found, METHOD_KEYS)
        for name, found in top.table("methods", None).values.items()
    }
    parts = []
    for kind in KINDS:
        for number, found in enumerate(top.tables(kind), 1):
            place = f"[[{kind}]] {number}"
            table = TomlTable(path, place, {**defaults.values, **found}, PART_KEYS, own=found)
            parts.append(_part(kind, table, methods))
    if not parts:
        top.wrong(f"no part in it, expected at least one of {', '.join(f'[[{kind}]]' for kind in KINDS)}")
    if sum(len(row.cells) for part in parts for row in part.rows) > MAX_CELLS:
        top.wrong(f"more than {MAX_CELLS:,} cells")
    reported = top.text("reported", "")
    numbers = read_reported(path.parent / reported) if reported else ()
    return Grid(top.text("title", path.stem), tuple(parts), numbers, (path.resolve().parent,))


def read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_text(path, MAX_BYTES))
    except (ValueError, RecursionError) as error:  # a number of thousands of digits is a plain ValueError
        raise FewnodeError(f"{path}: not TOML: {one_line(error)}") from None


def read_reported(path: Path) -> tuple[dict[str, Any], ...]:
    """Numbers that somebody published, in percent: `[[result]]` tables of dataset, way, shot and metrics by method."""
    top = TomlTable(path, "", read_toml(path), ("source", "result"))
    source = top.text("source", path.stem)
    found = []
    for number, values in enumerate(top.tables("result"), 1):
        table = TomlTable(path, f"[[result]] {number}", values, ("dataset", "way", "shot", "accuracy", "f1"))
        key = {"source": source, "dataset": table.text("dataset"), "way": table.number("way", 2)}
        key["shot"] = table.number("shot", 1)
        for metric in ("accuracy", "f1"):
            for method, value in table.table(metric, None).values.items():
                if isinstance(value, bool) or not isinstance(value, int | float):
                    table.wrong(f"{metric} of {method} is {value!r}, expected a number")
                found.append({**key, "method": method, "metric": metric, "value": float(value)})
    return tuple(found)


# --- from tables to cells -----------------------------------------------------------------------------------------


def _part(kind: str, table: TomlTable, methods: Mapping[str, TomlTable]) -> GridPart:
    asked = _shape(kind, table)
    axes = {name: table.numbers(name, 2 if name == "way" else 1) for name in asked if name in table.values}
    for name in asked[:-1] or asked:
        if name not in axes:
            table.wrong(f"{name} is missing")
    lists = [name for name in asked if isinstance(table.values.get(name), list)]
    if kind == "sweep" and len(lists) != 1:
        table.wrong(f"one of {', '.join(asked)} must be a list, the axis of the sweep; {len(lists)} are")
    if kind in ("ablation", "case") and lists:
        table.wrong(f"{lists[0]} is a list, expected one number")
    for name in SHAPE:
        axes.setdefault(name, [0])
    datasets, labels = table.names("datasets"), table.names("methods")
    seeds = sum(len(_seeds(kind, table, methods.get(label))) for label in labels)
    if math.prod(map(len, axes.values())) * len(datasets) * seeds > MAX_CELLS:  # before any of them is made
        table.wrong(f"more than {MAX_CELLS:,} cells")
    settings = list(product(axes["way"], axes["shot"], axes["query"]))
    rows = [
        _row(kind, table, methods, dataset, label, numbers)
        for dataset in datasets
        for label in labels
        for numbers in settings
    ]
    return GridPart(kind, table.text("title", kind), tuple(rows), lists[0] if kind == "sweep" else None)


def _shape(kind: str, table: TomlTable) -> Sequence[str]:
    """What of N, K and M a part may say: by the protocol all-classes, K alone."""
    if table.choice("protocol", PROTOCOLS) == PROTOCOLS[0]:
        return SHAPE
    if kind == "case":
        table.wrong("a case study is of one task of test classes; leave out protocol")
    for name in ("way", "query", "queries"):
        if name in table.own:
            table.wrong(f"{name}: by the protocol all-classes every class and node is asked about; leave it out")
    return ("shot",)


def _row(
    kind: str,
    table: TomlTable,
    methods: Mapping[str, TomlTable],
    dataset: str,
    label: str,
    numbers: tuple[int, int, int],
) -> GridRow:
    own = methods.get(label)
    method = own.text("method", label) if own else label
    options = dict(own.table("options", None).values) if own else {}
    for name in options:
        if own and name in TAKEN:
            own.wrong(f"options: {name!r} is not an option of a method; the parts of the grid say it")
    way, shot, query = numbers
    protocol = table.choice("protocol", PROTOCOLS)
    episodes = protocol == PROTOCOLS[0]
    cell = Cell(
        dataset=dataset,
        method=method,
        way=way,
        shot=shot,
        query=query or (shot if episodes else 0),
        seed=0,
        tasks=table.number("tasks", 2, 50 if episodes else DRAWS),
        pool_seed=table.number("pool_seed", 0, 0),
        options=options,
        mode=own.choice("mode", MODES) if own else MODES[0],
        queries=table.choice("queries", QUERIES) if episodes else QUERIES[0],
        kind="case" if kind == "case" else "score",
        protocol=protocol,
    )
    return GridRow(label, tuple(replace(cell, seed=seed) for seed in _seeds(kind, table, own)))


def _seeds(kind: str, table: TomlTable, own: TomlTable | None) -> Sequence[int]:
    """Those of the method, unless the part itself names some; a case study is of one."""
    seeds = own.seeds() if own and "seeds" in own.values and "seeds" not in table.own else table.seeds()
    return seeds[:1] if kind == "case" else seeds


class TomlTable:
    """One table of a file. Values are asked for by key; what is wrong is said with its place."""

    def __init__(
        self,
        path: Path,
        place: str,
        values: Any,
        known: Sequence[str] | None,
        own: Mapping[str, Any] | None = None,
    ) -> None:
        self.path, self.place = path, place
        if not isinstance(values, dict):
            self.wrong("expected a table")
        self.values: dict[str, Any] = values
        self.own: Mapping[str, Any] = values if own is None else own
        """What the table itself says, without defaults."""
        for key in values:
            if known is not None and key not in known:
                self.wrong(f"unknown key {key!r}{closest(key, known)}; known are {', '.join(known)}")

    def wrong(self, what: str) -> NoReturn:
        raise FewnodeError(f"{self.path}: {self.place + ': ' if self.place else ''}{what}")

    def table(self, key: str, known: Sequence[str] | None) -> TomlTable:
        place = f"[{key}]" if not self.place else f"{self.place} {key}"
        return TomlTable(self.path, place, self.values.get(key, {}), known)

    def tables(self, key: str) -> list[dict[str, Any]]:
        found = self.values.get(key, [])
        if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
            self.wrong(f"{key}: expected tables that begin with [[{key}]]")
        return list(found)

    def text(self, key: str, default: str | None = None) -> str:
        found = self.values.get(key, default)
        if not isinstance(found, str):
            self.wrong(f"{key} is {found!r}, expected text" if key in self.values else f"{key} is missing")
        return found

    def choice(self, key: str, known: Sequence[str]) -> str:
        """One of the known words, the first unless the table says otherwise."""
        found = self.text(key, known[0])
        if found not in known:
            self.wrong(f"{key} is {found!r}{closest(found, known)}, expected {' or '.join(known)}")
        return found

    def number(self, key: str, least: int, default: int | None = None) -> int:
        found: Any = self.values.get(key, default)
        if key not in self.values and default is None:
            self.wrong(f"{key} is missing")
        if not _is_count(found, least):
            self.wrong(f"{key} is {found!r}, expected a whole number from {least}")
        return int(found)

    def numbers(self, key: str, least: int) -> list[int]:
        return self._list(key, lambda each: _is_count(each, least), f"a whole number from {least}")

    def names(self, key: str) -> list[str]:
        return self._list(key, lambda each: isinstance(each, str) and bool(each), "a name")

    def seeds(self) -> Sequence[int]:
        """A list of seeds, or how many: 0, 1, 2 …"""
        if isinstance(self.values.get("seeds"), list):
            return self.numbers("seeds", 0)
        return range(self.number("seeds", 1, 1))

    def _list(self, key: str, good: Callable[[Any], bool], what: str) -> list[Any]:
        if key not in self.values:
            self.wrong(f"{key} is missing")
        found = self.values[key] if isinstance(self.values[key], list) else [self.values[key]]
        for each in found:
            if not good(each):
                self.wrong(f"{key} is {self.values[key]!r}, expected {what} or a list of such")
        if not found or len(set(found)) < len(found):
            self.wrong(f"{key} is {self.values[key]!r}, expected a list in which nothing is twice, and not empty")
        return found


def _is_count(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**31
