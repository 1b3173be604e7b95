"""`cells.jsonl`: one line for each finished cell, with its own checksum, appended and synced before the next begins.

A line that was cut off, edited or damaged does not match its checksum; it counts as if it were not there, so that its
cell runs again. Nothing in the file is ever changed: a full disk, or a kill in the middle, costs the last line at most.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewnode.machine.files import readable
from fewnode.scoring.metrics import METRICS

FILE = "cells.jsonl"
STATUSES = ("done", "failed", "impossible")
NEEDED = ("dataset", "method", "way", "shot", "seed", "kind")
DIGITS = 4
"""Scores are kept to so many decimals: a hundredth of a percent."""


@dataclass(frozen=True)
class Record:
    """A finished cell: what it was, what came out, and what produced it."""

    id: str
    cell: dict[str, Any]
    status: str
    reason: str | None = None
    per_task: dict[str, list[float]] = field(default_factory=dict)
    case: dict[str, Any] | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The cell in words."""
        cell = self.cell
        method = str(cell["method"]).split(" ")[0]
        what = "case study" if cell["kind"] == "case" else f"seed {cell['seed']}"
        ways = "all classes" if cell.get("protocol") else f"{cell['way']}-way"
        return f"{cell['dataset']} {method} {ways} {cell['shot']}-shot {what}"

    @property
    def scores(self) -> dict[str, NDArray[np.float64]]:
        return {metric: np.array(values) for metric, values in self.per_task.items()}

    def to_line(self) -> str:
        body = {name: value for name, value in asdict(self).items() if value not in (None, {})}
        return _text({**body, "sha256": short_hash(body)})


def read_ledger(directory: Path) -> tuple[dict[str, Record], int]:
    """The records by id, and how many lines are damaged. Of two records of a cell, the one that is done counts."""
    path, found, damaged = directory / FILE, dict[str, Record](), 0
    if not path.exists():
        return found, 0
    with readable(path) as file:
        for line in file:
            record = _parse(line)
            if record is None:
                damaged += bool(line.strip())
            elif record.id not in found or found[record.id].status != "done":
                found[record.id] = record
    return found, damaged


def _parse(line: bytes) -> Record | None:
    try:
        body = json.loads(line)
        if body.pop("sha256") != short_hash(body):
            return None
        record = Record(**body)
        scores = [record.per_task[metric] for metric in METRICS] if record.per_task else []
        ok = record.status in STATUSES and isinstance(record.id, str) and all(key in record.cell for key in NEEDED)
        ok &= all(isinstance(spent, int | float) for spent in record.seconds.values())
        ok &= all(len(values) == len(scores[0]) > 0 and np.isfinite(values).all() for values in scores)
        ok &= record.status != "done" or bool(scores) or isinstance(record.case, dict)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return record if ok else None


class Ledger:
    """The file, open for appending."""

    def __init__(self, directory: Path) -> None:
        path = directory / FILE
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        self._end = os.fstat(self._file).st_size
        if self._end and os.pread(self._file, 1, self._end - 1) != b"\n":
            self._append(b"\n")  # a kill cut the last line off: it must not swallow the next one

    def add(self, record: Record) -> None:
        self._append(record.to_line().encode() + b"\n")

    def _append(self, blob: bytes) -> None:
        try:
            rest = memoryview(blob)
            while rest:
                rest = rest[os.write(self._file, rest) :]
            os.fsync(self._file)
        except OSError:
            os.ftruncate(self._file, self._end)  # half a line helps nobody
            raise
        self._end += len(blob)

    def close(self) -> None:
        os.close(self._file)


def short_hash(value: Mapping[str, Any]) -> str:
    """16 hexadecimal digits that differ where the values do."""
    return hashlib.sha256(_text(value).encode()).hexdigest()[:16]


def _text(value: Mapping[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
