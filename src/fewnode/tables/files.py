"""Tables of any kind as columns of a DuckDB database: CSV, JSON lines (each also as .gz), Parquet, frames and queries.

Cells are read as text, so a node id of 007 stays 007; lists of numbers stay lists. Nothing in a file is trusted: what
is wrong with it is said with the line, and a file that inflates beyond all proportion is refused while it inflates.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from fewnode._system.files import exclusive, one_line, readable
from fewnode._system.sheets import (
    LOST_QUOTE,
    MAX_COLUMNS,
    TOO_WIDE,
    column_names,
    first_lines,
    recognise_separator,
    rows,
)
from fewnode.errors import FewnodeError, closest
from fewnode.tables.plain import FREE_BYTES, MAX_INFLATION, MAX_LINE, TEXT, PlainText, read_json_lines
from fewnode.tables.spec import ImportSpec

Source: TypeAlias = str | os.PathLike[str] | Any
"""A file, a pandas frame, a mapping of columns, any table that speaks Arrow's C stream (polars, DuckDB's relations), or
the cursor of a database that fetches Arrow tables (ADBC)."""
Choose: TypeAlias = Callable[[list[str]], Mapping[str, str | None]]
"""Given the header, the columns that are wanted, each with its use, None: an attribute. No others are read."""
Chosen: TypeAlias = Callable[[Iterable[object]], list[str]]

MULTILINE = " (`multiline` if cells have several lines)"
FORMATS = ".csv, .tsv, .jsonl (or these with .gz) or .parquet"


class NamedTable(NamedTuple):
    """A table that goes by a name of its own in messages."""

    name: str
    data: pa.Table


@dataclass(frozen=True)
class Table:
    """A table in the database."""

    name: str
    """What it goes by in messages."""
    relation: str
    """What it is called in the database. What its columns are called there, the database knows."""
    rows: int
    header: tuple[str, ...]
    """Every column of the source, also those that were not chosen."""
    types: Mapping[str, str]
    """Of the chosen columns: `text`, `vector`, or why a column is not read: `nested, STRUCT(…)`."""
    kind: str | None = None
    """The kind of its nodes or edges, if the table has a name."""
    uses: Mapping[str, str] = field(default_factory=dict)
    """Columns that are no attributes, and what they are: `id`, `label`, `source` …"""

    @property
    def attributes(self) -> list[str]:
        return [column for column in self.header if column not in self.uses]

    def has(self, column: str) -> bool:
        """Whether it has the column as an attribute, and it was read."""
        return column in self.types and column not in self.uses

    def fault(self, row: int, column: str, what: str) -> FewnodeError:
        """An error at a place; rows are counted from 1 and the header is none."""
        return FewnodeError(f"{self.name}: data row {row + 1}, column {column!r}: {what}")


def quoted(text: str, mark: str = '"') -> str:
    return mark + text.replace(mark, mark + mark) + mark


def literal(text: str) -> str:
    return quoted(text, "'")


def title(source: Source, what: str) -> str:
    """What a table goes by in messages before it is read."""
    if isinstance(source, NamedTable):
        return source.name
    return str(source) if isinstance(source, (str, os.PathLike)) else f"the {what} table"


@dataclass
class Database:
    """Where tables are while they are read. What does not fit into its memory waits in a folder that goes with it."""

    limit: int | None = None
    """Bytes of memory that may be in use."""
    beside: Path | None = None
    """The folder in which there is room on the disk."""
    _open: ExitStack = field(default_factory=ExitStack)
    _keys: dict[str, str] = field(default_factory=dict)
    _tables: int = 0

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @cached_property
    def folder(self) -> Path:
        """One for each dataset, so that what a killed import left behind goes with the next one."""
        if self.beside is None:
            return Path(self._open.enter_context(tempfile.TemporaryDirectory(prefix="fewnode-")))
        folder = self.beside / ".fewnode-tables"
        self._open.enter_context(exclusive(folder))
        self._open.callback(shutil.rmtree, folder, ignore_errors=True)
        return folder

    @cached_property
    def connection(self) -> duckdb.DuckDBPyConnection:
        config: dict[str, str | bool | int | float | list[str]] = {
            "threads": int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1),
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "temp_directory": str(self.folder),
        }
        if self.limit:
            config["memory_limit"] = f"{self.limit // 2 >> 20}MiB"
        return self._open.enter_context(duckdb.connect(config=config))

    def ask(self, query: str) -> list[Any]:
        """The rows of the answer."""
        return self.connection.execute(query).fetchall()

    def arrow(self, query: str) -> pa.Table:
        """The answer as columns."""
        table: pa.Table = self.connection.sql(query).to_arrow_table()
        return table

    def key(self, column: str) -> str:
        """What a column is called in the database, where names differ by more than by case."""
        return self._keys.setdefault(column, f"k{len(self._keys)}")

    def register(self, data: pa.Table) -> str:
        """A name for a table that DuckDB reads where it is."""
        self.connection.register(name := self.free_name(), data)
        return name

    def free_name(self) -> str:
        self._tables += 1
        return f"t{self._tables}"

    # --- tables ---------------------------------------------------------------------------------------------------

    def read(
        self,
        source: Source,
        what: str,
        choose: Choose,
        spec: ImportSpec,
        has_header: bool = True,
        kind: str | None = None,
    ) -> Table:
        """The chosen columns of a table, which goes by `what` in messages if it is no file."""
        name, header, uses = title(source, what), list[str](), dict[str, str | None]()

        def chosen(names: Iterable[object]) -> list[str]:
            header.extend(column_names(name, names))
            uses.update(choose(header))
            return list(uses)

        if isinstance(source, (str, os.PathLike)):
            path = Path(source)
            end = path.with_suffix("").suffix.lower() if path.suffix.lower() == ".gz" else path.suffix.lower()
            if end in (".csv", ".tsv", ".tab", ".txt"):
                relation, types = self._read_csv(
                    path, chosen, spec, "\t" if end in (".tsv", ".tab") else None, has_header
                )
            elif end in (".jsonl", ".ndjson"):
                relation, types = self._take(read_json_lines(self._plain(path, spec)), chosen)
            elif path.suffix.lower() in (".parquet", ".pq"):
                relation, types = self._read_parquet(path, chosen)
            else:
                with readable(path):
                    raise FewnodeError(f"{path}: unknown kind of table {path.suffix.lower()!r}, expected {FORMATS}")
        else:
            try:
                relation, types = self._take(_arrow(source), chosen)
            except (duckdb.Error, pa.ArrowException, TypeError, ValueError) as error:
                raise FewnodeError(f"{name} cannot be read ({one_line(error)})") from None
        [(count,)] = self.ask(f"SELECT count(*) FROM {relation}")
        own = {column: use for column, use in uses.items() if use is not None}
        return Table(name, relation, count, tuple(header), types, kind, own)

    def _plain(self, path: Path, spec: ImportSpec) -> PlainText:
        return PlainText(path, spec.encoding, self.folder / self.free_name())

    def _create(self, given: str, columns: Mapping[str, str]) -> tuple[str, dict[str, str]]:
        """A table of columns as text, or as lists of numbers; `columns` says what each is called in `given`."""
        kinds = {str(row[0]): str(row[1]) for row in self.ask(f"DESCRIBE SELECT * FROM {given}")}
        types, parts = dict[str, str](), []
        for name, own in columns.items():
            types[name], cells = _as_text(quoted(own), kinds[own])
            parts.append(f"{cells} AS {self.key(name)}")
        relation = self.free_name()
        self.ask(f"CREATE TABLE {relation} AS SELECT {', '.join(parts)} FROM {given}")
        return relation, types

    def _take(self, data: pa.Table, choose: Chosen) -> tuple[str, dict[str, str]]:
        """The chosen columns of a table in memory."""
        chosen, names = choose(data.column_names), [str(column).strip() for column in data.column_names]
        columns = [data.column(names.index(name)) for name in chosen]
        plain = [pa.nulls(len(c), TEXT) if pa.types.is_null(c.type) else c for c in columns]
        keys = [self.key(name) for name in chosen]
        return self._create(self.register(pa.table(plain, keys)), dict(zip(chosen, keys, strict=True)))

    def _read_parquet(self, path: Path, choose: Chosen) -> tuple[str, dict[str, str]]:
        """The table, unless so few bytes claim to hold far too many rows or too long texts."""
        with readable(path) as file:
            size = os.fstat(file.fileno()).st_size
        given = f"read_parquet({_place(path.resolve())}, hive_partitioning=false)"
        try:
            kinds = {str(row[0]): str(row[1]) for row in self.ask(f"DESCRIBE SELECT * FROM {given}")}
            chosen, written = choose(kinds), {name.strip(): name for name in kinds}
            [(count,)] = self.ask(f"SELECT count(*) FROM {given}")
            if count > max(FREE_BYTES >> 6, MAX_INFLATION * size):
                raise FewnodeError(f"{path}: claims {count:,} rows in {size:,} bytes, refused")
            columns = {name: written[name] for name in chosen}
            _need_sane_texts(path, [own for own in columns.values() if kinds[own] in ("VARCHAR", "BLOB")], size)
            return self._create(given, columns)
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # the disk's fault, not the file's
            raise FewnodeError(f"{path}: not a readable Parquet file ({one_line(error)})") from None

    def _read_csv(
        self, path: Path, choose: Chosen, spec: ImportSpec, tab: str | None, header: bool
    ) -> tuple[str, dict[str, str]]:
        """The first lines are looked at here; then columns are fixed, and DuckDB takes nothing that does not fit."""
        text = self._plain(path, spec)
        first = first_lines(text)
        separator = spec.separator or tab or recognise_separator(str(path), first)
        names = _header(path, first, separator, header, spec.multiline)
        stripped, chosen = [name.strip() for name in names], choose(names)
        columns = {name: f"c{stripped.index(name)}" for name in chosen}
        types = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(len(names)))
        for room in (1 << 20, MAX_LINE + 1):  # of a line: buffers are larger than that, for each thread
            given = (
                f"read_csv({_place(text.place)}, delim='{separator}', quote='\"', escape='\"', header={header}, "
                "auto_detect=false, strict_mode=true, null_padding=false, hive_partitioning=false, "
                f"compression='none', new_line='\\n', max_line_size={room}, buffer_size={4 * room}, "
                f"columns={{{types}}})"
            )
            if len(names) == 1:  # DuckDB takes a blank line for a row of one empty cell
                given = f"(SELECT * FROM {given} WHERE c0 IS NOT NULL)"
            try:
                relation, kinds = self._create(given, columns)
                break
            except duckdb.Error as error:
                if "Maximum line size" not in str(error) or room > MAX_LINE:
                    raise _csv_fault(text, str(error), spec.multiline) from None
        [(count,)] = self.ask(f"SELECT count(*) FROM {relation}")
        if text.lines - count - header and not spec.multiline:
            broken = " OR ".join(f"contains({self.key(name)}, chr(10))" for name in chosen) or "false"
            [(row,)] = self.ask(f"SELECT min(rowid) FROM {relation} WHERE {broken}")
            at = f"{path}: {count:,} rows on {text.lines:,} lines" if row is None else f"{path}: data row {row + 1}"
            raise FewnodeError(f"{at}: {LOST_QUOTE}{MULTILINE}")
        return relation, kinds


def _place(path: Path) -> str:
    """A file for DuckDB, which takes `*` and `[` for patterns."""
    return literal(glob.escape(str(path)))


def _arrow(source: Any) -> pa.Table:
    """What Python has for a table."""
    data = source.data if isinstance(source, NamedTable) else source
    if type(data).__module__.startswith("pandas"):
        named = any(level is not None for level in data.index.names)  # else it is the rows' number, no data
        data = pa.Table.from_pandas(data, preserve_index=named)
    else:
        if not hasattr(data, "__arrow_c_stream__") and hasattr(data, "fetch_arrow_table"):
            data = data.fetch_arrow_table()  # the cursor of a database
        data = pa.table(dict(data) if isinstance(data, Mapping) else data)
    data.validate(full=True)
    return data


def _need_sane_texts(path: Path, columns: list[str], size: int) -> None:
    """Refuse a file in which one long text is told a million times, as Parquet can in a few bytes."""
    import pyarrow.parquet

    left = max(4 * FREE_BYTES, MAX_INFLATION * size)
    parquet = pyarrow.parquet.ParquetFile(path, read_dictionary=columns)
    for batch in parquet.iter_batches(columns=columns) if columns else ():
        for column in batch.columns:
            if pa.types.is_dictionary(column.type):
                lengths = pc.take(pc.binary_length(column.dictionary), column.indices)
                left -= int(pc.sum(pc.cast(lengths, pa.int64())).as_py() or 0)
        if left < 0:
            raise FewnodeError(f"{path}: inflates to over {MAX_INFLATION} times its size, refused")


def _as_text(cells: str, kind: str) -> tuple[str, str]:
    """What becomes of a column of a type of DuckDB's, and the query for it."""
    if kind.endswith("]"):
        inner = re.sub(r"\[\d*\]$", "", kind)
        if re.fullmatch(r"(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL\(.*\))", inner):
            return "vector", f"CAST({cells} AS DOUBLE[])"
        if inner == "VARCHAR":
            return "text", f"array_to_string(CAST({cells} AS VARCHAR[]), ' ')"
        return f"nested, {kind}", "CAST(NULL AS VARCHAR)"
    if kind.startswith(("STRUCT", "MAP", "UNION")):
        return f"nested, {kind}", "CAST(NULL AS VARCHAR)"
    if kind in ("FLOAT", "DOUBLE"):  # 7.0 reads 7, as pandas makes those of ids; beyond its digits it is no id
        whole = f"{cells} = trunc({cells}) AND abs({cells}) < {2**24 if kind == 'FLOAT' else 2**53}"
        number = f"CASE WHEN {whole} THEN CAST(CAST({cells} AS BIGINT) AS VARCHAR) ELSE CAST({cells} AS VARCHAR) END"
        return "text", f"CASE WHEN NOT isnan({cells}) THEN {number} END"
    if kind == "BLOB":
        return "text", f"decode({cells})"
    return "text", f"CAST({cells} AS VARCHAR)"


def need_columns(table: str, header: Sequence[str], wanted: Iterable[str]) -> list[str]:
    """The wanted columns, or an error that names the first missing one and what there is."""
    wanted, there = list(dict.fromkeys(wanted)), set(header)
    if missing := [name for name in wanted if name not in there]:
        shown = ", ".join(column[:40] for column in header[:12]) + (" …" if len(header) > 12 else "")
        near = closest(missing[0], header)
        alone = "; if it holds several columns, say what is between them with `separator`" if len(header) == 1 else ""
        raise FewnodeError(f"{table}: no column {missing[0]!r}{near}; there are {shown}{alone}")
    return wanted


def _header(path: Path, first: Sequence[str], separator: str, has_header: bool, multiline: bool) -> list[str]:
    """The names in the first line, or one for each cell of it."""
    if first and first[0].count(separator) >= MAX_COLUMNS:
        raise FewnodeError(f"{path}: line 1: {TOO_WIDE}")
    _, row = next(rows(str(path), first, separator, multiline=multiline, remedy=MULTILINE), (1, []))
    if not any(map(str.strip, row)):
        expected = "a header with the column names" if has_header else "the first row"
        raise FewnodeError(f"{path}: line 1 is empty, expected {expected}")
    return row if has_header else [f"column {i}" for i in range(1, len(row) + 1)]


def _csv_fault(text: PlainText, error: str, multiline: bool) -> FewnodeError:
    """What DuckDB says of a CSV file, in one line."""
    line = re.search(r"CSV Error on Line: (\d+)", error)
    at = f"{text.path}: line {line[1]}" if line else str(text.path)
    cells = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", error)
    if cells and ("\n" not in error[: cells.start()].partition("Original Line: ")[2].strip() or multiline):
        return FewnodeError(f"{at}: {cells[2]} cells, expected {cells[1]}")
    if cells or "unterminated quote" in error:
        return FewnodeError(f"{at}: {LOST_QUOTE}{'' if multiline else MULTILINE}")
    if "nvalid unicode" in error:
        return text.undecodable(int(line[1]) if line else 1)
    if "Maximum line size" in error:
        return FewnodeError(f"{at} is longer than {MAX_LINE >> 20} MB")
    return FewnodeError(f"{at}: not a readable table ({one_line(ValueError(error))})")
