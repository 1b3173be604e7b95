"""Reddit (section 5.1, appendix A.1): posts, linked if the same user commented on both, classified by community.

Built from the GraphSAGE archive: `reddit-G.json` (networkx node-link JSON: `{"nodes": [{"id": "2blbk", …}, …],
"links": [{"source": 0, "target": 6, …}, …], …}`, where source and target are places in `nodes`), `reddit-id_map.json`
(id: row of the attributes), `reddit-class_map.json` (id: community) and `reddit-feats.npy`.

The columns of the attributes are brought to mean 0 and variance 1, as GraphSAGE's own loader does: two of the 602 are
a score and a count in the thousands, the others are word vectors about 0.1 long.
"""

from __future__ import annotations

import json
from array import array
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, TypeAdapter, ValidationError

from fewnode._system.files import one_line
from fewnode.class_labels import UNKNOWN
from fewnode.dataset import ClassSplit, Dataset
from fewnode.errors import FewnodeError
from fewnode.formats.published import EXPECTED
from fewnode.graph import Graph, Ints, dense_blocks
from fewnode.paper.records import counted, fault, find_raw, read_whole
from fewnode.tables.columns import DAMAGED

MAX_MAP_BYTES, MAX_GRAPH_BYTES = 1 << 28, 1 << 32
_BLOCK, _NOWHERE = 1 << 13, (1 << 31) - 1
_READ = object()
"""Stands for a node or a link that was read; no JSON can hold it."""
_NumberByName = TypeAdapter(dict[str, Annotated[int, Field(ge=0, lt=1 << 31, strict=True)]])


def build_reddit(raw: Path) -> Dataset:
    """The network from the folder of the unpacked archive, or from the `reddit-G.json` in it."""
    folder = raw.parent if raw.is_file() else raw
    graph_file = raw if raw.is_file() else find_raw(raw, "reddit-G.json")
    row = _read_map(rows_file := find_raw(folder, "reddit-id_map.json"))
    if not row or sorted(row.values()) != list(range(len(row))):
        raise FewnodeError(f"{rows_file}: the rows of {len(row)} nodes are not 0 to {len(row) - 1}, each once")
    communities = _read_map(find_raw(folder, "reddit-class_map.json"))
    y = np.full(len(row), UNKNOWN)  # a post that the file does not name stays unknown
    known = np.array([row[name] for name in communities if name in row], np.int64)
    numbers, y[known] = np.unique([communities[name] for name in communities if name in row], return_inverse=True)
    x = _read_attributes(find_raw(folder, "reddit-feats.npy"), len(row))
    edges, skipped = _read_links(graph_file, row)
    graph = Graph.from_edges(edges, len(row), x, blocks=dense_blocks(x))
    split = ClassSplit.random(y, EXPECTED["reddit"].split, seed=0)
    notes = ["the columns of the attributes were brought to mean 0 and variance 1"]
    info: dict[str, Any] = {"source": graph_file.name, "skipped": skipped, "notes": notes}
    info |= EXPECTED["reddit"].compare(graph, split)
    names = tuple(sorted(row, key=row.__getitem__))
    return Dataset(graph, y, split, tuple(map(str, numbers.tolist())), names, None, "reddit", info)


def _read_map(path: Path) -> dict[str, int]:
    """A JSON object of integers."""
    try:
        return _NumberByName.validate_json(bytes(read_whole(path, MAX_MAP_BYTES)))
    except ValidationError as error:
        raise FewnodeError(f"{path}: {fault(error)}; expected an object of numbers from 0") from None


def _read_attributes(path: Path, n: int) -> NDArray[np.float32]:
    """The first n rows, each column standardised; block by block, as the file is larger than what is made of it."""
    try:
        with np.errstate(over="raise"):  # a shape may claim anything
            stored = np.lib.format.open_memmap(path, "r")
    except DAMAGED as error:
        raise FewnodeError(f"{path}: not a readable .npy file, or cut short ({one_line(error)})") from None
    if stored.ndim != 2 or stored.dtype.kind not in "iuf" or len(stored) < n:
        raise FewnodeError(f"{path}: {stored.dtype} {stored.shape}, expected numbers, a row for each of {n} nodes")
    blocks = [slice(start, min(start + _BLOCK, n)) for start in range(0, n, _BLOCK)]
    for block in blocks:
        with np.errstate(over="ignore", invalid="ignore"):  # float32's infinity could not be squared as float64 either
            finite = np.isfinite(stored[block].astype(np.float32)).all(axis=1)
        if not finite.all():
            raise FewnodeError(f"{path}: row {block.start + int(np.argmin(finite))} holds NaN or infinity")
    mean = sum(stored[block].sum(axis=0, dtype=np.float64) for block in blocks) / max(n, 1)
    variance = sum(((stored[block] - mean) ** 2).sum(axis=0) for block in blocks) / max(n, 1)
    deviation = np.sqrt(np.where(variance > 0, variance, 1))
    return np.concatenate([((stored[block] - mean) / deviation).astype(np.float32) for block in blocks])


def _read_links(path: Path, row: dict[str, int]) -> tuple[Ints, dict[str, int]]:
    """Every link between nodes that have a row, as 2 x E rows. An end is a place in the list of nodes, or an id.

    Nodes and links are put into arrays while the text is read, so that no object is held of any of them.
    """
    rows, ends = array("i"), array("i")

    def end(place: object) -> int:
        """A place as it is, an id as -2 - its row, so that both fit into one array."""
        if isinstance(place, str) and place in row:
            return -2 - row[place]
        return place if type(place) is int and 0 <= place < _NOWHERE else _NOWHERE

    def take(element: dict[str, Any]) -> object:
        if "source" in element or "target" in element:
            ends.extend((end(element.get("source")), end(element.get("target"))))
        elif "id" in element and "nodes" not in element:
            rows.append(row.get(str(element["id"]), UNKNOWN))
        else:
            return element
        return _READ

    try:
        whole = json.loads(read_whole(path, MAX_GRAPH_BYTES), object_hook=take)
    except (ValueError, RecursionError) as error:
        raise FewnodeError(f"{path}: not JSON, or nested too deep ({one_line(error)})") from None
    for key, taken in (("nodes", len(rows)), ("links", len(ends) // 2)):
        elements = whole.get(key) if isinstance(whole, dict) else None
        if not isinstance(elements, list) or len(elements) != taken or any(e is not _READ for e in elements):
            raise FewnodeError(f"{path}: no list of {key} in it, expected a node-link graph")
    links = np.array(ends, np.int64).reshape(-1, 2).T
    is_place = (links >= 0) & (links < len(rows))
    by_place = np.array([*rows, UNKNOWN], np.int64)[np.where(is_place, links, UNKNOWN)]
    links = np.where(links >= 0, by_place, -2 - links)
    unknown = (links < 0).any(axis=0)
    skipped = [(number, "no such node") for number in np.flatnonzero(unknown)[:1_000_000].tolist()]
    return links[:, ~unknown], counted(path, skipped, unknown.size, "link")
