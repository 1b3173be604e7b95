"""Tables of any kind as Arrow columns: CSV, TSV and JSON lines (each also as .gz), Parquet, pandas frames and more.

Cells of text formats are read as text, so a node id of 007 stays 007. Nothing in a file is trusted: what is wrong with
it is said with the place, and a file that inflates beyond all proportion is refused while it inflates.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import zlib
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from fewnode.datasets.columns import TEXT, Table, is_number
from fewnode.delimited import AS_USUAL, Dialect
from fewnode.errors import FewnodeError, closest
from fewnode.io import one_line, readable

__all__ = ["AS_USUAL", "TEXT", "Choose", "Dialect", "Source", "Table", "is_number", "need_columns", "read_table"]

Source: TypeAlias = str | os.PathLike[str] | Any
"""A file, a pandas frame, a mapping of columns, or any table that speaks Arrow's C stream (polars, DuckDB)."""

Choose: TypeAlias = Callable[[list[str]], Sequence[str]]
"""Given the header, the columns that are wanted; only those are kept in memory."""

MAX_INFLATION = 100
FREE_BYTES = 256 << 20
"""What inflates to more than this and `MAX_INFLATION` times its file is a bomb; tables shrink 3 to 30 times."""

MAX_LINE = 32 << 20
MAX_KEYS = 1000
"""JSON lines with more columns than this are no table, and every row would get a cell in each."""

BLOCK = 16 << 20
"""Arrow parses so much of a CSV file at a time; one row must fit."""

FORMATS = ".csv, .tsv, .jsonl (or these with .gz) or .parquet"


# --- reading ------------------------------------------------------------------------------------------------------


def read_table(source: Source, what: str, choose: Choose = list, dialect: Dialect = AS_USUAL) -> Table:
    """The chosen columns of a table; one that is no file goes by `what` in messages."""
    header: list[str] = []

    def note_header(names: list[str]) -> Sequence[str]:
        header.extend(names)
        return choose(names)

    if isinstance(source, (str, os.PathLike)):
        name, data = str(source), _read_file(Path(source), note_header)
    else:
        name, data = f"the {what} table", _from_frame(source, f"the {what} table", note_header)
    return Table(name, data, tuple(header), dialect)


def _read_file(path: Path, choose: Choose) -> pa.Table:
    kind = path.suffix.lower()
    if kind == ".gz":
        kind = path.with_suffix("").suffix.lower() + kind
    match kind:
        case ".csv" | ".csv.gz":
            return _read_csv(path, ",", choose)
        case ".tsv" | ".tsv.gz" | ".tab" | ".tab.gz":
            return _read_csv(path, "\t", choose)
        case ".jsonl" | ".jsonl.gz" | ".ndjson" | ".ndjson.gz":
            return _read_json_lines(path, choose)
        case ".parquet" | ".pq":
            return _read_parquet(path, choose)
    with readable(path):
        raise FewnodeError(f"{path}: unknown kind of table {kind!r}, expected {FORMATS}")


def need_columns(table: str, header: Sequence[str], wanted: Iterable[str]) -> list[str]:
    """The wanted columns, or an error that names the first missing one and what there is."""
    wanted = list(dict.fromkeys(wanted))
    for name in wanted:
        if name not in header:
            shown = ", ".join(column[:40] for column in header[:12]) + (" …" if len(header) > 12 else "")
            raise FewnodeError(f"{table}: no column {name!r}{closest(name, header)}; there are {shown}")
    return wanted


def _checked(name: str, header: Iterable[object]) -> list[str]:
    names = [str(column).strip() for column in header]
    if twice := [column for column, count in Counter(names).items() if count > 1]:
        raise FewnodeError(f"{name}: column {twice[0]!r} is there twice; rename one")
    return names


def _from_frame(source: Any, name: str, choose: Choose) -> pa.Table:
    try:
        if type(source).__module__.startswith("pandas"):
            named = any(level is not None for level in source.index.names)  # else it is the rows' number, no data
            data = pa.Table.from_pandas(source, preserve_index=named)
        else:
            data = pa.table(dict(source) if isinstance(source, Mapping) else source)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise FewnodeError(f"{name} cannot be read ({one_line(error)})") from None
    data = data.rename_columns(_checked(name, data.column_names))
    return data.select(list(choose(data.column_names)))


class _Inflating(io.RawIOBase):
    """The bytes of a file, inflated if its name ends in .gz, up to what a table may inflate to."""

    def __init__(self, path: Path, file: io.BufferedReader) -> None:
        self._path = path
        self._source = gzip.GzipFile(fileobj=file) if path.suffix.lower() == ".gz" else file
        self._left = max(FREE_BYTES, MAX_INFLATION * os.fstat(file.fileno()).st_size)
        self.quotes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            blob = self._source.read(len(buffer))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise FewnodeError(
                f"{self._path}: the gzip file is cut short or damaged ({one_line(error)}); fetch it again"
            ) from None
        self._left -= len(blob)
        if self._left < 0:
            raise FewnodeError(f"{self._path}: inflates to over {MAX_INFLATION} times its size, refused")
        self.quotes += blob.count(b'"')
        buffer[: len(blob)] = blob
        return len(blob)


@contextmanager
def _bytes_of(path: Path) -> Iterator[tuple[io.BufferedReader, _Inflating]]:
    with readable(path) as file:
        raw = _Inflating(path, file)
        yield io.BufferedReader(raw, 1 << 20), raw


def _read_csv(path: Path, delimiter: str, choose: Choose) -> pa.Table:
    with closing(_csv_rows(path, delimiter)) as rows:
        header = next(rows, [])
    if not any(header):
        raise FewnodeError(f"{path}: line 1 is empty, expected a header with the column names")
    names = _checked(str(path), header)
    chosen = {name: header[names.index(name)] for name in choose(names)}
    with _bytes_of(path) as (stream, raw):
        try:
            data = pyarrow.csv.read_csv(
                stream,
                pyarrow.csv.ReadOptions(block_size=BLOCK),
                pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
                pyarrow.csv.ConvertOptions(
                    column_types=dict.fromkeys(chosen.values(), TEXT),
                    include_columns=list(chosen.values()),
                ),
            )
        except pa.ArrowInvalid as error:
            _check_csv(path, delimiter)
            raise FewnodeError(f"{path}: not a readable table ({one_line(error)})") from None
        if raw.quotes % 2:  # one that is never closed would swallow rows without a word
            _check_csv(path, delimiter)
    return data.rename_columns(list(chosen))


def _csv_rows(path: Path, delimiter: str) -> Generator[list[str], None, None]:
    """Python's slow and strict reading: for the header, and for the line at which Arrow's fast reading failed."""
    with _bytes_of(path) as (stream, _):
        reader = csv.reader(_lines(path, stream), delimiter=delimiter, strict=True)
        width = 0
        try:
            for row in reader:
                width = width or len(row)
                if row and len(row) != width:
                    raise FewnodeError(f"{path}: line {reader.line_num}: {len(row)} cells, expected {width}")
                yield row
        except csv.Error as error:
            hint = "; is a quote missing?" if "limit" in str(error) or "end of data" in str(error) else ""
            raise FewnodeError(f"{path}: line {reader.line_num}: {one_line(error)}{hint}") from None


def _check_csv(path: Path, delimiter: str) -> None:
    for _ in _csv_rows(path, delimiter):
        pass


def _lines(path: Path, stream: io.BufferedReader) -> Iterator[str]:
    number = 0
    while line := stream.readline(MAX_LINE):
        number += 1
        if len(line) == MAX_LINE:
            raise FewnodeError(f"{path}: line {number} is longer than {MAX_LINE >> 20} MB")
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise FewnodeError(
                f"{path}: line {number}: byte {error.start + 1} is not UTF-8; save the table as UTF-8"
            ) from None


def _read_json_lines(path: Path, choose: Choose) -> pa.Table:
    """Parsed by Python: Arrow's parser overflows the stack on deep nesting and turns dates into times."""
    batches: list[pa.Table] = []
    rows: list[dict[str, str | None]] = []
    names: dict[str, None] = {}
    with _bytes_of(path) as (stream, _):
        for number, line in enumerate(_lines(path, stream), 1):
            if line.strip():
                rows.append(_object(path, number, line))
                if not rows[-1].keys() <= names.keys():
                    names.update(dict.fromkeys(rows[-1]))
            if len(names) > MAX_KEYS:
                raise FewnodeError(f"{path}: line {number}: over {MAX_KEYS} different keys, expected a table")
            if len(rows) == 1 << 14:
                batches.append(_columns(rows, names))
                rows = []
    data = pa.concat_tables([*batches, _columns(rows, names)], promote_options="default")
    if not names:
        raise FewnodeError(f"{path}: no row in it")
    data = data.rename_columns(_checked(str(path), data.column_names))
    return data.select(list(choose(data.column_names)))


def _object(path: Path, number: int, line: str) -> dict[str, str | None]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise FewnodeError(f"{path}: line {number}: not JSON ({one_line(error)})") from None
    if not isinstance(row, dict):
        raise FewnodeError(f"{path}: line {number}: found a {type(row).__name__}, expected an object on each line")
    for name, value in row.items():
        if type(value) is not str or "\\u" in line:
            try:
                _cell(name)
                row[name] = _cell(value)
            except (TypeError, UnicodeError, RecursionError):
                raise FewnodeError(
                    f"{path}: line {number}, column {name!r}: expected text, a number or a list of them"
                ) from None
    return row


def _cell(value: Any) -> str | None:
    """A JSON value as the cell of a text table; a list is its items with spaces between."""
    if isinstance(value, str):
        value.encode()  # half of a surrogate pair is JSON, but no text
        return value
    if value is None:
        return None
    if isinstance(value, list):
        return " ".join(cell for cell in map(_cell, value) if cell is not None)
    if isinstance(value, dict):
        raise TypeError
    return str(value).lower()


def _columns(rows: Sequence[Mapping[str, str | None]], names: Iterable[str]) -> pa.Table:
    return pa.table({name: pa.array([row.get(name) for row in rows], TEXT) for name in names})


def _read_parquet(path: Path, choose: Choose) -> pa.Table:
    """Read batch by batch with repeated strings stored once, so that a bomb is noticed while it is still small."""
    try:
        with readable(path) as file:
            schema = pyarrow.parquet.read_schema(file)
            names = _checked(str(path), schema.names)
            chosen = [schema.names[names.index(name)] for name in choose(names)]
            repeated = [name for name in chosen if any(test(schema.field(name).type) for test in _STRINGS)]
            parquet = pyarrow.parquet.ParquetFile(file, read_dictionary=repeated)
            batches, left = [], max(4 * FREE_BYTES, MAX_INFLATION * os.fstat(file.fileno()).st_size)
            for batch in parquet.iter_batches(columns=chosen):
                left -= _size(batch)
                if left < 0:
                    raise FewnodeError(f"{path}: inflates to over {MAX_INFLATION} times its size, refused")
                batches.append(pa.table([_written_out(column) for column in batch.columns], batch.schema.names))
            none = parquet.schema_arrow.empty_table().select(chosen)
            data = pa.concat_tables(batches).select(chosen) if batches else none
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:  # damage is met anywhere
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk's fault, not the file's
        raise FewnodeError(f"{path}: not a readable Parquet file ({one_line(error)})") from None
    return data.rename_columns([name.strip() for name in chosen])


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
