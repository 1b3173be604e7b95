"""Where datasets come from: a name, a directory of ours, or a file in a layout that can be imported."""

from __future__ import annotations

import json
import lzma
import sys
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fewnode._system.files import cache_directory, one_line
from fewnode.class_labels import UNKNOWN
from fewnode.dataset import ClassSplit, Dataset
from fewnode.errors import FewnodeError, closest
from fewnode.formats.directory import load_dataset
from fewnode.formats.npz import read_dataset_npz
from fewnode.formats.published import read_published
from fewnode.graph import Graph, Relation
from fewnode.interchange import read_pyg
from fewnode.relations import Directed

PUBLIC = {
    **{name: ("Planetoid", "", name) for name in ("Cora", "CiteSeer", "PubMed")},
    "CoraFull": ("CitationFull", "CitationFull", "Cora"),
    "Cora-ML": ("CitationFull", "CitationFull", "Cora_ML"),
    **{name: ("Amazon", "Amazon", name) for name in ("Computers", "Photo")},
    **{name: ("Coauthor", "Coauthor", name) for name in ("CS", "Physics")},
    **{name: (name, name) for name in ("WikiCS", "Flickr", "Reddit2")},
}
"""The class in `torch_geometric.datasets` that loads a network, the folder it uses, and its own name for it."""


def load(source: str | Path, root: str | Path | None = None) -> Dataset:
    """A dataset by name, from a dataset directory, or from an .npz, GraphML or GML file.

    `debian` is built in. `Cora`, `CoraFull`, `Reddit2` and other well-known networks come through PyG's own loaders
    (extra `pyg`). They are fetched once and kept in `root`, by default in the user's cache.

    >>> load("debian").name
    'debian'
    """
    if str(source) in BUILT_IN:
        return BUILT_IN[str(source)]()
    path = Path(source)
    if (path / "dataset.json").exists():
        return load_dataset(path)
    if not path.exists():
        if name := next((name for name in PUBLIC if name.lower() == str(source).lower()), None):
            return load_public(name, Path(root) if root else cache_directory("public"))
        raise FewnodeError(
            f"{source}: no such dataset; built in: {', '.join(BUILT_IN)}{closest(str(source), [*BUILT_IN, *PUBLIC])}; "
            "fewnode data import reads your own"
        )
    if root is not None:
        raise FewnodeError(f"{source} is read where it is: leave out root, which is for well-known networks")
    if path.name.lower().removesuffix(".gz").endswith((".graphml", ".gml")):
        from fewnode.formats.graphs import read_graph  # brings DuckDB, which nothing else here needs

        return read_graph(path)
    return import_dataset(path)


def import_dataset(
    path: Path,
    seed: int = 0,
    directed: Directed = False,
    name: str | None = None,
    scale: str | None = None,
    room: Path | None = None,
) -> Dataset:
    """A dataset from an .npz file, or from a folder of files as the paper's authors publish them.

    `seed` deals the classes where the file does not. `name` says which network of a folder is meant; that of a file
    takes it as its name. `directed` is true, false, or names of relations; `scale` says how weights are scaled (`none`
    or `log`). With `room`, a folder on a disk, a network of an .npz file may be larger than memory.
    """
    if path.name.removesuffix(".gz").endswith((".csv", ".tsv", ".jsonl", ".parquet")):
        raise FewnodeError(
            f"{path}: one table is no network; fewnode data import reads a table of nodes and one of edges"
        )
    if not path.is_dir():
        data = read_dataset_npz(path, seed, directed, scale, room)
        return replace(data, name=name) if name else data
    if not isinstance(directed, bool) or scale:
        raise FewnodeError(f"{path}: published files have neither weights nor kinds of edges; all are directed or none")
    return read_published(path, name, seed, directed)


@cache
def load_debian() -> Dataset:
    """The built-in network: packages of Debian 12, linked by what they depend on and classified by their section.

    Depends (Pre-Depends among them), Recommends and Suggests are directed relations; edges of the network itself have
    no direction. A name that exactly one package provides stands for that package; one with many providers is no edge.
    Attributes count the words of the description and of nothing else. Classes under 30 packages and packages without
    an edge are left out. Kinds of edges were read from a later index of security updates: 18 edges to kernels that had
    been replaced by then count as Depends, as those to their successors are.
    """
    packed = resources.files("fewnode.formats").joinpath("debian.xz").read_bytes()
    text, _, numbers = lzma.decompress(packed).partition(b"\n")
    header, arrays, offset = json.loads(text), list[NDArray[Any]](), 0
    for kind, size in header["arrays"]:
        arrays.append(np.frombuffer(numbers, kind, size, offset))
        offset += arrays[-1].nbytes
    upper, neighbours, lengths, columns, counts, y, codes = arrays
    starts, n = np.cumsum(np.append(0, lengths), dtype=np.int32), y.size
    x = sp.csr_array((counts.astype(np.float32), columns.astype(np.int32), starts), (n, header["n_features"]))
    edges = np.stack([np.repeat(np.arange(n), upper), neighbours.astype(np.int64)])
    relations = []
    for bit, name in enumerate(header["relations"]):  # a bit for each that leads to the higher number, then the others
        up, down = (codes.astype(np.int64) >> (bit + way * len(header["relations"])) & 1 > 0 for way in (0, 1))
        own = np.concatenate([edges[:, up], edges[::-1, down]], axis=1)
        relations.append(Relation(name, Graph.from_edges(own, n, directed=True).adj, directed=True))
    graph = replace(Graph.from_edges(edges, n, x), relations=tuple(relations))
    nodes, words = map(tuple, header["names"])
    split = ClassSplit(*map(tuple, header["split"]))
    labels, classes = y.astype(np.int64) + UNKNOWN, tuple(header["classes"])
    return Dataset(graph, labels, split, classes, nodes, words, header["name"], header["info"])


BUILT_IN: dict[str, Callable[[], Dataset]] = {"debian": load_debian}


def load_public(name: str, root: Path) -> Dataset:
    """A well-known network, from the folder if it was fetched before, else from the web by PyG's own loader.

    What PyG has beside graph, attributes and classes, such as masks, is listed in `info["unused"]`. Classes are dealt
    into training, validation and test at random, with seed 0.
    """
    loader, folder, *own_name = PUBLIC[name]
    try:
        with redirect_stdout(sys.stderr), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about their own code and files
            from torch_geometric import datasets

            parts = read_pyg(getattr(datasets, loader)(str(root / folder), *own_name))
    except ModuleNotFoundError as error:
        told = f"{name} is loaded by PyG, which is not installed ({error})"
        raise FewnodeError(f"{told}: pip install 'fewnode[pyg]'") from None
    except (Exception, SystemExit) as error:  # whatever their code does with a file that is not theirs
        raise FewnodeError(
            f"{name} could not be loaded ({one_line(error)}); it is fetched once and needs a network then; if you "
            f"have its raw files, put them below {root / (folder or name)}"
        ) from None
    data = Dataset.from_parts(replace(parts, unused=()), name=name)
    return replace(data, info={**data.info, "unused": list(parts.unused)}) if parts.unused else data
