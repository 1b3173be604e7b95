"""The embedded network: Debian's packages, linked by what they depend on and classified by their section.

Nodes are binary packages. An edge joins a package to every package it names in Depends, Pre-Depends, Recommends or
Suggests, alternatives included; versions and architectures are ignored. These are three directed relations, Pre-Depends
being one of Depends; edges of the network itself have no direction. A name that is no package but that exactly one
package provides stands for that package. A name with many providers (`mail-transport-agent`) is dropped: linking it to
all of them would invent edges, and picking one would be arbitrary. Attributes count the words of the description and of
nothing else: neither name nor tags nor section. The class is the section without its archive area (`non-free/games` is
`games`). Classes under 30 packages and packages without an edge are left out.

`python tests/datasets/test_debian.py FOLDER` makes the embedded file anew from apt's indices.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import re
import zlib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fewnode.adjacency import Relation
from fewnode.class_labels import UNKNOWN
from fewnode.dataset import ClassSplit, Dataset
from fewnode.errors import FewnodeError
from fewnode.graph import Graph, Ints
from fewnode.tables.bag import choose_vocabulary, encode

MIN_CLASS = 30
MAX_WORDS = 8000  # about as many attributes as the co-purchase networks of the paper have
MAX_BYTES = 2**31  # an index has 50 MB; a small file that unpacks to more than this is an attack
MAX_LINE = 2**20

Stanza: TypeAlias = dict[str, str]

RELATIONS = {"Depends": ("Depends", "Pre-Depends"), "Recommends": ("Recommends",), "Suggests": ("Suggests",)}
_LINKS = [field for fields in RELATIONS.values() for field in fields]
_TEXT = ("Description", "Description-md5")
_FILE_NAME = re.compile(r"(.*(?:Packages|Translation-en))(\.gz|\.xz|\.lz4|)")
_OPEN: dict[str, Callable[..., Any]] = {"": open, ".gz": gzip.open, ".xz": lzma.open}
_UNREADABLE = (OSError, EOFError, zlib.error, lzma.LZMAError, RuntimeError)  # RuntimeError is what lz4 raises
_PACKED = "debian.xz"


@dataclass(frozen=True)
class _Index:
    """One of apt's index files. Once read, `digest` is that of the plain text, as the suite's Release lists it."""

    path: Path
    label: str
    packing: str
    digest: Any = field(default_factory=hashlib.sha256)

    def lines(self) -> Iterator[str]:
        number = total = 0
        try:
            with self._open() as stream:
                while line := stream.readline(MAX_LINE):
                    number += 1
                    total += len(line)
                    if total > MAX_BYTES or len(line) == MAX_LINE:
                        raise FewnodeError(f"{self.path}: line {number}: too much data, this is no index of packages")
                    self.digest.update(line)
                    yield line.decode("utf-8", "replace")
        except _UNREADABLE as error:
            raise FewnodeError(f"{self.path}: line {number + 1}: cannot be read further: {error}") from error

    def _open(self) -> Any:
        if self.packing != ".lz4":
            return _OPEN[self.packing](self.path, "rb")
        try:
            import lz4.frame
        except ModuleNotFoundError:
            raise FewnodeError(f"{self.path}: .lz4 needs lz4: pip install 'fewnode[lz4]', or unpack the file") from None
        return lz4.frame.open(self.path, "rb")


def build_debian(raw: Path) -> Dataset:
    """The network from the index files in `raw` or in the folders in it: `*Packages` and `*Translation-en`.

    They may be plain, .gz, .xz or .lz4. The same texts give the same arrays, however they are packed and ordered.
    """
    indices = _find_indices(raw)
    packages, skipped = _read_packages(indices)
    names = np.array(sorted(packages), dtype=object)
    sections = np.array([packages[name]["Section"].rpartition("/")[2] for name in names])
    links = _links(packages)
    adj = Graph.from_relations(links, directed=False).adj
    kept = linked_core(adj, np.unique(sections, return_inverse=True)[1], MIN_CLASS)
    if not kept.size:
        raise FewnodeError(f"{raw}: {len(names)} packages, but no section has {MIN_CLASS} of them that are linked")
    texts = _descriptions({name: packages[name] for name in names[kept]}, indices)
    words = choose_vocabulary(texts, size=MAX_WORDS)
    linked = [replace(relation, adj=relation.adj[kept][:, kept]) for relation in links]
    graph = Graph.from_relations(linked, encode(texts, words), directed=False)
    classes, y = np.unique(sections[kept], return_inverse=True)
    info = {
        "source": "package indices of Debian",
        "indices": [[index.label, index.digest.hexdigest()] for index in indices],
        "packages": len(names),
        "stanzas_skipped": skipped,
    }
    split = ClassSplit.random(y, seed=0)
    return Dataset(graph, y, split, tuple(classes.tolist()), tuple(names[kept]), words, "debian", info)


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


@cache
def load_debian() -> Dataset:
    """The embedded network: what `build_debian` made of Debian 12.

    Which relation an edge is of was read from a later index of security updates. 18 edges to kernels that had been
    replaced by then count as Depends, as those to their successors are.
    """
    return unpack(resources.files("fewnode.formats").joinpath(_PACKED).read_bytes())


def unpack(packed: bytes) -> Dataset:
    """The dataset of a packed file. For our own file only: a stranger's could unpack to any size."""
    try:
        text, _, rest = lzma.decompress(packed).partition(b"\n")
    except lzma.LZMAError as error:
        raise FewnodeError(f"the packed dataset is damaged: {error}") from error
    header = json.loads(text)
    arrays: list[NDArray[Any]] = []
    offset = 0
    for kind, size in header["arrays"]:
        arrays.append(np.frombuffer(rest, kind, size, offset))
        offset += arrays[-1].nbytes
    upper, neighbours, lengths, columns, counts, y, codes = arrays
    starts = np.cumsum(np.append(0, lengths), dtype=np.int32)
    x = sp.csr_array((counts.astype(np.float32), columns.astype(np.int32), starts), (y.size, header["n_features"]))
    edges = np.stack([np.repeat(np.arange(y.size), upper), neighbours.astype(np.int64)])
    node_names, feature_names = (None if names is None else tuple(names) for names in header["names"])
    split, classes = ClassSplit(*map(tuple, header["split"])), tuple(header["classes"])
    relations = []
    for bit, name in enumerate(header["relations"]):  # a bit for each that leads to the higher number, then the others
        up, down = (codes.astype(np.int64) >> (bit + way * len(header["relations"])) & 1 > 0 for way in (0, 1))
        own = np.concatenate([edges[:, up], edges[::-1, down]], axis=1)
        relations.append(Relation(name, Graph.from_edges(own, y.size, directed=True).adj, directed=True))
    graph, labels = Graph.from_edges(edges, y.size, x), y.astype(np.int64) + UNKNOWN
    graph = replace(graph, relations=tuple(relations))
    return Dataset(graph, labels, split, classes, node_names, feature_names, header["name"], header["info"])


def _find_indices(raw: Path) -> list[_Index]:
    """Every index in a fixed order. apt's `partial` holds half-fetched files, so it is passed over."""
    found = []
    for path in (*raw.glob("*"), *raw.glob("*/*")):
        match = _FILE_NAME.fullmatch(path.name)
        if match and path.is_file() and path.parent.name != "partial":
            found.append(_Index(path, _label(match[1]), match[2]))
    if not any(index.label.endswith("Packages") for index in found):
        fetch = f"apt-get -o Dir::State::lists={raw.resolve()} -o Acquire::Languages=en update"
        raise FewnodeError(f"{raw}: no file ending in Packages (plain, .gz, .xz or .lz4); `{fetch}` fetches them")
    return sorted(found, key=lambda index: (index.label, index.packing, index.path))


def _label(name: str) -> str:
    """The suite, component and kind in apt's file name; the mirror before them is no part of the data."""
    return name.rpartition("_dists_" if "_dists_" in name else "_")[2]


def _stanzas(indices: Iterable[_Index], kind: str, wanted: Container[str]) -> Iterator[Stanza]:
    """The stanzas of all indices of a kind: what stands between blank lines."""
    for index in indices:
        if index.label.endswith(kind):
            for blank, lines in groupby(index.lines(), str.isspace):
                if not blank:
                    yield _fields(lines, wanted)


def _fields(lines: Iterable[str], wanted: Container[str]) -> Stanza:
    """The wanted fields of one stanza. Lines that begin with a space continue the field above them."""
    fields: dict[str, list[str]] = {}
    value: list[str] = []
    for line in lines:
        if line[0] in " \t":
            value.append(line)
            continue
        name, _, first = line.partition(":")
        value = [first]
        if name in wanted:
            fields[name] = value
    return {name: "".join(value).strip() for name, value in fields.items()}


def _read_packages(indices: Iterable[_Index]) -> tuple[dict[str, Stanza], int]:
    """The highest version of each package, as apt would choose, and how many stanzas had no name or section.

    Of equal versions the first one stays.
    """
    packages: dict[str, Stanza] = {}
    skipped = 0
    for stanza in _stanzas(indices, "Packages", {"Package", "Version", "Section", "Provides", *_TEXT, *_LINKS}):
        if not (stanza.get("Package") and stanza.get("Section")):
            skipped += 1
            continue
        known = packages.setdefault(stanza["Package"], stanza)
        if known is not stanza and version_key(known.get("Version", "")) < version_key(stanza.get("Version", "")):
            packages[stanza["Package"]] = stanza
    return packages, skipped


def version_key(version: str) -> list[Any]:
    """Sorts as Debian Policy 5.6.12 orders versions: by epoch, upstream version and revision.

    Each is compared as words and numbers by turns. In words `~` sorts before the end, the end (0) before letters, and
    these before all else; numbers are compared as digits, because int() refuses thousands of them.
    """
    epoch, rest = version.split(":", 1) if ":" in version else ("0", version)
    upstream, revision = rest.rsplit("-", 1) if "-" in rest else (rest, "0")

    def ranks(word: str) -> list[int]:
        return [*(-1 if c == "~" else ord(c) + (not c.isalpha()) * 0x110000 for c in word), 0]

    def runs(part: str) -> list[Any]:
        turns = ((word, digits.lstrip("0")) for word, digits in re.findall(r"(\D*)(\d*)", part))
        return [(ranks(word), len(digits), digits) for word, digits in turns]

    return [runs(part) for part in (epoch, upstream, revision)]


def _named(relation: str) -> list[str]:
    """The package names in `a (>= 1) | b:any, c [amd64]`."""
    return re.findall(r"(?:^|[,|])\s*([^\s,|(:\[<]+)", relation)


def _links(packages: Mapping[str, Stanza]) -> list[Relation]:
    """Which package names which other one, in each way; all packages in name order."""
    number = {name: i for i, name in enumerate(sorted(packages))}
    providers: dict[str, set[int]] = {}
    for name, package in packages.items():
        for virtual in _named(package.get("Provides", "")):
            providers.setdefault(virtual, set()).add(number[name])
    target = {virtual: min(ids) for virtual, ids in providers.items() if len(ids) == 1} | number
    found = []
    for relation, fields in RELATIONS.items():
        edges = [
            (number[name], target[other])
            for name, package in packages.items()
            for field in fields
            for other in _named(package.get(field, ""))
            if other in target
        ]
        ends = np.array(edges, np.int64).reshape(-1, 2).T
        found.append(Relation(relation, Graph.from_edges(ends, len(packages), directed=True).adj, directed=True))
    return found


def _descriptions(packages: Mapping[str, Stanza], indices: Iterable[_Index]) -> list[str]:
    """Short and long description of each package; what no translation has keeps the text of its own stanza."""
    texts = {name: package.get("Description", "") for name, package in packages.items()}
    for stanza in _stanzas(indices, "Translation-en", {"Package", "Description-md5", "Description-en"}):
        package = packages.get(stanza.get("Package", ""), {})
        if package and package.get("Description-md5") == stanza.get("Description-md5"):
            texts[package["Package"]] = stanza.get("Description-en") or texts[package["Package"]]
    return list(texts.values())
