"""Room on the disk for tables larger than memory: columns are written once, in order, and mapped from then on.

What reads such columns is the code that reads those in memory. It takes one piece after another where a whole column
would be copied, and `fewnode.machine.memory` lets go of the pages that were seen.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import scipy.sparse as sp
from numpy.typing import NDArray

from fewnode.datasets.arc_rows import write_rows
from fewnode.errors import FewnodeError
from fewnode.graph import Graph, Ints, no_attributes
from fewnode.machine import memory

ROWS = 1 << 16
"""Of a table in one piece."""
NAME_BYTES = 300
"""Of memory for the name of a node: as text, in a table that finds it, and as a string of Python."""
EDGE_BYTES = 150
"""Of memory for an edge with a weight or a kind while edges that are there twice are joined."""


@dataclass(frozen=True)
class Scratch:
    """Files without a name in a folder: each is gone with the last array that is mapped from it."""

    folder: Path
    limit: int
    """Bytes of memory that may be in use."""
    rows: int = ROWS

    def check_names(self, count: int, place: str) -> None:
        """Refuse more names of nodes than fit."""
        self._check(count * NAME_BYTES, f"{place}: the names of {count:,} nodes")

    def check_edges(self, count: int) -> None:
        """Refuse more edges with weights or kinds than fit; those without are sorted on the disk."""
        self._check(count * EDGE_BYTES, f"{count:,} edges with weights or kinds")

    def _check(self, size: int, what: str) -> None:
        if size > self.limit:
            need = -(-size // 2**30)
            raise FewnodeError(f"{what} take about {need} GB of memory; say --memory {need}G or more")

    def _file(self) -> BinaryIO:
        self.folder.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryFile(dir=self.folder)

    def table(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> pa.Table:
        with self._file() as file:
            with pyarrow.ipc.new_file(pa.PythonFile(file, "w"), schema) as writer:
                for batch in batches:
                    for low in range(0, batch.num_rows, self.rows):
                        writer.write_batch(_own(batch.slice(low, self.rows)))
            file.flush()
            mapped = memory.map_open(file)
        return pyarrow.ipc.open_file(pa.py_buffer(mapped)).read_all()

    def column(self, kind: pa.DataType, parts: Iterable[pa.Array]) -> pa.ChunkedArray:
        schema = pa.schema([("cells", kind)])

        def batches() -> Iterator[pa.RecordBatch]:
            for part in parts:
                yield pa.record_batch([part], schema=schema)
                memory.keep()

        return self.table(schema, batches()).column(0)

    def array(self, shape: tuple[int, ...], dtype: Any = np.float32) -> NDArray[Any]:
        return memory.scratch(self.folder, shape, dtype)

    def held(self, array: NDArray[Any]) -> NDArray[Any]:
        """The same numbers, on the disk."""
        out = self.array(array.shape, array.dtype)
        out[...] = array
        memory.keep()
        return out

    def pieces(self, count: int, least: int = 0) -> Iterator[slice]:
        """So many rows, a piece at a time; before the next one, what was mapped for the last is let go."""
        step = max(self.rows, least)
        for low in range(0, count, step):
            yield slice(low, min(low + step, count))
            memory.keep()

    def dense(self, blocks: Iterable[NDArray[np.float32]], shape: tuple[int, int]) -> NDArray[np.float32]:
        out, low = self.array(shape), 0
        for block in blocks:
            out[low : low + len(block)] = block
            low += len(block)
        return out

    def sparse(self, blocks: Iterable[sp.csr_array], shape: tuple[int, int]) -> sp.csr_array:
        """The blocks one below the other."""
        indptr, low = np.zeros(shape[0] + 1, np.int64), 0
        with self._file() as values, self._file() as places:
            for block in blocks:
                indptr[low + 1 : low + 1 + block.shape[0]] = indptr[low] + block.indptr[1:]
                low += block.shape[0]
                values.write(np.ascontiguousarray(block.data, np.float32).data)
                places.write(np.ascontiguousarray(block.indices, np.int32).data)
            values.flush()
            places.flush()
            data, indices = memory.map_open(values).view(np.float32), memory.map_open(places).view(np.int32)
        if indptr[-1] >= 2**31:
            return sp.csr_array((data, self.held(indices.astype(np.int64)), indptr), shape)
        return sp.csr_array((data, indices, indptr.astype(np.int32)), shape)

    def joined(self, arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """The arrays one after another, along their last axis."""
        if len(arrays) == 1:
            return arrays[0]
        out, low = self.array((*arrays[0].shape[:-1], sum(each.shape[-1] for each in arrays)), arrays[0].dtype), 0
        for each in arrays:
            out[..., low : low + each.shape[-1]] = each
            low += each.shape[-1]
            memory.keep()
        return out

    def graph(self, edge_index: Ints, n: int, *, directed: bool = False) -> Graph:
        """What `Graph.from_edges` makes of edges that are known to be of these nodes."""

        def arcs() -> Iterator[tuple[Ints, Ints]]:
            for piece in self.pieces(edge_index.shape[1], 1 << 20):
                source, target = edge_index[:, piece]
                yield source, target
                if not directed:
                    yield target, source

        with self._file() as waiting:
            indptr = write_rows(arcs, n, self.limit, waiting)
            indices = memory.map_open(waiting).view(np.int32)
        starts = indptr.astype(np.int32) if indptr[-1] < 2**31 else indptr
        adj = sp.csr_array((np.broadcast_to(np.float32(1), indices.shape), indices, starts), (n, n))
        return Graph(adj, no_attributes(n))

    def chosen(self, array: NDArray[Any], mask: NDArray[np.bool_]) -> NDArray[Any]:
        """`array[..., mask]`, on the disk."""
        out, low = self.array((*array.shape[:-1], int(np.count_nonzero(mask))), array.dtype), 0
        for piece in self.pieces(mask.size, 1 << 20):
            part = array[..., piece][..., mask[piece]]
            out[..., low : low + part.shape[-1]] = part
            low += part.shape[-1]
        return out


def _own(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Without what lies before and after a slice: Arrow would write the offsets of all of it."""
    columns = [pa.concat_arrays([column]) for column in batch.columns]
    return pa.record_batch(columns, batch.schema.names)
