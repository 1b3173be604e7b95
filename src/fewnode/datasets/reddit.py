"""Reddit (section 5.1, appendix A.1): posts, linked if the same user commented on both, classified by community.

Built from the GraphSAGE archive: `reddit-G.json` (networkx node-link JSON: `{"nodes": [{"id": "2blbk", …}, …],
"links": [{"source": 0, "target": 6, …}, …], …}`, where source and target are places in `nodes`), `reddit-id_map.json`
(id: row of the attributes), `reddit-class_map.json` (id: community) and `reddit-feats.npy`.

The columns of the attributes are brought to mean 0 and variance 1, as GraphSAGE's own loader does: two of the 602 are
a score and a count in the thousands, the others are word vectors about 0.1 long.
"""

from __future__ import annotations

import codecs
import json
import math
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from fewnode.class_labels import UNKNOWN
from fewnode.column_blocks import dense_blocks
from fewnode.dataset import ClassSplit, Dataset
from fewnode.datasets.expected import EXPECTED
from fewnode.datasets.lines import Skipped, chunks, find_raw
from fewnode.errors import FewnodeError
from fewnode.graph import Graph, Ints
from fewnode.machine.files import one_line, readable
from fewnode.machine.npy import DAMAGED, npy_header

MAX_MAP = 1 << 28
MAX_ELEMENT = 1 << 24
_BLOCK = 1 << 13
_NOWHERE = (1 << 31) - 1


def build_reddit(raw: Path) -> Dataset:
    """The network from the folder of the unpacked archive, or from the `reddit-G.json` in it."""
    folder = raw.parent if raw.is_file() else raw
    graph_file = raw if raw.is_file() else find_raw(raw, "reddit-G.json")
    row = _read_map(find_raw(folder, "reddit-id_map.json"))
    names = _names_by_row(find_raw(folder, "reddit-id_map.json"), row)
    y, class_names = _read_classes(find_raw(folder, "reddit-class_map.json"), row)
    x = _read_attributes(find_raw(folder, "reddit-feats.npy"), len(names))
    edges, skipped = _read_links(graph_file, row)
    graph = Graph.from_edges(edges, len(names), x, blocks=dense_blocks(x))
    expected = EXPECTED["reddit"]
    split = ClassSplit.random(y, expected.split, seed=0)
    info: dict[str, Any] = {
        "source": graph_file.name,
        "skipped": skipped.as_counts(),
        "notes": ["the columns of the attributes were brought to mean 0 and variance 1"],
        **expected.compare(graph, split),
    }
    return Dataset(graph, y, split, class_names, names, None, "reddit", info)


# --- the small files ----------------------------------------------------------------------------------------------


def _read_map(path: Path) -> dict[str, int]:
    """A JSON object of integers."""
    blob = bytearray()
    for chunk in chunks(path):
        blob += chunk
        if len(blob) > MAX_MAP:
            raise FewnodeError(f"{path}: larger than {MAX_MAP >> 20} MB")
    try:
        value = json.loads(blob)
    except (ValueError, RecursionError) as error:
        raise FewnodeError(f"{path}: not JSON ({one_line(error)})") from None
    if not isinstance(value, dict):
        raise FewnodeError(f"{path}: not a JSON object")
    for name, number in value.items():
        if type(number) is not int or not 0 <= number < 1 << 31:
            raise FewnodeError(f"{path}: {name!r} is {str(number)[:40]}, expected a number from 0")
    return value


def _names_by_row(path: Path, row: dict[str, int]) -> tuple[str, ...]:
    if sorted(row.values()) != list(range(len(row))):
        raise FewnodeError(f"{path}: the rows of {len(row)} nodes are not 0 to {len(row) - 1}, each once")
    return tuple(sorted(row, key=row.__getitem__))


def _read_classes(path: Path, row: dict[str, int]) -> tuple[Ints, tuple[str, ...]]:
    """The class of each row, and the communities' numbers as names. A post that the file does not name is unknown."""
    known = {row[name]: community for name, community in _read_map(path).items() if name in row}
    numbers, places = np.unique(np.array(list(known.values()), np.int64), return_inverse=True)
    y = np.full(len(row), UNKNOWN)
    y[np.array(list(known), np.int64)] = places
    return y, tuple(str(number) for number in numbers.tolist())


def _read_attributes(path: Path, n: int) -> NDArray[np.float32]:
    """The first n rows, each column standardised; block by block, as the file is larger than what is made of it."""
    stored = _mapped(path, n)
    blocks = [slice(start, min(start + _BLOCK, n)) for start in range(0, n, _BLOCK)]
    for block in blocks:
        with np.errstate(over="ignore", invalid="ignore"):  # float32's infinity could not be squared as float64 either
            finite = np.isfinite(stored[block].astype(np.float32)).all(axis=1)
        if not finite.all():
            raise FewnodeError(f"{path}: row {block.start + int(np.argmin(finite))} holds NaN or infinity")
    mean = sum(stored[block].sum(axis=0, dtype=np.float64) for block in blocks) / max(n, 1)
    variance = sum(((stored[block] - mean) ** 2).sum(axis=0) for block in blocks) / max(n, 1)
    deviation = np.sqrt(np.where(variance > 0, variance, 1))
    x = np.empty((n, stored.shape[1]), np.float32)
    for block in blocks:
        x[block] = (stored[block] - mean) / deviation
    return x


def _mapped(path: Path, n: int) -> NDArray[Any]:
    """The array in an .npy file of numbers, mapped. NumPy's own mapping believes the shape that the file claims."""
    try:
        with readable(path) as file:
            shape, order, dtype = npy_header(file)
            start = file.tell()
    except DAMAGED as error:
        raise FewnodeError(f"{path}: not a readable .npy file ({one_line(error)})") from None
    if len(shape) != 2 or dtype.kind not in "iuf" or shape[0] < n:
        raise FewnodeError(f"{path}: {dtype} {shape}, expected numbers, a row for each of {n} nodes")
    if math.prod(shape) * dtype.itemsize != path.stat().st_size - start:
        raise FewnodeError(f"{path}: cut short, or not the {shape[0]} x {shape[1]} numbers that it claims")
    return np.memmap(path, dtype, "r", start, shape, order)


# --- the large file -----------------------------------------------------------------------------------------------


def _read_links(path: Path, row: dict[str, int]) -> tuple[Ints, Skipped]:
    """Every link between nodes that have a row, as 2 x E rows. Nodes may come before the links or after them."""
    rows, ends = array("i"), array("i")
    for key, element in _elements(path):
        if key == "nodes":
            rows.append(row.get(str(element.get("id")), UNKNOWN))
        else:
            ends.append(_end(element.get("source"), row))
            ends.append(_end(element.get("target"), row))
    links = np.array(ends, np.int64).reshape(-1, 2).T
    is_place = (links >= 0) & (links < len(rows))
    by_place = np.array([*rows, UNKNOWN], np.int64)[np.where(is_place, links, UNKNOWN)]
    links = np.where(links >= 0, by_place, -2 - links)
    unknown = (links < 0).any(axis=0)
    skipped = Skipped(path, "link")
    for number in np.flatnonzero(unknown).tolist():
        skipped.add(number, "no such node")
    skipped.check(unknown.size)
    return links[:, ~unknown], skipped


def _end(end: object, row: dict[str, int]) -> int:
    """A place in the list of nodes as it is, an id as -2 - its row, so that both fit into one array."""
    if isinstance(end, str) and end in row:
        return -2 - row[end]
    return end if type(end) is int and 0 <= end < _NOWHERE else _NOWHERE


def _elements(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects in the arrays `nodes` and `links` of one large JSON object, each with the name of its array."""
    text = _Buffer(path)
    text.expect("{")
    found = set()
    while (key := text.value()) is not None:
        text.expect(":")
        if key not in ("nodes", "links"):
            text.value()
        else:
            text.expect("[")
            found.add(key)
            yield from ((key, element) for element in text.array())
        if text.expect(",", "}") == "}":
            break
    if missing := {"nodes", "links"} - found:
        raise FewnodeError(f"{path}: no {min(missing)!r} in it, expected a node-link graph")


@dataclass
class _Buffer:
    """The part of a JSON text that is being read; what was read is let go."""

    path: Path
    text: str = ""
    at: int = 0
    read: int = 0
    pieces: Iterator[str] = field(init=False)

    def __post_init__(self) -> None:
        self.pieces = codecs.iterdecode(chunks(self.path), "utf-8")

    def _more(self) -> bool:
        """Add a piece, or say that there is none."""
        try:
            piece = next(self.pieces, None)
        except UnicodeDecodeError:
            self._fail("not UTF-8")
        if piece is None:
            return False
        self.read += self.at
        self.text, self.at = self.text[self.at :] + piece, 0
        if len(self.text) > MAX_ELEMENT + len(piece):
            self._fail(f"more than {MAX_ELEMENT >> 20} MB in one element")
        return True

    def _skip_space(self) -> str:
        """Past white space; returns the character there, empty at the end."""
        while True:
            while self.at < len(self.text) and self.text[self.at] in " \t\r\n":
                self.at += 1
            if self.at < len(self.text) or not self._more():
                return self.text[self.at : self.at + 1]

    def expect(self, *wanted: str) -> str:
        found = self._skip_space()
        if found not in wanted or not found:
            self._fail(f"expected {' or '.join(wanted)}, found {found!r}")
        self.at += 1
        return found

    def value(self) -> Any:
        """The value that begins here."""
        self._skip_space()
        while True:
            try:
                value, end = _DECODE(self.text, self.at)
                if end < len(self.text) or not self._more():  # a number may go on in the next piece
                    self.at = end
                    return value
            except RecursionError:
                self._fail("nested too deep")
            except ValueError:
                if not self._more():
                    self._fail("cut short, or not JSON")

    def array(self) -> Iterator[dict[str, Any]]:
        """The objects of an array whose bracket was read."""
        if self._skip_space() == "]":
            self.at += 1
            return
        while True:
            element = self.value()
            if not isinstance(element, dict):
                self._fail("expected an object")
            yield element
            if self.expect(",", "]") == "]":
                return

    def _fail(self, why: str) -> NoReturn:
        raise FewnodeError(f"{self.path}: character {self.read + self.at:,}: {why}")


_DECODE = json.JSONDecoder().raw_decode
