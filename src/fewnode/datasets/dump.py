"""A network from a dump of linked texts, one record a line, as the paper's appendix builds three of its four.

A record with a label and a text can be a node. Classes of 100 to 1000 nodes stay, nodes without an edge go, and as the
one can undo the other both are repeated until nothing changes. Attributes are a bag of words.

The file is read twice, so that memory grows by twelve bytes a line and not with the text: the first pass checks every
record and keeps a hash and a class number of each; the second reads the links of the classes that stay, and puts their
lines aside in a temporary file, from which the texts of the nodes that stay are read. A compressed file is inflated
once: the second pass reads a temporary copy of the lines that could still be nodes, at most 1000 of a class.
"""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fewnode.class_labels import UNKNOWN
from fewnode.dataset import ClassSplit, Dataset
from fewnode.datasets.expected import EXPECTED
from fewnode.datasets.lines import MAX_LINE, Skipped, is_gzip, pick, stream_lines
from fewnode.datasets.literal import BadLineError
from fewnode.errors import FewnodeError
from fewnode.graph import Graph, Ints
from fewnode.tables.bag import choose_vocabulary, encode

MIN_CLASS, MAX_CLASS = 100, 1000
MAX_NAME = 1000  # characters; names are what is held of every class

T = TypeVar("T")


class Entry(NamedTuple):
    """A record at first sight."""

    id: str
    label: str | None
    has_text: bool
    year: int | None = None


@dataclass(frozen=True)
class Format:
    """How the records of one dump are read. `first_look` raises `BadLineError` at a record that breaks the format in a
    field that is used; the other two are called only for lines that passed it."""

    first_look: Callable[[bytes], Entry]
    links: Callable[[bytes], tuple[str, Sequence[str]]]
    """The id of a record and the ids that it links to."""
    text: Callable[[bytes], str]
    min_years: int = 0
    """How long the records of a class must span."""


@dataclass
class _Index:
    """What the first pass keeps: a few bytes for each line, and a name and the years of each class."""

    keys: bytearray = field(default_factory=bytearray)
    """A hash of the id of each line, 8 bytes; zeros if the line cannot be used."""
    classes: array[int] = field(default_factory=lambda: array("i"))
    """The class of each line; -1 if it is no node."""
    names: dict[str, int] = field(default_factory=dict)
    sizes: list[int] = field(default_factory=list)
    years: list[tuple[int, int]] = field(default_factory=list)

    def add(self, entry: Entry) -> bool:
        """Note a line; returns whether it can still be a node."""
        self.keys += blake2b(entry.id.encode(), digest_size=8).digest()
        if entry.label is None:
            self.classes.append(UNKNOWN)
            return False
        number = self.names.setdefault(entry.label, len(self.names))
        if number == len(self.sizes):
            self.sizes.append(0)
            self.years.append((1 << 30, -1 << 30))
        if entry.year is not None:
            first, last = self.years[number]
            self.years[number] = (min(first, entry.year), max(last, entry.year))
        self.sizes[number] += entry.has_text
        self.classes.append(number if entry.has_text else UNKNOWN)
        return entry.has_text and self.sizes[number] <= MAX_CLASS

    def skip(self) -> None:
        self.keys += bytes(8)
        self.classes.append(UNKNOWN)


def build_from_dump(name: str, path: Path, layout: Format) -> Dataset:
    """The network called `name` in `expected.toml`, with as many attributes and class shares as it has there."""
    expected = EXPECTED[name]
    with tempfile.TemporaryFile() as copy, tempfile.TemporaryFile() as aside:
        packed = is_gzip(path)
        index, skipped = _read_index(path, layout, copy if packed else None)
        numbers, y = _candidates(index, layout.min_years)
        names, adj = _read_links(path, layout, pick(copy if packed else stream_lines(path), numbers.tolist()), aside)
        if len(names) != numbers.size:
            raise _changed(path, "cut")
        kept = linked_core(adj, y, MIN_CLASS)
        if not kept.size:
            sizes = f"no class has {MIN_CLASS} to {MAX_CLASS} linked nodes"
            raise FewnodeError(f"{path}: {len(index.classes):,} records, but {sizes}")
        vocabulary = choose_vocabulary(_texts(path, layout, kept, aside), size=expected.attributes)
        graph = Graph(adj[kept][:, kept], encode(_texts(path, layout, kept, aside), vocabulary))
    every_name = np.array(list(index.names), dtype=object)
    classes, labels = np.unique(every_name[y[kept]], return_inverse=True)
    split = ClassSplit.random(labels, expected.split, seed=0)
    info: dict[str, Any] = {
        "source": path.name,
        "records": len(index.classes),
        "skipped": skipped.as_counts(),
        **expected.compare(graph, split),
    }
    node_names = tuple(names[i] for i in kept.tolist())
    return Dataset(graph, labels, split, tuple(classes.tolist()), node_names, vocabulary, name, info)


def _texts(path: Path, layout: Format, kept: Ints, aside: BinaryIO) -> Iterator[str]:
    """The texts of the nodes that stay; read anew each time, as they are larger than all else."""
    aside.seek(0)
    try:
        yield from map(layout.text, pick(aside, kept.tolist()))
    except BadLineError as error:
        raise _changed(path, error) from None


def _read_index(path: Path, layout: Format, copy: BinaryIO | None) -> tuple[_Index, Skipped]:
    """The first pass. Into `copy` go the lines that can still be nodes, and empty ones for the others."""
    index, skipped = _Index(), Skipped(path)
    for number, line in enumerate(stream_lines(path)):
        try:
            if line is None:
                raise BadLineError(f"longer than {MAX_LINE >> 20} MB")
            needed = index.add(layout.first_look(line))
        except BadLineError as error:
            skipped.add(number, str(error))
            index.skip()
            needed = False
        if copy is not None:
            copy.write(line + b"\n" if line and needed else b"\n")
    if copy is not None:
        copy.seek(0)
    for number in _repeated(np.frombuffer(index.keys, np.uint64)).tolist():
        skipped.add(number, "duplicate id")
        index.classes[number] = UNKNOWN
    skipped.check(len(index.classes))
    return index, skipped


def _repeated(keys: NDArray[np.uint64]) -> Ints:
    """The places, ascending, of keys that were there before. Of ten million ids, two that differ share their 64 bits
    with a chance of 3 in a million."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    again = (ordered[1:] == ordered[:-1]) & (ordered[1:] != 0)
    return np.sort(order[1:][again])


def _candidates(index: _Index, min_years: int) -> tuple[Ints, Ints]:
    """The lines and classes of the nodes whose class has the right size and age."""
    classes = np.array(index.classes, np.int64)
    sizes = np.bincount(classes[classes >= 0], minlength=len(index.names))
    # The upper limit counts duplicates too: of a class beyond it the copy of a compressed file is not complete.
    fit = (sizes >= MIN_CLASS) & (np.array(index.sizes) <= MAX_CLASS)
    if min_years:
        first, last = np.array(index.years).reshape(-1, 2).T
        fit &= last - first >= min_years
    numbers = np.flatnonzero(np.append(fit, False)[classes])  # -1 is the last of them
    return numbers, classes[numbers]


def _read_links(
    path: Path, layout: Format, lines: Iterable[bytes | None], aside: BinaryIO
) -> tuple[list[str], sp.csr_array]:
    """The ids of these lines, and which of them are linked. The lines go to `aside`.

    Links are held as one text a node until all ids are known, which takes a sixth of what lists would.
    """
    names, links = [], []
    try:
        for line in lines:
            name, others = layout.links(line or b"")
            names.append(name)
            links.append("\n".join(others))
            aside.write((line or b"").rstrip(b"\n") + b"\n")
    except BadLineError as error:
        raise _changed(path, error) from None
    row = {name: i for i, name in enumerate(names)}
    source, target = array("q"), array("q")
    for i, text in enumerate(links):
        known = [row[other] for other in text.split("\n") if other in row]
        source.extend([i] * len(known))
        target.extend(known)
    return names, Graph.from_edges(np.array([source, target], np.int64), len(names)).adj


def _changed(path: Path, how: object) -> FewnodeError:
    return FewnodeError(f"{path}: changed while it was read ({how}); is it being written?")


def linked_core(adj: sp.csr_array, y: Ints, smallest: int) -> Ints:
    """The largest set of nodes in which each has a neighbour and each class has `smallest` nodes.

    Dropping a class can isolate a node, and dropping a node can shrink a class: both are repeated until nothing drops.
    """
    kept = np.arange(y.size)
    while kept.size:
        fit = (np.diff(adj[kept][:, kept].indptr) > 0) & (np.bincount(y[kept])[y[kept]] >= smallest)
        if fit.all():
            break
        kept = kept[fit]
    return kept


def field_of(record: dict[str, Any], name: str, kind: type[T]) -> T | None:
    """A field that holds a value of that kind, or None where it is absent or null."""
    value = record.get(name)
    if value is not None and not isinstance(value, kind):
        raise BadLineError("wrong type")
    return value


def text_field(record: dict[str, Any], name: str) -> str | None:
    """A field that holds text, or None where it is absent, null or blank."""
    value = field_of(record, name, str)
    return value if value and not value.isspace() else None


def required_id(record: dict[str, Any], name: str) -> str:
    value = text_field(record, name)
    if value is None:
        raise BadLineError("missing field")
    return short(value)


def short(name: str) -> str:
    """A name that can be kept and written."""
    if len(name) > MAX_NAME:
        raise BadLineError("name too long")
    if not name.isascii() and any(0xD800 <= ord(char) < 0xE000 for char in name):
        raise BadLineError("not UTF-8")  # half of a pair, which a JSON escape can stand for
    return name


def list_field(record: dict[str, Any], name: str) -> list[str]:
    """A field that holds a list of texts; empty where it is absent or null."""
    value: list[str] = field_of(record, name, list) or []
    try:
        "".join(value)  # the quickest way to see that all are texts
    except TypeError:
        raise BadLineError("wrong type") from None
    return value
