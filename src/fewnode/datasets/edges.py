"""Tables of edges: their ends as rows of nodes, what is dropped and why, and which names were nearly right."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fewnode.datasets.arrow import AS_USUAL, Dialect, Source, Table, need_columns, read_table
from fewnode.datasets.nodes import title
from fewnode.datasets.rows import file_names, written_ids
from fewnode.errors import FewnodeError
from fewnode.graph import Ints

UnknownEnds: TypeAlias = Literal["refuse", "drop"]

EdgeSources: TypeAlias = Source | Mapping[str, Source] | Sequence[Source | Mapping[str, Source]]
"""One table of edges, one for each named kind of edge, or a list of such."""

ENDS = (("source", "target"), ("from", "to"), ("src", "dst"))
"""Columns that are found without being named, the first pair that is there."""

UNUSED = "edges have no weights, kinds or times yet"


class EdgeOptions(NamedTuple):
    """How tables of edges are to be read."""

    source: str | None = None
    target: str | None = None
    unknown_ends: UnknownEnds = "refuse"
    dialect: Dialect = AS_USUAL


class Edges(NamedTuple):
    """Edges as rows of nodes, 2 x E, and what is to be told of each table."""

    edge_index: Ints
    tables: list[dict[str, Any]]

    @property
    def proper(self) -> int:
        """How many edges are no self-loops."""
        return int((self.edge_index[0] != self.edge_index[1]).sum())


def read_edges(sources: EdgeSources, ids: pa.Array, owner: str, node_headers: set[str], options: EdgeOptions) -> Edges:
    """The edges of all tables. An end that is no name in `ids`, the nodes of `owner`, is refused or dropped."""
    if options.unknown_ends not in ("refuse", "drop"):
        raise FewnodeError(f"unknown ends: found {options.unknown_ends!r}, expected refuse or drop")
    nodes = _Nodes(ids, owner, node_headers)
    given = named_sources(sources)
    found: list[Ints] = []
    tables: list[dict[str, Any]] = []
    for i, (kind, source) in enumerate(given):
        name = "edges" if len(given) == 1 else f"{kind or 'edges'} {i + 1}"
        edge_index, facts = _read(source, name, nodes, options)
        found.append(edge_index)
        tables.append({**facts, "kind": kind})
    for table, file in zip(tables, file_names([table["file"] for table in tables]), strict=True):
        table["file"] = file
    return Edges(np.concatenate(found, axis=1), tables)


class _Nodes(NamedTuple):
    """What the ends of edges are looked up in."""

    ids: pa.Array
    owner: str
    headers: set[str]


def _read(source: Source, name: str, nodes: _Nodes, options: EdgeOptions) -> tuple[Ints, dict[str, Any]]:
    given = options.source, options.target
    table = read_table(source, name, lambda header: _end_columns(header, given, title(source, name)), options.dialect)
    ends = table.data.column_names
    _check_header(table, source, nodes, given, options.dialect)
    cells = [written_ids(table, end) for end in ends]
    rows = [pc.fill_null(pc.index_in(side, value_set=nodes.ids), -1).to_numpy() for side in cells]
    edge_index = np.stack(rows).astype(np.int64)
    unknown = edge_index < 0
    dropped = unknown.any(axis=0)
    near: list[dict[str, Any]] = []
    if dropped.any():
        near = near_misses(_names(cells, unknown), nodes.ids)
        if options.unknown_ends == "refuse":
            raise _unknown_end(table, unknown, cells, near, nodes)
        edge_index = edge_index[:, ~dropped]
    columns = {**dict.fromkeys(table.header, "not used"), ends[0]: "source", ends[1]: "target"}
    return edge_index, {
        "file": table.name,
        "rows": len(table),
        "columns": columns,
        "why": {column: UNUSED for column, use in columns.items() if use == "not used"},
        "unknown_ends": int(dropped.sum()),
        "near_misses": near,
        "self_loops": int((edge_index[0] == edge_index[1]).sum()),
    }


def _names(cells: Sequence[pa.ChunkedArray], unknown: NDArray[np.bool_]) -> pa.Array:
    """The distinct names of unknown ends."""
    chosen = [side.filter(pa.array(mask)).combine_chunks() for side, mask in zip(cells, unknown, strict=True)]
    return pc.unique(pa.concat_arrays(chosen)).drop_null()


def _unknown_end(
    table: Table,
    unknown: NDArray[np.bool_],
    cells: Sequence[pa.ChunkedArray],
    near: Sequence[Mapping[str, Any]],
    nodes: _Nodes,
) -> FewnodeError:
    row = int(unknown.any(axis=0).argmax())
    side = int(unknown[:, row].argmax())
    name = cells[side][row].as_py()
    what = "empty, expected a node id" if name is None else f"node {name!r} is not in {nodes.owner}"
    if name in nodes.headers:
        what += " but in its header line: if that line is a node, say --no-node-header"
    hints = "".join(f"; {describe_near_miss(each)}" for each in near)
    count = int(unknown.any(axis=0).sum())
    plural = "such edge" if count == 1 else "such edges"
    fault = f"{what}; {count:,} {plural} (--unknown-ends drop leaves them out){hints}"
    return table.fault(row, table.data.column_names[side], fault)


def _check_header(
    table: Table, source: Source, nodes: _Nodes, given: tuple[str | None, str | None], dialect: Dialect
) -> None:
    """Refuse a file without a header: its first edge would be lost as the names of the columns."""
    ends = tuple(table.data.column_names)
    if not (_is_delimited(source) and dialect.header) or any(given) or ends in ENDS:
        return
    if pc.all(pc.is_in(pa.array(ends, nodes.ids.type), value_set=nodes.ids)).as_py():
        raise FewnodeError(
            f"{table.name}: line 1: {ends[0]!r} and {ends[1]!r} are nodes, expected a header with the column names; "
            "--no-header reads line 1 as an edge"
        )


def _is_delimited(source: Source) -> bool:
    """Whether it is a file whose first line may or may not be a header."""
    kinds = (".csv", ".tsv", ".tab", ".txt")
    return isinstance(source, (str, os.PathLike)) and str(source).lower().removesuffix(".gz").endswith(kinds)


def _end_columns(header: list[str], given: tuple[str | None, str | None], name: str) -> list[str]:
    if len(header) < 2:
        raise FewnodeError(f"{name}: one column {header[0]!r}, expected two with the ends of each edge")
    default = next((pair for pair in ENDS if set(pair) <= set(header)), header[:2])
    ends = [column or other for column, other in zip(given, default, strict=True)]
    if ends[0] == ends[1]:
        raise FewnodeError(
            f"{name}: column {ends[0]!r} is both ends of an edge; name --source-column and --target-column"
        )
    return need_columns(name, header, ends)


# --- which tables -------------------------------------------------------------------------------------------------


def named_sources(sources: EdgeSources) -> list[tuple[str | None, Source]]:
    """Every table with the kind of its edges, None where it has no name.

    A mapping is a table if its values are columns, and a table a kind if its values are tables or files.

    >>> named_sources(["a.csv", {"pays": "b.csv"}])
    [(None, 'a.csv'), ('pays', 'b.csv')]
    """
    found: list[tuple[str | None, Source]] = []
    for source in sources if isinstance(sources, (list, tuple)) else [sources]:
        if isinstance(source, Mapping) and source and all(map(_is_table, source.values())):
            found += [(str(kind), table) for kind, table in source.items()]
        else:
            found.append((None, source))
    if not found:
        raise FewnodeError("no table of edges, expected at least one")
    return found


def _is_table(value: object) -> bool:
    """No column: a file, a mapping, or what has columns itself (frames and Arrow tables, not their columns)."""
    return isinstance(value, (str, os.PathLike, Mapping)) or any(hasattr(value, name) for name in ("columns", "schema"))


# --- names that are nearly right ----------------------------------------------------------------------------------

_DIFFERENCES: dict[str, Callable[[pa.Array], pa.Array]] = {
    "spaces around it": pc.utf8_trim_whitespace,
    "leading zeros": lambda names: pc.replace_substring_regex(names, r"^(-?)0+(\d)", r"\1\2"),
    "a fraction of zero": lambda names: pc.replace_substring_regex(names, r"^(-?\d+)\.0+$", r"\1"),
    "upper and lower case": pc.utf8_lower,
    "its Unicode form": lambda names: pc.utf8_normalize(names, form="NFKC"),
}


def _without_differences(names: pa.Array) -> pa.Array:
    for normal in (*_DIFFERENCES.values(), pc.utf8_trim_whitespace):
        names = normal(names)
    return names


def near_misses(names: pa.Array, ids: pa.Array) -> list[dict[str, Any]]:
    """Names that would be one of `ids` but for spaces, leading zeros, `.0`, case or Unicode form: counts, examples.

    They are told and never matched: `1` and `01` may be two nodes.

    >>> near_misses(pa.array(["01", "Fox", "cat"]), pa.array(["1", "fox"]))[0]
    {'differs_in': 'leading zeros', 'count': 1, 'example': ['01', '1']}
    """
    found = []
    for difference, normal in {**_DIFFERENCES, "several of these": _without_differences}.items():
        place = pc.index_in(normal(names), value_set=normal(ids))
        hits = pc.is_valid(place)
        count = pc.sum(hits).as_py() or 0
        if count:
            first = pc.index(hits, True).as_py()
            example = [names[first].as_py(), ids[place[first].as_py()].as_py()]
            found.append({"differs_in": difference, "count": count, "example": example})
            names = names.filter(pc.invert(hits))
    return found


def describe_near_miss(miss: Mapping[str, Any]) -> str:
    end, node = miss["example"]
    names = "name differs" if miss["count"] == 1 else "names differ"
    return f"{miss['count']:,} {names} from a node's only in {miss['differs_in']}, as {end!r} from {node!r}"
