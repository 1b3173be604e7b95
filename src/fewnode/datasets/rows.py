"""The rows of several tables of nodes, read as one; a column that one of them lacks is missing in its rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fewnode.datasets.arrow import TEXT, Table
from fewnode.datasets.columns import is_list
from fewnode.datasets.scratch import Scratch
from fewnode.datasets.standardise import Vectors
from fewnode.errors import FewnodeError
from fewnode.machine import memory


@dataclass(frozen=True)
class NodeTable:
    """One table, and which of its columns hold the names and classes of the nodes."""

    table: Table
    id: str
    label: str | None

    @property
    def attributes(self) -> list[str]:
        """Columns that are neither; those that were not read too."""
        return [column for column in self.table.header if self.own_use(column) is None]

    def own_use(self, column: str) -> str | None:
        return {self.id: "id", self.label: "label"}.get(column)

    def with_kind(self, column: str, name: str) -> NodeTable:
        """The table with one more column, which says what kind of nodes its rows are."""
        cells = pa.array([name] * len(self.table), TEXT)
        data = self.table.data.append_column(column, cells)
        return replace(self, table=replace(self.table, data=data, header=(*self.table.header, column)))

    def has(self, column: str) -> bool:
        """Whether it has the column as an attribute, and it was read."""
        return self.own_use(column) is None and column in self.table.data.column_names


@dataclass(frozen=True)
class NodeRows:
    """The rows of all tables, one after another, as if they were of one."""

    parts: tuple[NodeTable, ...]
    kind: str | None = None
    """The column with the kind of each node."""

    def kinds_of_nodes(self, known: tuple[str, ...] = ()) -> tuple[NDArray[np.int64] | None, tuple[str, ...]]:
        """The kind of each node as a place among their names, the known ones first."""
        if self.kind is None:
            return None, ()
        cells = self.labels(self.kind)
        if cells.null_count:
            row = int(pc.index(pc.is_null(cells), True).as_py())
            raise self.fault(row, self.kind, "empty, expected the kind of the node")
        names = (*known, *(name for name in pc.unique(cells).to_pylist() if name not in known))
        return pc.index_in(cells, value_set=pa.array(names, TEXT)).to_numpy().astype(np.int64), names

    @property
    def name(self) -> str:
        """All files, for messages."""
        return " and ".join(part.table.name for part in self.parts)

    def __len__(self) -> int:
        return sum(len(part.table) for part in self.parts)

    @property
    def attributes(self) -> list[str]:
        return list(dict.fromkeys(column for part in self.parts for column in part.attributes))

    @property
    def headers(self) -> set[str]:
        return {column for part in self.parts for column in part.table.header}

    @property
    def partial(self) -> list[str]:
        """Attributes that some table lacks."""
        return [name for name in self.attributes if not all(name in part.attributes for part in self.parts)]

    def fault(self, row: int, column: str, what: str) -> FewnodeError:
        part, inner = self._place(row)
        return part.table.fault(inner, column, what)

    def _place(self, row: int) -> tuple[NodeTable, int]:
        ends = np.cumsum([len(part.table) for part in self.parts])
        i = int(np.searchsorted(ends, row, side="right"))
        return self.parts[i], row - int(ends[i]) + len(self.parts[i].table)

    def _having(self, column: str) -> Iterator[Table]:
        return (part.table for part in self.parts if part.has(column))

    def kinds(self, column: str) -> list[pa.DataType]:
        return [table.data.column(column).type for table in self._having(column)]

    def is_numeric(self, column: str) -> bool:
        filled = self._filled(column)
        return bool(filled) and all(table.is_numeric(column) for table in filled)

    def is_vector(self, column: str) -> bool:
        filled = self._filled(column)
        return bool(filled) and all(table.is_vector(column) for table in filled)

    def _filled(self, column: str) -> list[Table]:
        """The tables that have a value in this column."""
        return [table for table in self._having(column) if table.data.column(column).null_count < len(table)]

    def not_numbers(self, column: str) -> tuple[int, str]:
        """As `Table.not_numbers`."""
        counts = [table.not_numbers(column) for table in self._having(column)]
        return sum(count for count, _ in counts), next((cell for count, cell in counts if count), "")

    def labels(self, column: str) -> pa.ChunkedArray:
        """As `Table.labels`: text, null where the cell is blank or a word says that the value is missing."""
        return self._cells(lambda part: part.table.labels(column) if part.has(column) else None)

    def classes(self) -> pa.ChunkedArray:
        """The class name of each node; null where it is not known."""
        return self._cells(lambda part: part.table.labels(part.label) if part.label else None)

    def label_at(self, row: int) -> str:
        """The column that has the class of a row."""
        return self._place(row)[0].label or ""

    def missing_classes(self) -> dict[str, int]:
        """Words for an unknown class, such as NA, and how often each was found."""
        return _missing_words((part.table, part.label) for part in self.parts if part.label)

    def missing_words(self, column: str) -> dict[str, int]:
        """Words for a missing value, such as NA, and how often each was found."""
        return _missing_words((table, column) for table in self._having(column))

    def _cells(self, read: Callable[[NodeTable], pa.ChunkedArray | None]) -> pa.ChunkedArray:
        found = ((part, read(part)) for part in self.parts)
        parts = [pa.chunked_array([pa.nulls(len(p.table), TEXT)]) if cells is None else cells for p, cells in found]
        return pa.chunked_array([chunk for cells in parts for chunk in cells.chunks], TEXT)

    def numbers(self, column: str) -> NDArray[np.float64]:
        return np.concatenate(
            [
                part.table.numbers(column) if part.has(column) else np.full(len(part.table), np.nan)
                for part in self.parts
            ]
        )

    def vectors(self, column: str) -> Vectors:
        """A row of NaN where there is none."""
        found = [_vectors(part.table, column) if part.has(column) else None for part in self.parts]
        widths = {block.shape[1]: i for i, block in enumerate(found) if block is not None and block.shape[1]}
        if len(widths) > 1:
            (width, i), (other, j) = list(widths.items())[:2]
            raise FewnodeError(
                f"column {column!r} has vectors of {width:,} numbers in {self.parts[i].table.name} "
                f"and of {other:,} in {self.parts[j].table.name}, expected equal lengths"
            )
        width = next(iter(widths), 0)
        if len(found) == 1 and found[0] is not None:
            return found[0]
        out = np.empty((len(self), width), np.float32) if self.disk is None else self.disk.array((len(self), width))
        low = 0
        for part, block in zip(self.parts, found, strict=True):
            out[low : low + len(part.table)] = np.nan if block is None or not block.shape[1] else block
            low += len(part.table)
            memory.keep()
        return out

    @property
    def disk(self) -> Scratch | None:
        """Where columns are that do not fit into memory."""
        return self.parts[0].table.disk

    def distinct(self, column: str) -> int:
        """How many different texts there are in a column."""
        cells = self.labels(column)
        if self.disk is None or cells.nbytes < self.disk.limit // 16:
            return len(pc.unique(cells).drop_null())
        found = np.concatenate([_hashes(cells[piece]) for piece in self.disk.pieces(len(cells))])
        return len(np.unique(found))

    @cached_property
    def ids(self) -> pa.Array:
        """The names of the nodes, none of them missing or given twice."""
        cells = [chunk for part in self.parts for chunk in written_ids(part.table, part.id).chunks]
        ids = pa.chunked_array(cells, TEXT).combine_chunks()
        if ids.null_count:
            row = int(pc.index(pc.is_null(ids), True).as_py())
            raise self.fault(row, self._place(row)[0].id, "empty, expected a node id")
        # codes count up with each id that is new, so the first row whose code is not its number repeats an id
        codes = pc.dictionary_encode(ids).indices.to_numpy()
        repeated = codes != np.arange(len(codes))
        if repeated.any():
            row = int(repeated.argmax())
            part, _ = self._place(row)
            first, place = self._place(int(codes[row]))
            where = "" if first is part else f"{first.table.name}, "
            raise self.fault(row, part.id, f"node {ids[row].as_py()!r} is in {where}data row {place + 1} already")
        return ids

    def new_ids(self, old: pa.Array, owner: str) -> pa.Array:
        """The ids, none of which may be in `old`."""
        known = pc.index_in(self.ids, value_set=old)
        if known.null_count < len(self.ids):
            row = int(pc.index(pc.is_valid(known), True).as_py())
            name = self.ids[row].as_py()
            raise self.fault(row, self._place(row)[0].id, f"node {name!r} is in {owner} already, expected new nodes")
        return self.ids

    def facts(self, uses: Mapping[str, str]) -> list[dict[str, Any]]:
        """What is to be told of each table; `uses` says what becomes of an attribute."""
        files = file_names([part.table.name for part in self.parts])
        return [
            {
                "file": file,
                "rows": len(part.table),
                "columns": {name: part.own_use(name) or uses[name] for name in part.table.header},
            }
            for part, file in zip(self.parts, files, strict=True)
        ]


def written_ids(table: Table, column: str) -> pa.ChunkedArray:
    """Node ids as they are written: `1`, `01` and ` 1` are three. Blank cells are null."""
    texts = table.texts(column)
    if not _is_text(table, column):
        return texts
    written = table.data.column(column)
    return table.each_piece(
        lambda texts, cells: pc.if_else(pc.is_valid(texts), pc.cast(cells, TEXT), None), texts, written
    )


def _hashes(cells: pa.ChunkedArray) -> NDArray[np.int64]:
    """64 bits each: that two of a hundred million texts have the same ones happens once in four thousand tables."""
    texts = cells.drop_null().to_pylist()
    return np.fromiter(map(hash, texts), np.int64, len(texts))


def _is_text(table: Table, column: str) -> bool:
    kind = table.data.column(column).type
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _missing_words(columns: Iterable[tuple[Table, str]]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for table, column in columns:
        counts.update(table.missing_tokens(column) if _is_text(table, column) else {})
    return dict(counts)


def _vectors(table: Table, column: str) -> Vectors:
    """The vectors of a table, a row of NaN where there is none."""
    cells = table.data.column(column)
    missing = pc.is_null(cells) if is_list(cells.type) else pc.is_null(table.labels(column))
    if not pc.any(missing).as_py():
        return table.vectors(column)
    if pc.all(missing).as_py():
        return np.zeros((len(table), 0), np.float32)
    some = cells[int(pc.index(missing, False).as_py())]  # stands in where none is, so that rows keep their number
    filled = table.each_piece(lambda missing, cells: pc.if_else(missing, some, cells), missing, cells)
    data = table.data.set_column(table.data.column_names.index(column), column, filled)
    vectors = replace(table, data=data).vectors(column)
    vectors[missing.to_numpy()] = np.nan
    return vectors


def file_names(tables: Sequence[str]) -> list[str]:
    """Without their folders, unless two files have one name."""
    names = [Path(table).name for table in tables]
    return [name if names.count(name) == 1 else table for name, table in zip(names, tables, strict=True)]
