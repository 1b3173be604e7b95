"""`cells.jsonl`: one line for each finished cell, with its own checksum, appended and synced before the next begins.

A line that was cut off, edited or damaged does not match its checksum; it counts as if it were not there, so that its
cell runs again. Nothing in the file is ever changed: a full disk, or a kill in the middle, costs the last line at most.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, FiniteFloat, model_validator

from fewnode._system.files import readable
from fewnode.scores import METRICS

FILE = "cells.jsonl"
NEEDED = {"dataset", "method", "way", "shot", "seed", "kind"}


class Record(BaseModel):
    """A finished cell: what it was, what came out, and what produced it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    cell: dict[str, Any]
    status: Literal["done", "failed", "impossible"]
    reason: str | None = None
    per_task: dict[str, list[FiniteFloat]] = {}
    case: dict[str, Any] | None = None
    seconds: dict[str, float] = {}
    provenance: dict[str, Any] = {}

    @model_validator(mode="after")
    def _is_whole(self) -> Record:
        tasks = {len(self.per_task.get(metric, ())) for metric in METRICS} if self.per_task else {1}
        if NEEDED - self.cell.keys() or len(tasks) > 1 or 0 in tasks:
            raise ValueError("no cell, or not every metric of every task")
        if self.status == "done" and not self.per_task and self.case is None:
            raise ValueError("done, and nothing came out")
        return self

    @property
    def name(self) -> str:
        """The cell in words."""
        cell = self.cell
        what = "case study" if cell["kind"] == "case" else f"seed {cell['seed']}"
        ways = "all classes" if cell.get("protocol") else f"{cell['way']}-way"
        return f"{cell['dataset']} {str(cell['method']).split(' ')[0]} {ways} {cell['shot']}-shot {what}"

    def to_line(self) -> str:
        """The record and its checksum as JSON."""
        body = {name: value for name, value in self.model_dump().items() if value not in (None, {})}
        return _text({**body, "sha256": short_hash(body)})


def read_ledger(directory: Path) -> tuple[dict[str, Record], int]:
    """The records by id, and how many lines are damaged. Of two records of a cell, the one that is done counts."""
    path, records, damaged = directory / FILE, dict[str, Record](), 0
    if not path.exists():
        return records, 0
    with readable(path) as file:
        for line in filter(bytes.strip, file):
            try:
                body = json.loads(line)
                if body.pop("sha256") != short_hash(body):
                    raise ValueError("another checksum")
                record = Record.model_validate(body)
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                damaged += 1
                continue
            if record.id not in records or records[record.id].status != "done":
                records[record.id] = record
    return records, damaged


@contextmanager
def appending(directory: Path) -> Iterator[Callable[[Record], None]]:
    """A function that adds a record: the line is on the disk before it returns."""
    file = os.open(directory / FILE, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)

    def append(line: bytes) -> None:
        end, rest = os.fstat(file).st_size, memoryview(line)
        try:
            while rest:
                rest = rest[os.write(file, rest) :]
            os.fsync(file)
        except OSError:
            os.ftruncate(file, end)  # half a line helps nobody
            raise

    try:
        size = os.fstat(file).st_size
        if size and os.pread(file, 1, size - 1) != b"\n":
            append(b"\n")  # a kill cut the last line off: it must not swallow the next one
        yield lambda record: append(record.to_line().encode() + b"\n")
    finally:
        os.close(file)


def short_hash(value: Mapping[str, Any]) -> str:
    """16 hexadecimal digits that differ where the values do."""
    return hashlib.sha256(_text(value).encode()).hexdigest()[:16]


def _text(value: Mapping[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
