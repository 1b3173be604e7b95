"""What no parameter enters, computed once and kept on disk: Â and P = Â X of a network larger than memory.

Work is cut into blocks of rows and columns. A block is one file, which is there whole or not at all, so that a run that
was killed goes on with the blocks that are missing, and blocks can be made by many machines that share a disk. What is
finished is one file again, memory-mapped by training and classification.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fewnode.engine import loops
from fewnode.engine.fields import ReceptiveFields
from fewnode.engine.sparse import CSR, closed_parts
from fewnode.errors import FewnodeError
from fewnode.graph import Graph, is_sparse
from fewnode.machine import memory
from fewnode.storage.io import (
    Stream,
    exclusive,
    load_dataset,
    map_safetensors,
    read_record,
    write_record,
    write_safetensors,
)
from fewnode.storage.packing import Arrays

KIND = "prepared"
COMPARED, SAMPLED = 1 << 22, 64
"""Arcs of Â that are compared at a time, and rows of P that are, when both are opened."""
Floats: TypeAlias = NDArray[np.float32]


class Stage(Protocol):
    """Work in blocks, each of which becomes one file. It travels to other processes: small, and paths instead of data.

    `make(key)` writes the file `path(key)`, whole or not at all.
    """

    @property
    def keys(self) -> Sequence[tuple[int, ...]]: ...

    def path(self, key: tuple[int, ...]) -> Path: ...

    def make(self, key: tuple[int, ...]) -> None: ...


Runner: TypeAlias = Callable[[Stage, Sequence[tuple[int, ...]], Callable[[], None]], None]
"""Makes those blocks of a stage, here or elsewhere, and tells after each."""


def here(stage: Stage, keys: Sequence[tuple[int, ...]], done: Callable[[], None]) -> None:
    """One block after the other, in this process."""
    for key in keys:
        stage.make(key)
        memory.keep()
        done()


def finish(stage: Stage, runner: Runner, report: Callable[[int, int], None] = lambda done, total: None) -> None:
    """Make what is missing of a stage."""
    missing = [key for key in stage.keys if not stage.path(key).exists()]
    total, made = len(stage.keys), len(stage.keys) - len(missing)
    report(made, total)

    def done() -> None:
        nonlocal made
        made += 1
        report(made, total)

    if missing:
        runner(stage, missing, done)


def cut(n: int, step: int) -> list[tuple[int, int]]:
    """0 … n in ranges of `step`."""
    return [(low, min(low + step, n)) for low in range(0, n, step)]


# --- propagation --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Propagation:
    """Rows `rows` at a time of Â, and of P so many `columns` at a time: the columns of X fit into memory then."""

    home: Path
    rows: int
    columns: int
    n: int
    width: int
    identity: str
    """Of the dataset."""

    @classmethod
    def plan(cls, graph: Graph, limit: int | None = None, rows: int | None = None) -> Propagation:
        """Blocks for a process that may use `limit` bytes: half of them for columns of X, a sixteenth for a block."""
        if graph.home is None:
            raise FewnodeError("blocks are kept beside a dataset directory; make one with fewnode data import")
        if is_sparse(graph.x):
            raise FewnodeError(
                f"{graph.home}: sparse attributes are multiplied as they are; there is nothing to prepare"
            )
        width = graph.n_features
        columns = width if limit is None else max(1, min(width, limit // 2 // (4 * max(1, graph.n))))
        row = 4 * columns + 8 * (1 + graph.adj.nnz // max(1, graph.n))
        fit = (1 << 28 if limit is None else limit // 16) // row
        return cls(graph.home, rows or max(1, min(graph.n, fit)), columns, graph.n, width, dataset_identity(graph.home))

    @cached_property
    def folder(self) -> Path:
        """Blocks of another dataset, or of another size, are other blocks."""
        text = f"{self.identity} {self.rows} {self.columns}"
        return self.home / KIND / f"blocks-{hashlib.sha256(text.encode()).hexdigest()[:16]}"

    @property
    def keys(self) -> list[tuple[int, ...]]:
        rows, columns = cut(self.n, self.rows), cut(self.width, self.columns)
        return [(r, c) for c in range(len(columns)) for r in range(len(rows))]

    def path(self, key: tuple[int, ...]) -> Path:
        return self.folder / f"{key[0]:06d}-{key[1]:04d}.safetensors"

    def make(self, key: tuple[int, ...]) -> None:
        row, column = key
        low, high = cut(self.n, self.rows)[row]
        indptr, indices, values = loops.closed(*_structure(self.home), low, high)
        rows = CSR(indptr[:-1], indptr[1:], indices, values, (high - low, self.n))
        slab = _slab(self.home, *cut(self.width, self.columns)[column])
        p = rows.multiply(slab) if self.width == 1 else loops.multiply(*rows.arrays, slab)  # to the last bit
        own = {"indices": indices, "values": values} if column == 0 else {}
        write_safetensors(self.path(key), {"p": p, **own})

    def assemble(self) -> None:
        """The blocks as one record; then they can go."""
        adj = _structure(self.home)
        indptr = adj[0] + np.arange(self.n + 1, dtype=np.int64)
        index = adj[1].dtype if indptr[-1] < 2**31 else np.dtype(np.int64)
        rows, columns = range(len(cut(self.n, self.rows))), range(len(cut(self.width, self.columns)))

        def read(name: str) -> Iterator[NDArray[Any]]:
            for r in rows:
                yield map_safetensors(self.path((r, 0)))[name]
                memory.keep()

        def joined() -> Iterator[Floats]:
            for r in rows:
                parts = [map_safetensors(self.path((r, c)))["p"] for c in columns]
                yield parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
                memory.keep()

        arrays: dict[str, NDArray[Any] | Stream] = {
            "indptr": indptr.astype(index),
            "indices": Stream(np.dtype(adj[1].dtype), (int(indptr[-1]),), read("indices")),
            "values": Stream(np.dtype(np.float32), (int(indptr[-1]),), read("values")),
            "p": Stream(np.dtype(np.float32), (self.n, self.width), joined()),
        }
        write_record(self.home / KIND, KIND, {"data": self.identity}, arrays)
        shutil.rmtree(self.folder)


def dataset_identity(home: Path) -> str:
    """The checksum that the dataset's manifest vouches for."""
    return str(read_record(home, "dataset", check=False)[0]["sha256"]["dataset.safetensors"])


@lru_cache(maxsize=1)
def _structure(home: Path) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None, Floats]:
    """A's rows, and the scale of each node in Â; who planned the blocks has checked the dataset."""
    return closed_parts(load_dataset(home, check=False).graph)


@lru_cache(maxsize=1)
def _slab(home: Path, low: int, high: int) -> Floats:
    """Columns of X, side by side: a product reads them in no order, and the whole rows would not fit."""
    x = read_record(home, "dataset", check=False)[1]["x"]
    if (low, high) == (0, x.shape[1]):
        return x
    return np.concatenate([rows[:, low:high] for rows in memory.chunks(x)])


def prepare(
    plan: Propagation,
    resume: bool = False,
    runner: Runner = here,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Â and P of a dataset, on disk beside it. What an earlier run has made of it stays, if `resume` says so."""
    folder = plan.home / KIND
    with exclusive(folder):
        if (folder / f"{KIND}.json").exists():
            return
        others = [path for path in folder.glob("blocks-*") if path != plan.folder]
        if plan.folder.exists() and not resume:
            raise FewnodeError(f"{folder}: there are blocks of an unfinished run; continue it with --resume")
        for path in others:
            shutil.rmtree(path)
        finish(plan, runner, report)
        plan.assemble()


def is_prepared(graph: Graph) -> bool:
    return graph.home is not None and (graph.home / KIND / f"{KIND}.json").exists()


def open_prepared(graph: Graph) -> ReceptiveFields | None:
    """The network as encoders read it, memory-mapped; None if it was not prepared.

    The numbers are those that `ReceptiveFields` would compute, bit for bit. Their checksum is not compared at every
    start, as that would read all of the file; but compiled loops index with Â, and a dataset may come from a stranger:
    Â is compared whole with what it should be, and P in some rows.
    """
    if graph.home is None or is_sparse(graph.x) or not is_prepared(graph):
        return None
    meta, arrays = read_record(graph.home / KIND, KIND, check=False)
    if meta.get("data") != dataset_identity(graph.home):
        raise FewnodeError(f"{graph.home / KIND}: made of another network; delete it and prepare again")
    if not _is_of(graph, arrays):
        raise FewnodeError(f"{graph.home / KIND}: not what this network gives; delete it and prepare again")
    return ReceptiveFields.mapped(graph, arrays)


def _is_of(graph: Graph, arrays: Arrays) -> bool:
    n, nnz = graph.n, graph.adj.nnz + graph.n
    types = {"indices": graph.adj.indices.dtype, "values": np.float32, "p": np.float32}
    shapes = {"indptr": (n + 1,), "indices": (nnz,), "values": (nnz,), "p": graph.x.shape}
    if {name: array.shape for name, array in arrays.items()} != shapes:
        return False
    if any(arrays[name].dtype != dtype for name, dtype in types.items()) or arrays["indptr"].dtype.kind != "i":
        return False
    starts = graph.adj.indptr + np.arange(n + 1, dtype=np.int64)
    if not np.array_equal(arrays["indptr"], starts):
        return False
    parts = closed_parts(graph)
    for low, high in cut(n, max(1, n * COMPARED // max(1, nnz))):
        part = slice(starts[low], starts[high])
        _, indices, values = loops.closed(*parts, low, high)
        if not (np.array_equal(arrays["indices"][part], indices) and np.array_equal(arrays["values"][part], values)):
            return False
        memory.keep()
    some = np.unique(np.linspace(0, n - 1, min(n, SAMPLED)).astype(np.int64)) if n else ()
    return all(
        np.array_equal(arrays["p"][v : v + 1], _product(loops.closed(*parts, v, v + 1), graph.x))
        for v in map(int, some)
    )


def _product(row: tuple[NDArray[Any], NDArray[Any], NDArray[Any]], x: Floats) -> Floats:
    """A row of Â times X."""
    starts, places, values = row
    return CSR(starts[:-1], starts[1:], places, values, (1, x.shape[0])).multiply(x)


def clear_blocks(folder: Path) -> None:
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)
