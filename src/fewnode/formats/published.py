"""The layout in which the paper's authors publish their networks: `NAME_network`, `NAME_train.mat`, `NAME_test.mat`.

The first has a pair of node numbers a line; each `.mat` (MATLAB 5) has the rows `Index`, the classes `Label` and the
`Attributes` of the nodes of its classes. `train` holds the classes for training and validation. Where a `.mat` is
missing the network is still read; the nodes it would describe are unlabelled and without attributes.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from fewnode._system.files import one_line, readable
from fewnode.class_labels import UNKNOWN
from fewnode.dataset import ClassSplit, Dataset
from fewnode.errors import FewnodeError, closest
from fewnode.formats.expected import EXPECTED, blob_id
from fewnode.graph import Graph, Ints

_PARTS = ("train", "test")


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
    expected = next((e for e in EXPECTED.values() if e.published == name), None)
    files = {part: folder / f"{name}_{part}.mat" for part in _PARTS}
    parts = {part: read_mat(path) for part, path in files.items() if path.exists()}
    edges = read_network(folder / f"{name}_network")
    try:
        n = _count_nodes(edges, parts)
        nodes, classes = (
            np.concatenate([np.zeros(0, np.int64), *(getattr(part, what) for part in parts.values())])
            for what in ("nodes", "classes")
        )
        ids, labels = np.unique(classes, return_inverse=True)
        y = np.full(n, UNKNOWN)
        y[nodes] = labels
        x = None
        if parts:
            rows = np.full(n, nodes.size)  # the last row is empty: that of nodes that no part describes
            rows[nodes] = np.arange(nodes.size)
            described = [part.x for part in parts.values()]
            x = sp.vstack([*described, sp.csr_array((1, described[0].shape[1]), dtype=np.float32)], format="csr")[rows]
        graph = Graph.from_edges(edges, n, x, directed=directed)
        if len(parts) == len(_PARTS):
            test = np.searchsorted(ids, np.unique(parts["test"].classes))
            shares = expected.split if expected else tuple(fractions)
            rest = ClassSplit.random(np.where(np.isin(y, test), UNKNOWN, y), (*shares[:2], 0), seed)
            split = ClassSplit(rest.train, rest.valid, tuple(test.tolist()))
        else:
            split = ClassSplit.random(y, fractions, seed)
    except FewnodeError as error:
        raise FewnodeError(f"{folder}: {name}: {error}") from None
    lacking = "is not there: the nodes it describes are unlabelled and without attributes"
    notes = [f"{path.name} {lacking}" for part, path in files.items() if part not in parts]
    info: dict[str, Any] = {"source": f"{name}_network", "notes": notes}
    info |= expected.compare(graph, split) if expected else {}
    return Dataset(graph, y, split, tuple(str(c) for c in ids.tolist()), name=name, info=info)


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


def _count_nodes(edges: Ints, parts: dict[str, Part]) -> int:
    """The largest number plus one; refused where nearly all numbers below it are missing, before it costs memory."""
    named = np.concatenate([edges.ravel(), *(part.nodes for part in parts.values())])
    top, distinct = int(named.max()), np.unique(named).size
    if top > 10 * distinct + 1000:
        raise FewnodeError(f"node {top} among {distinct} nodes, expected numbers from 0 without large gaps")
    return top + 1


def read_mat(path: Path) -> Part:
    """The nodes, classes and attributes in one of the files that the authors published, and in no other.

    SciPy trusts the types and sizes in a MATLAB file: a few wrong bytes crash the interpreter.
    """
    with readable(path) as file:
        blob = file.read(1 << 28)
    if blob_id(blob) not in {blob for expected in EXPECTED.values() for blob in expected.blobs.values()}:
        raise FewnodeError(
            f"{path}: not a file that the authors published, and no other MATLAB file is read; "
            "fetch it again with fewnode data download, or save yours as .npz"
        )
    import scipy.io

    held = scipy.io.loadmat(io.BytesIO(blob))
    nodes, classes = (held[name].ravel().astype(np.int64) for name in ("Index", "Label"))
    return Part(nodes, classes, sp.csr_array(held["Attributes"]).astype(np.float32))
