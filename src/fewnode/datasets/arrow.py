"""Tables of any kind as Arrow columns: CSV, TSV and JSON lines (each also as .gz), Parquet, pandas frames and more.

Cells of text formats are read as text, so a node id of 007 stays 007. Nothing in a file is trusted: what is wrong with
it is said with the place, and a file that inflates beyond all proportion is refused while it inflates.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from fewnode.datasets import decoding
from fewnode.datasets.columns import TEXT, Choose, Table, is_number
from fewnode.datasets.scratch import Scratch
from fewnode.datasets.text_tables import read_csv, read_json_lines
from fewnode.errors import FewnodeError, closest
from fewnode.machine.delimited import AS_USUAL, Dialect, column_names
from fewnode.machine.files import one_line, readable

__all__ = [
    "AS_USUAL",
    "TEXT",
    "Choose",
    "Dialect",
    "NamedTable",
    "Source",
    "Table",
    "is_number",
    "need_columns",
    "read_table",
]

Source: TypeAlias = str | os.PathLike[str] | Any
"""A file, a pandas frame, a mapping of columns, any table that speaks Arrow's C stream (polars, DuckDB), or the cursor
of a database that fetches Arrow tables (ADBC)."""


@dataclass(frozen=True)
class NamedTable:
    """A table that goes by a name of its own in messages."""

    name: str
    data: pa.Table


FORMATS = ".csv, .tsv, .jsonl (or these with .gz) or .parquet"


def read_table(
    source: Source, what: str, choose: Choose = list, dialect: Dialect = AS_USUAL, disk: Scratch | None = None
) -> Table:
    """The chosen columns of a table; one that is no file goes by `what` in messages.

    With `disk` the columns of a file, and what is made of them, lie there.
    """
    header: list[str] = []

    def note_header(names: list[str]) -> Sequence[str]:
        header.extend(names)
        return choose(names)

    if isinstance(source, NamedTable):
        name, data = source.name, _from_frame(source.data, source.name, note_header)
    elif isinstance(source, (str, os.PathLike)):
        name, data = str(source), _read_file(Path(source), note_header, dialect, disk)
    else:
        name, data = f"the {what} table", _from_frame(source, f"the {what} table", note_header)
    return Table(name, data, tuple(header), dialect, disk)


def _read_file(path: Path, choose: Choose, dialect: Dialect, disk: Scratch | None) -> pa.Table:
    kind = path.suffix.lower()
    if kind == ".gz":
        kind = path.with_suffix("").suffix.lower() + kind
    match kind:
        case ".csv" | ".csv.gz":
            return read_csv(path, choose, dialect, disk)
        case ".tsv" | ".tsv.gz" | ".tab" | ".tab.gz":
            return read_csv(path, choose, replace(dialect, separator=dialect.separator or "tab"), disk)
        case ".jsonl" | ".jsonl.gz" | ".ndjson" | ".ndjson.gz":
            if disk is not None:
                raise FewnodeError(f"{path}: JSON lines are read whole; make it a .csv, or leave out --memory")
            return read_json_lines(path, choose, dialect)
        case ".parquet" | ".pq":
            return _read_parquet(path, choose, disk)
    with readable(path):
        raise FewnodeError(f"{path}: unknown kind of table {kind!r}, expected {FORMATS}")


def need_columns(table: str, header: Sequence[str], wanted: Iterable[str]) -> list[str]:
    """The wanted columns, or an error that names the first missing one and what there is."""
    wanted, there = list(dict.fromkeys(wanted)), set(header)
    if missing := [name for name in wanted if name not in there]:
        shown = ", ".join(column[:40] for column in header[:12]) + (" …" if len(header) > 12 else "")
        near = closest(missing[0], header)
        alone = "; if it holds several columns, say what is between them with --separator" if len(header) == 1 else ""
        raise FewnodeError(f"{table}: no column {missing[0]!r}{near}; there are {shown}{alone}")
    return wanted


def _from_frame(source: Any, name: str, choose: Choose) -> pa.Table:
    try:
        if type(source).__module__.startswith("pandas"):
            named = any(level is not None for level in source.index.names)  # else it is the rows' number, no data
            data = pa.Table.from_pandas(source, preserve_index=named)
        else:
            if not hasattr(source, "__arrow_c_stream__") and hasattr(source, "fetch_arrow_table"):
                source = source.fetch_arrow_table()  # the cursor of a database
            data = pa.table(dict(source) if isinstance(source, Mapping) else source)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise FewnodeError(f"{name} cannot be read ({one_line(error)})") from None
    data = data.rename_columns(column_names(name, data.column_names))
    return data.select(list(choose(data.column_names)))


def _read_parquet(path: Path, choose: Choose, disk: Scratch | None) -> pa.Table:
    """Read batch by batch with repeated strings stored once, so that a bomb is noticed while it is still small."""
    try:
        with readable(path) as file:
            schema = pyarrow.parquet.read_schema(file)
            names = column_names(str(path), schema.names)
            written = dict(zip(names, schema.names, strict=True))
            chosen = [written[name] for name in choose(names)]
            repeated = [name for name in chosen if any(test(schema.field(name).type) for test in _STRINGS)]
            parquet = pyarrow.parquet.ParquetFile(file, read_dictionary=repeated)
            none = parquet.schema_arrow.empty_table().select(chosen)
            batches = _batches(path, parquet, chosen, os.fstat(file.fileno()).st_size)
            first = next(batches, None)
            if first is None:
                data = none
            elif disk is None:
                data = pa.Table.from_batches([first, *batches])
            else:
                data = disk.table(first.schema, chain([first], batches))
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:  # damage is met anywhere
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk's fault, not the file's
        raise FewnodeError(f"{path}: not a readable Parquet file ({one_line(error)})") from None
    return data.rename_columns([name.strip() for name in chosen])


def _batches(
    path: Path, parquet: pyarrow.parquet.ParquetFile, chosen: Sequence[str], size: int
) -> Iterator[pa.RecordBatch]:
    left = max(4 * decoding.FREE_BYTES, decoding.MAX_INFLATION * size)
    for batch in parquet.iter_batches(columns=chosen):
        left -= _size(batch)
        if left < 0:
            raise FewnodeError(f"{path}: inflates to over {decoding.MAX_INFLATION} times its size, refused")
        columns = {name: _written_out(column) for name, column in zip(batch.schema.names, batch.columns, strict=True)}
        yield pa.record_batch([columns[name] for name in chosen], chosen)


_STRINGS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)


def _size(batch: pa.RecordBatch) -> int:
    """Bytes of a batch once its repeated strings are written out."""
    return sum(_length(column) if pa.types.is_dictionary(column.type) else column.nbytes for column in batch.columns)


def _length(column: pa.DictionaryArray) -> int:
    lengths = pc.take(pc.binary_length(column.dictionary), column.indices)
    return 8 * len(column) + (pc.sum(lengths).as_py() or 0)


def _written_out(column: pa.Array) -> pa.Array:
    """Each batch has the strings of a whole row group as its dictionary: too much to keep for all of them."""
    if not pa.types.is_dictionary(column.type):
        return column
    is_text = pa.types.is_string(column.type.value_type) or pa.types.is_large_string(column.type.value_type)
    return pc.cast(column, TEXT if is_text else pa.large_binary())
