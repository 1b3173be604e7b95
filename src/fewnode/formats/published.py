"""The paper's networks as their authors publish them, and what the paper says that they are (`expected.toml`).

`NAME_network` has a pair of node numbers a line; `NAME_train.mat` and `NAME_test.mat` (MATLAB 5) have the rows `Index`,
the classes `Label` and the `Attributes` of the nodes of their classes. `train` holds the classes for training and
validation. Where a `.mat` is missing the network is still read: the nodes it would describe have no label and no
attributes.
"""

from __future__ import annotations

import io
import tomllib
import warnings
from hashlib import sha1, sha256
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from pydantic import BaseModel

from fewnode._system.files import one_line, readable
from fewnode.class_labels import UNKNOWN
from fewnode.dataset import ClassSplit, Dataset
from fewnode.errors import FewnodeError, closest
from fewnode.graph import Graph, Ints


class Expected(BaseModel):
    """Table 1 of the paper for one network, its classes for training, validation and test, and the authors' files:
    the name that they begin with, the git blob id of each, and a hash of the degrees in them, where we have them."""

    nodes: int
    edges: int
    attributes: int
    classes: int
    split: tuple[int, int, int]
    published: str | None = None
    blobs: dict[str, str] = {}
    degrees_sha256: str | None = None

    def compare(self, graph: Graph, split: ClassSplit) -> dict[str, Any]:
        """`expected`: the paper's counts. `difference`: how many more the built network has; negative is fewer."""
        sizes = [len(split.train), len(split.valid), len(split.test)]
        counts = {"nodes": graph.n, "edges": graph.n_edges, "attributes": graph.n_features, "classes": sum(sizes)}
        difference: dict[str, Any] = {what: n - getattr(self, what) for what, n in counts.items()}
        difference["split"] = [n - m for n, m in zip(sizes, self.split, strict=True)]
        return {"expected": {**self.model_dump(include={*counts}), "split": [*self.split]}, "difference": difference}


_TABLE = resources.files("fewnode.formats").joinpath("expected.toml").read_text("utf-8")
EXPECTED = {name: Expected(**entry) for name, entry in tomllib.loads(_TABLE).items()}


def blob_id(content: bytes) -> str:
    """The id that git has for a file's content."""
    return sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def network_of_the_paper(graph: Graph) -> str | None:
    """Which of the four networks this is, whatever it is called and however its nodes are numbered."""
    degrees = sha256(np.sort(graph.degree).astype("<i8").tobytes()).hexdigest()
    for name, expected in EXPECTED.items():
        counts = (expected.nodes, expected.edges, expected.attributes)
        if counts == (graph.n, graph.n_edges, graph.n_features) and expected.degrees_sha256 in (None, degrees):
            return name
    return None


def read_published(folder: Path, name: str | None = None, seed: int = 0, directed: bool = False) -> Dataset:
    """The network `name` in `folder`, under the authors' name for it or ours; needless if it is the only one there.

    The test classes are those of `test.mat`. Those of `train.mat` are dealt by `seed` in the paper's proportion for a
    network of the paper, else five to two. With one file alone, its classes are dealt 50/20/30.
    """
    name = _choose(folder, name)
    expected = next((e for e in EXPECTED.values() if e.published == name), None)
    files = {part: folder / f"{name}_{part}.mat" for part in ("train", "test")}
    parts = {part: read_mat(path) for part, path in files.items() if path.exists()}
    edges = read_network(folder / f"{name}_network")
    try:
        nodes, classes = (np.concatenate([edges[0, :0], *(part[i] for part in parts.values())]) for i in (0, 1))
        named = np.unique(np.concatenate([edges.ravel(), nodes]))
        n = int(named[-1]) + 1
        if n > 10 * named.size + 1001:  # nearly all numbers below it are missing, and each would cost memory
            raise FewnodeError(f"node {n - 1} among {named.size} nodes, expected numbers from 0 without large gaps")
        ids, labels = np.unique(classes, return_inverse=True)
        y, x = np.full(n, UNKNOWN), None
        y[nodes] = labels
        if parts:
            stacked = sp.coo_array(sp.vstack([x for _, _, x in parts.values()]))
            x = sp.csr_array((stacked.data, (nodes[stacked.row], stacked.col)), shape=(n, stacked.shape[1]))
        graph = Graph.from_edges(edges, n, x, directed=directed)
        split = ClassSplit.random(y, seed=seed)
        if len(parts) == len(files):
            test = np.searchsorted(ids, np.unique(parts["test"][1]))
            shares = expected.split[:2] if expected else (50, 20)
            rest = ClassSplit.random(np.where(np.isin(y, test), UNKNOWN, y), (*shares, 0), seed)
            split = ClassSplit(rest.train, rest.valid, tuple(test.tolist()))
    except FewnodeError as error:
        raise FewnodeError(f"{folder}: {name}: {error}") from None
    lacking = "is not there: the nodes it describes are unlabelled and without attributes"
    notes = [f"{path.name} {lacking}" for part, path in files.items() if part not in parts]
    info: dict[str, Any] = {"source": f"{name}_network", "notes": notes}
    info |= expected.compare(graph, split) if expected else {}
    return Dataset(graph, y, split, tuple(map(str, ids.tolist())), name=name, info=info)


def _choose(folder: Path, name: str | None) -> str:
    networks = sorted(path.name.removesuffix("_network") for path in folder.glob("*_network") if path.is_file())
    if not networks:
        raise FewnodeError(f"{folder}: no network in it, expected files dataset.json or NAME_network")
    if name is None and len(networks) > 1:
        raise FewnodeError(f"{folder}: several networks, choose one by name: {', '.join(networks)}")
    chosen = networks[0] if name is None else (name in EXPECTED and EXPECTED[name].published) or name
    if chosen not in networks:
        raise FewnodeError(f"{folder}: no {chosen}_network{closest(chosen, networks)}; there are {', '.join(networks)}")
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


def read_mat(path: Path) -> tuple[Ints, Ints, sp.csr_array]:
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
    return nodes, classes, sp.csr_array(held["Attributes"]).astype(np.float32)
