"""The layout in which the paper's authors publish their networks: `NAME_network`, `NAME_train.mat`, `NAME_test.mat`.

The first has a pair of node numbers a line; each `.mat` (MATLAB 5) has the rows `Index`, the classes `Label` and the
`Attributes` of the nodes of its classes. `train` holds the classes for training and validation. Where a `.mat` is
missing the network is still read; the nodes it would describe are unlabelled and without attributes.
"""

from __future__ import annotations

import struct
import warnings
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fewnode.class_labels import UNKNOWN
from fewnode.dataset import ClassSplit, Dataset
from fewnode.datasets.expected import EXPECTED
from fewnode.errors import FewnodeError, closest
from fewnode.formats.npz import FREE_INFLATION, MAX_INFLATION
from fewnode.graph import Graph, Ints
from fewnode.machine.files import one_line, readable
from fewnode.storage.packing import checked_csr

MAX_BYTES = 1 << 30
_PARTS = ("train", "test")
_VARIABLES = ("Index", "Label", "Attributes")
_MATRIX, _COMPRESSED = 14, 15
_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_SPARSE = 5
_NUMERIC = range(_SPARSE, 16)
"""MATLAB's array classes that hold numbers: sparse, double, … uint64. The others are text, cells and objects."""
_COMPLEX = 0x0800
"""The flag of an array that has imaginary parts beside the real ones."""

Matrix: TypeAlias = NDArray[Any] | sp.csc_array


class Part(NamedTuple):
    """What one `.mat` file says: which nodes, their class ids and their attributes."""

    nodes: Ints
    classes: Ints
    x: sp.csr_array


def read_published(
    folder: Path,
    name: str | None = None,
    fractions: Sequence[float] = (50, 20, 30),
    seed: int = 0,
    directed: bool = False,
) -> Dataset:
    """The network `name` in `folder`, under the authors' name for it or ours; needless if it is the only one there.

    The test classes are those of `test.mat`. Those of `train.mat` are dealt by `seed` in the paper's proportion for a
    network of the paper, else in that of the first two `fractions`. With one file alone, its classes are dealt by all
    three.
    """
    name = _choose(folder, name)
    parts = {part: read_mat(path) for part in _PARTS if (path := folder / f"{name}_{part}.mat").exists()}
    edges = read_network(folder / f"{name}_network")
    n = _count_nodes(folder / f"{name}_network", edges, parts)
    try:
        graph = Graph.from_edges(edges, n, _attributes(parts, n), directed=directed)
        y, ids = _labels(parts, n)
        split = _split(name, parts, y, ids, fractions, seed)
        notes = [
            f"{name}_{part}.mat is not there: the nodes it describes are unlabelled and without attributes"
            for part in _PARTS
            if part not in parts
        ]
        info: dict[str, Any] = {"source": f"{name}_network", "notes": notes}
        info |= next((e.compare(graph, split) for e in EXPECTED.values() if e.published == name), {})
        return Dataset(graph, y, split, tuple(str(c) for c in ids.tolist()), name=name, info=info)
    except FewnodeError as error:
        raise FewnodeError(f"{folder}: {name}: {error}") from None


def _choose(folder: Path, name: str | None) -> str:
    found = sorted(path.name.removesuffix("_network") for path in folder.glob("*_network") if path.is_file())
    if not found:
        raise FewnodeError(f"{folder}: no network in it, expected files dataset.json or NAME_network")
    if name is None and len(found) > 1:
        raise FewnodeError(f"{folder}: several networks, choose one by name: {', '.join(found)}")
    chosen = found[0] if name is None else (name in EXPECTED and EXPECTED[name].published) or name
    if chosen not in found:
        raise FewnodeError(f"{folder}: no {chosen}_network{closest(chosen, found)}; there are {', '.join(found)}")
    return chosen


def read_network(path: Path) -> Ints:
    """The pairs of node numbers as 2 x E."""
    try:
        with readable(path) as file, warnings.catch_warnings():
            warnings.simplefilter("error")
            pairs = np.loadtxt(file, np.int64, comments=None, delimiter="\t", ndmin=2, encoding="ascii")
    except (ValueError, OverflowError, Warning) as error:
        raise FewnodeError(f"{path}: expected two node numbers and a tab in each line ({one_line(error)})") from None
    if pairs.shape[1] != 2 or pairs.min() < 0:
        raise FewnodeError(f"{path}: expected two node numbers a line, from 0")
    return pairs.T


def _count_nodes(path: Path, edges: Ints, parts: dict[str, Part]) -> int:
    """The largest number plus one; refused where nearly all numbers below it are missing, before it costs memory."""
    named = np.concatenate([edges.ravel(), *(part.nodes for part in parts.values())])
    top, distinct = int(named.max()), np.unique(named).size
    if top > 10 * distinct + 1000:
        raise FewnodeError(f"{path}: node {top} among {distinct} nodes, expected numbers from 0 without large gaps")
    return top + 1


# --- what the parts say together ----------------------------------------------------------------------------------


def _attributes(parts: dict[str, Part], n: int) -> sp.csr_array | None:
    """A row for every node, empty for those that no part describes."""
    if not parts:
        return None
    widths = {part.x.shape[1] for part in parts.values()}
    if len(widths) > 1:
        raise FewnodeError(f"train.mat and test.mat have {' and '.join(map(str, sorted(widths)))} attributes")
    row = np.full(n, sum(part.nodes.size for part in parts.values()))
    nodes = np.concatenate([part.nodes for part in parts.values()])
    row[nodes] = np.arange(nodes.size)
    none = sp.csr_array((1, widths.pop()), dtype=np.float32)
    return sp.vstack([*(part.x for part in parts.values()), none], format="csr")[row]


def _labels(parts: dict[str, Part], n: int) -> tuple[Ints, Ints]:
    """The class of every node, and the id in the files of every class."""
    nodes = np.concatenate([np.zeros(0, np.int64), *(part.nodes for part in parts.values())])
    unique, counts = np.unique(nodes, return_counts=True)
    if unique.size < nodes.size:
        raise FewnodeError(f"node {unique[counts > 1][0]} is described twice")
    ids, labels = np.unique(np.concatenate([np.zeros(0, np.int64), *(p.classes for p in parts.values())]), False, True)
    y = np.full(n, UNKNOWN)
    y[nodes] = labels
    return y, ids


def _split(name: str, parts: dict[str, Part], y: Ints, ids: Ints, fractions: Sequence[float], seed: int) -> ClassSplit:
    if len(parts) < len(_PARTS):
        return ClassSplit.random(y, fractions, seed)
    test = np.flatnonzero(np.isin(ids, parts["test"].classes))
    if (shared := np.intersect1d(parts["train"].classes, parts["test"].classes)).size:
        raise FewnodeError(f"class {shared[0]} is in both train.mat and test.mat")
    shares = next((e.split for e in EXPECTED.values() if e.published == name), tuple(fractions))
    rest = ClassSplit.random(np.where(np.isin(y, test), UNKNOWN, y), (*shares[:2], 0), seed)
    return ClassSplit(rest.train, rest.valid, tuple(test.tolist()))


# --- one .mat file ------------------------------------------------------------------------------------------------


def read_mat(path: Path) -> Part:
    """The nodes, classes and attributes in a MATLAB 5 file, of which nothing else is looked at.

    SciPy's reader is not used: a few wrong bytes crash the interpreter, as it trusts the types and sizes in the file.
    """
    with readable(path) as file:
        blob = file.read(MAX_BYTES + 1)
    if len(blob) > MAX_BYTES:
        raise FewnodeError(f"{path}: larger than {MAX_BYTES >> 20} MB")
    try:
        return _part(dict(_variables(blob)))
    except FewnodeError as error:
        raise FewnodeError(f"{path}: {error}") from None
    except (ValueError, TypeError, IndexError, struct.error, zlib.error) as error:
        raise FewnodeError(f"{path}: not a readable MATLAB 5 file ({one_line(error)})") from None


def _variables(blob: bytes) -> Iterator[tuple[str, Matrix]]:
    """The numeric variables of a file by name: 128 bytes of header, then an element for each variable."""
    order = {b"\x00\x01IM": "<", b"\x01\x00MI": ">"}.get(blob[124:128])
    if order is None:
        raise FewnodeError("not a MATLAB 5 file")
    left = max(FREE_INFLATION // 2, MAX_INFLATION * len(blob))
    for kind, content in _elements(blob[128:], order):
        if kind == _COMPRESSED:
            inflated = zlib.decompressobj().decompress(content, left + 1)
            left -= len(inflated)
            if left < 0:
                raise FewnodeError(f"inflates to over {MAX_INFLATION} times its size, refused")
            [(kind, content)] = _elements(inflated, order)
        if kind != _MATRIX:
            raise FewnodeError("holds something that is no variable")
        (_, flags), (_, shape), (_, name), *numbers = _elements(content, order)
        bits = struct.unpack_from(f"{order}I", flags)[0]
        array_class = bits & 0xFF
        if array_class in _NUMERIC:
            if bits & _COMPLEX:
                raise FewnodeError(f"{name.decode('latin-1')!r} holds complex numbers, expected real ones")
            dims = tuple(np.frombuffer(shape, f"{order}i4").tolist())
            yield name.decode("latin-1"), _matrix(array_class, dims, [_numbers(order, *each) for each in numbers])


def _elements(blob: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    """Type and content of each element. Up to 4 bytes are packed into the tag; others fill up to a multiple of 8."""
    at = 0
    while at < len(blob):
        kind, size = struct.unpack_from(f"{order}II", blob, at)
        start, room = at + 8, len(blob) - at - 8
        if kind >> 16:
            kind, size, start, room = kind & 0xFFFF, kind >> 16, at + 4, 4
        if size > room:
            raise FewnodeError("cut short or damaged")
        yield kind, blob[start : start + size]
        padding = 0 if kind == _COMPRESSED else -(start + size - at) % 8
        at = start + size + padding


def _numbers(order: str, kind: int, content: bytes) -> NDArray[Any]:
    if kind not in _TYPES:
        raise FewnodeError(f"holds numbers of the unknown type {kind}")
    return np.asarray(np.frombuffer(content, order + _TYPES[kind]), _TYPES[kind])  # in this machine's byte order


def _matrix(array_class: int, shape: tuple[int, ...], numbers: list[NDArray[Any]]) -> Matrix:
    if array_class != _SPARSE:
        return numbers[0].reshape(shape, order="F")
    rows, starts, values = numbers[:3]
    stored = int(starts[-1])  # there may be room for more
    columns, rest = shape[::-1]  # exactly two, or the file is damaged
    return checked_csr(values[:stored], rows[:stored], starts, (columns, rest)).T


def _part(variables: dict[str, Matrix]) -> Part:
    if missing := [name for name in _VARIABLES if name not in variables]:
        raise FewnodeError(f"no numbers called {missing[0]!r} in it")
    nodes, classes = (_whole_numbers(name, variables[name]) for name in ("Index", "Label"))
    x = variables["Attributes"]
    if x.ndim != 2 or not x.shape[0] == nodes.size == classes.size:
        shape = " x ".join(map(str, x.shape))
        raise FewnodeError(f"{nodes.size} nodes in Index, {classes.size} in Label, {shape} Attributes")
    with np.errstate(over="ignore"):  # what becomes infinite is refused where the graph is made
        return Part(nodes, classes, sp.csr_array(x).astype(np.float32))


def _whole_numbers(name: str, stored: Matrix) -> Ints:
    if sp.issparse(stored) or stored.size != max(stored.shape):
        raise FewnodeError(f"{name} is not a list of numbers")
    numbers = stored.ravel()
    whole = (numbers >= 0) & (numbers < 2**31) & (numbers == np.floor(numbers))
    if not whole.all():
        raise FewnodeError(f"{name} holds {numbers[~whole][0]}, expected whole numbers from 0")
    return numbers.astype(np.int64)
