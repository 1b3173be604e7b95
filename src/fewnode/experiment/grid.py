"""The grid file: which methods are tried on which networks, how often, and what is drawn from it.

A grid is a TOML file. It has parts, each of which becomes a table or a figure of the report; what the part is for is
the name of its table: `[[compare]]`, `[[sweep]]`, `[[ablation]]` or `[[case]]`. Lists in a part multiply.
`docs/experiments.md` explains every key.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Collection, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from fewnode._system.files import one_line, read_text
from fewnode.errors import FewnodeError, closest

KINDS = ("compare", "sweep", "ablation", "case")
SHAPE = ("way", "shot", "query")
TASKS, DRAWS = 50, 30
"""Of test classes, and of the protocol all-classes, unless `tasks` says otherwise."""
MAX_CELLS = 100_000
MAX_BYTES = 1 << 18


# --- what may stand in the files ----------------------------------------------------------------------------------


def _as_list(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _distinct(values: list[Any]) -> list[Any]:
    if not values or len(set(values)) < len(values):
        raise ValueError("expected a list in which nothing is twice, and not empty")
    return values


def _seeds(value: Any) -> Any:
    """A list of seeds, or how many: 0, 1, 2 …"""
    if type(value) is not int:
        return value
    if not 1 <= value <= MAX_CELLS:
        raise ValueError(f"expected 1 to {MAX_CELLS:,} seeds")
    return list(range(value))


def _not_taken(options: dict[str, Any]) -> dict[str, Any]:
    for name in ("method", "seed", *SHAPE):
        if name in options:
            raise ValueError(f"{name!r} is not an option of a method; the parts of the grid say it")
    return options


Item = TypeVar("Item")
ListOf = Annotated[list[Item], BeforeValidator(_as_list), AfterValidator(_distinct)]
Name = Annotated[str, Field(min_length=1)]
Seed = Annotated[int, Field(ge=0, lt=1 << 31)]
Count = Annotated[int, Field(ge=1, lt=1 << 31)]
Several = Annotated[int, Field(ge=2, lt=1 << 31)]
Seeds = Annotated[list[Seed], BeforeValidator(_seeds), AfterValidator(_distinct)]


class Table(BaseModel):
    """A table of a TOML file; what it does not know is refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class PartTable(Table):
    """A part of the grid, or what all parts have in common. Ways, shots, queries, networks and methods multiply."""

    title: str | None = None
    datasets: ListOf[Name] = []
    methods: ListOf[Name] = []
    way: ListOf[Several] = []
    shot: ListOf[Count] = []
    query: ListOf[Count] = []
    seeds: Seeds = [0]
    tasks: Several | None = None
    pool_seed: Seed = 0
    queries: Literal["balanced", "long-tail"] = "balanced"
    protocol: Literal["episodes", "all-classes"] = "episodes"


class Variant(Table):
    """How a method is meant, wherever the grid names it."""

    method: str | None = None
    options: Annotated[dict[str, Any], AfterValidator(_not_taken)] = {}
    seeds: Seeds = []
    mode: Literal["inductive", "transductive"] = "inductive"


class GridFile(Table):
    """The tables of a grid."""

    title: str | None = None
    reported: str | None = None
    defaults: PartTable = PartTable()
    methods: dict[str, Variant] = {}
    compare: list[PartTable] = []
    sweep: list[PartTable] = []
    ablation: list[PartTable] = []
    case: list[PartTable] = []


class Reported(Table):
    """`[[result]]` in a file of published numbers: those of one setting, by method, in percent."""

    source: str = ""
    dataset: str
    way: Several
    shot: Count
    accuracy: dict[str, float] = {}
    f1: dict[str, float] = {}


class ReportedFile(Table):
    """Published numbers, and who published them."""

    source: str | None = None
    result: list[Reported] = []


AnyFile = TypeVar("AnyFile", GridFile, ReportedFile)
TABLES: dict[str, type[Table]] = {**dict.fromkeys(KINDS, PartTable), "methods": Variant, "result": Reported}


def _read(path: Path, file: type[AnyFile]) -> AnyFile:
    """What is wrong with a file is said with its name, the table and what was expected."""
    try:
        return file.model_validate(tomllib.loads(read_text(path, MAX_BYTES)))
    except ValidationError as error:
        fault = error.errors(include_url=False, include_context=False)[0]
    except (ValueError, RecursionError) as error:  # a number of thousands of digits is a plain ValueError
        raise FewnodeError(f"{path}: not TOML: {one_line(error)}") from None
    place, loc = "", list(fault["loc"])
    table: type[Table] = file
    if loc[0] == "defaults" and len(loc) > 1:
        place, table, loc = "[defaults]: ", PartTable, loc[1:]
    elif loc[0] in TABLES and len(loc) > 1:
        number = loc[1]
        place = f"[[{loc[0]}]] {number + 1}: " if isinstance(number, int) else f"[{loc[0]}.{number}]: "
        table, loc = TABLES[str(loc[0])], loc[2:]
    key, known, value = ".".join(map(str, loc)), list(table.model_fields), fault["input"]
    if fault["type"] == "extra_forbidden":
        what = f"unknown key {key!r}{closest(key, known)}; known are {', '.join(known)}"
    elif not key:
        what = "expected a table"
    else:
        shown = f" is {value!r:.60}" if isinstance(value, str | int | float | list) else ""
        what = f"{key}{shown}: {fault['msg'].removeprefix('Value error, ')}"
    raise FewnodeError(f"{path}: {place}{what}")


# --- what is asked for --------------------------------------------------------------------------------------------


class GridRow(BaseModel):
    """One number of a table, one point of a curve: a training and its score on a pool of test tasks for each seed.

    A row of kind `case` looks closely at one of those tasks. `query` is M, the queries a class in training; test tasks
    ask for as many as `shot` (Deviation D5). By the protocol all-classes there is no training: `tasks` are draws,
    `query` is 0, and `way` is known once the network is. `ids`: of its cells, one a seed, once the grid is planned.
    """

    label: str
    dataset: str
    method: str
    way: int
    shot: int
    query: int
    tasks: int = 0
    pool_seed: int = 0
    options: dict[str, Any] = {}
    mode: str = "inductive"
    queries: str = "balanced"
    kind: Literal["score", "case"] = "score"
    protocol: Literal["episodes", "all-classes"] = "episodes"
    seeds: list[int] = []
    ids: list[str] = []

    @property
    def without_base(self) -> bool:
        """Whether the method is fitted to the graph alone."""
        return self.protocol == "all-classes"

    @property
    def setting(self) -> str:
        """N and K in words, and M where it is not K."""
        unusual = "" if self.query in (0, self.shot) else f" {self.query}-query"
        return ("all classes" if self.without_base else f"{self.way}-way") + f" {self.shot}-shot{unusual}"


class GridPart(BaseModel):
    """One table or figure. `along` is the axis of a sweep."""

    kind: Literal["compare", "sweep", "ablation", "case"]
    title: str
    along: Literal["way", "shot", "query"] | None = None
    rows: list[GridRow]


class Grid(BaseModel):
    """What grid files ask for; it is kept beside the results. `folders` are the files': paths may be relative to it."""

    title: str
    parts: list[GridPart]
    reported: list[Reported] = []
    folders: Annotated[list[Path], Field(exclude=True)] = []

    @property
    def rows(self) -> list[GridRow]:
        return [row for part in self.parts for row in part.rows]


def read_grids(paths: Sequence[Path]) -> Grid:
    """Several files as one grid; the first one's title is its title."""
    grids = [read_grid(path) for path in paths]
    return Grid(
        title=grids[0].title,
        parts=[part for grid in grids for part in grid.parts],
        reported=[numbers for grid in grids for numbers in grid.reported],
        folders=list(dict.fromkeys(folder for grid in grids for folder in grid.folders)),
    )


def read_grid(path: Path) -> Grid:
    """A grid file, checked."""
    file = _read(path, GridFile)
    parts, room = list[GridPart](), MAX_CELLS
    for kind in KINDS:
        for number, own in enumerate(getattr(file, kind), 1):
            said = {name: getattr(own, name) for name in own.model_fields_set}
            try:
                parts.append(_multiplied(kind, file.defaults.model_copy(update=said), set(said), file.methods, room))
            except ValueError as error:
                raise FewnodeError(f"{path}: [[{kind}]] {number}: {error}") from None
            room -= sum(len(row.seeds) for row in parts[-1].rows)
    if not parts:
        raise FewnodeError(f"{path}: no part in it, expected at least one of {', '.join(f'[[{k}]]' for k in KINDS)}")
    reported = read_reported(path.parent / file.reported) if file.reported else []
    return Grid(title=file.title or path.stem, parts=parts, reported=reported, folders=[path.resolve().parent])


def read_reported(path: Path) -> list[Reported]:
    """Numbers that somebody published."""
    file = _read(path, ReportedFile)
    return [one.model_copy(update={"source": one.source or file.source or path.stem}) for one in file.result]


def _multiplied(
    kind: Any, table: PartTable, own: Collection[str], variants: Mapping[str, Variant], room: int
) -> GridPart:
    """The cells of a part, at most `room`. `own` is what it says itself. A ValueError says what is wrong."""
    episodes = table.protocol == "episodes"
    asked = SHAPE if episodes else ("shot",)
    if not episodes and kind == "case":
        raise ValueError("a case study is of one task of test classes; leave out protocol")
    if not episodes and (unused := {"way", "query", "queries"} & set(own)):
        raise ValueError(
            f"{min(unused)}: by the protocol all-classes every class and node is asked about; leave it out"
        )
    for name in ("datasets", "methods", *asked):
        if not getattr(table, name) and name != "query":
            raise ValueError(f"{name} is missing")
    axes = {name: (getattr(table, name) if name in asked else None) or [0] for name in SHAPE}
    lists: list[Any] = [name for name, values in axes.items() if len(values) > 1]
    if kind == "sweep" and len(lists) != 1:
        raise ValueError(f"one of {', '.join(asked)} must be a list, the axis of the sweep; {len(lists)} are")
    if kind in ("ablation", "case") and lists:
        raise ValueError(f"{lists[0]} is a list, expected one number")
    chosen = {label: variants.get(label, Variant()) for label in table.methods}
    seeds = {label: table.seeds if "seeds" in own else v.seeds or table.seeds for label, v in chosen.items()}
    if kind == "case":
        seeds = {label: numbers[:1] for label, numbers in seeds.items()}
    if math.prod(map(len, axes.values())) * len(table.datasets) * sum(map(len, seeds.values())) > room:
        raise ValueError(f"more than {MAX_CELLS:,} cells")  # before any of them is made
    shared: dict[str, Any] = {
        "tasks": table.tasks or (TASKS if episodes else DRAWS),
        "pool_seed": table.pool_seed,
        "queries": table.queries if episodes else "balanced",
        "kind": "case" if kind == "case" else "score",
        "protocol": table.protocol,
    }
    rows = []
    for dataset, (label, meant), (way, shot, m) in product(table.datasets, chosen.items(), product(*axes.values())):
        shape = {"way": way, "shot": shot, "query": m or (shot if episodes else 0), "seeds": seeds[label]}
        own_ways: dict[str, Any] = {"method": meant.method or label, "options": meant.options, "mode": meant.mode}
        rows.append(GridRow(label=label, dataset=dataset, **own_ways, **shape, **shared))
    return GridPart(kind=kind, title=table.title or kind, along=lists[0] if kind == "sweep" else None, rows=rows)
