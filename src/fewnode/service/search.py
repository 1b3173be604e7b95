"""Nodes found by name, words, an attribute, another node or a pasted list; and what is known of one."""

from __future__ import annotations

import csv
import unicodedata
from functools import cached_property
from itertools import islice
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from fewnode._system.sheets import SEPARATORS, bare
from fewnode.errors import FewnodeError
from fewnode.graph import Ints, is_sparse
from fewnode.service.attributes import AttributeIndex
from fewnode.service.bodies import MAX_NODES, ClassName, Wanted
from fewnode.service.network import Network

MAX_NEAR, WORDS, NEIGHBOURS = 1_000, 12, 30
"""Nodes that are found near another one; attributes and neighbours of a node that are told."""
TOKENS, FORMS, STEM = 12, 50, 3
"""Words of a search that count, words of the network that one may begin, and letters that it needs for that."""
WAYS = {(True, False): "from", (False, True): "to", (True, True): "both"}
"""Whether an edge leads from the neighbour, and whether one leads to it."""

MAX_COLUMNS = 1_000
NODE, CLASS, ANSWER = ("node", "id", "name"), ("class", "label"), "answer"
"""What a header may call the two columns; and the third of `support.csv`, of which a *no* is no example."""
_CLASS: TypeAdapter[str] = TypeAdapter(ClassName)


class Search:
    """Names and attributes of a network, made ready for searching once."""

    def __init__(self, network: Network) -> None:
        self.network, self.data = network, network.data
        self.attributes = AttributeIndex(network.data)

    # --- which nodes ---

    def find(self, wanted: Wanted) -> dict[str, Any]:
        """A page of the nodes for which all that is wanted holds, and why each was found."""
        rows, named, columns = self.by_text(wanted.search, wanted.where)
        like: dict[int, float] = {}
        if wanted.attribute:
            rows = rows[self.attributes.having(wanted.attribute, wanted.value)[rows]]
        if wanted.near:
            rows, cosines = self.network.nearest(self.network.row(wanted.near), rows, MAX_NEAR)
            like = dict(zip(rows.tolist(), cosines.round(4).tolist(), strict=True))

        def matched(row: int) -> str | None:
            if wanted.near:
                return "near"
            if wanted.search.strip():
                return "name" if row in named else "text"
            return "attribute" if wanted.attribute else None

        found = [
            {
                **self.brief(row),
                "degree": int(self.data.graph.degree[row]),
                "matched": matched(row),
                "words": [self._single(i) for i in self._own(row)[0].tolist() if i in columns] if columns else [],
                "similarity": like.get(row),
            }
            for row in rows[wanted.offset : wanted.offset + wanted.limit].tolist()
        ]
        return {"total": int(rows.size), "offset": wanted.offset, "nodes": found}

    def by_text(self, text: str, where: str) -> tuple[Ints, frozenset[int], frozenset[int]]:
        """Nodes by a text in `name`, `text` or either (`all`); which of them by name; and the attributes it means."""
        if where == "text" and self.attributes.words is None:
            raise FewnodeError(f"{self.data.name} has no words to search; search names, or by an attribute")
        if not text.strip():
            return np.arange(self.network.n), frozenset(), frozenset()
        named = [] if where == "text" else self._by_name(text)
        rows, columns = ([], frozenset[int]()) if where == "name" else self._by_words(text, where)
        return np.array([*dict.fromkeys([*named, *rows])], np.int64), frozenset(named), columns

    @cached_property
    def _names(self) -> list[str]:
        return [_folded(self.data.node_name(i)) for i in range(self.network.n)]

    def _by_name(self, text: str) -> list[int]:
        """Nodes whose name holds the text, whatever the case; those that begin with it first."""
        wanted = _folded(text.strip())
        hits = [i for i, name in enumerate(self._names) if wanted in name]
        return sorted(hits, key=lambda i: (not self._names[i].startswith(wanted), len(self._names[i])))

    def _by_words(self, text: str, where: str) -> tuple[list[int], frozenset[int]]:
        """Nodes that have all the words or, if none has, as many as any; the most telling first."""
        tokens, n = text.lower().split()[:TOKENS], self.network.n
        score, count, meant = np.zeros(n), np.zeros(n, np.int64), set[int]()
        for token in tokens:
            best, hit = np.zeros(n), np.zeros(n, bool)
            for column in self._columns(token):
                nodes, amount = self.attributes.nodes(column)
                worth = np.log1p(np.abs(amount)) * np.log(n / max(1, nodes.size))
                best[nodes] = np.maximum(best[nodes], worth)
                hit[nodes] = True
                meant.add(column)
            if where == "all" and len(tokens) > 1:
                hit[self._by_name(token)] = True
            score, count = score + best, count + hit
        rows = np.flatnonzero(count == max(1, count.max(initial=0)))
        return rows[np.argsort(-score[rows], kind="stable")].tolist(), frozenset(meant)

    def _columns(self, token: str) -> list[int]:
        """The attributes that a word means: the word, a form of it, or else words that begin so."""
        if self.attributes.words is None:
            return []
        start, vocabulary = self.attributes.words
        known = [match.matched for match in vocabulary.read(token).matches]
        if not known and len(token) >= STEM:
            known = [word for word in vocabulary.column if word.startswith(token)][:FORMS]
        return [start + vocabulary.column[word] for word in dict.fromkeys(known)]

    # --- one node ---

    def _own(self, row: int) -> tuple[Ints, NDArray[np.float32]]:
        """The attributes of a node that are not 0, and what they are."""
        x = self.data.graph.x
        if is_sparse(x):
            place = slice(x.indptr[row], x.indptr[row + 1])
            return x.indices[place].astype(np.int64), x.data[place]
        columns = np.flatnonzero(x[row])
        return columns, x[row][columns]

    def _single(self, column: int) -> str:
        names = self.data.feature_names
        return names[column] if names else f"attribute {column}"

    def brief(self, row: int) -> dict[str, Any]:
        return {"node": self.data.node_name(row), "class": self.network.known(row)}

    def about(self, row: int) -> dict[str, Any]:
        """A node, its most telling attributes and some of its neighbours, rare ones first: hubs say little."""
        graph, network = self.data.graph, self.network
        every = graph.adj.indices[graph.adj.indptr[row] : graph.adj.indptr[row + 1]].astype(np.int64)
        near = every[np.argsort(graph.degree[every], kind="stable")][:NEIGHBOURS]
        among = graph.adj[near][:, near].tocoo()
        links = sorted({(int(min(i, j)), int(max(i, j))) for i, j in zip(*among.coords, strict=True)})
        edges = self._edges_with(row, near)
        neighbours = [
            {**self.brief(other), "edges": edges[i], "position": network.position(other)}
            for i, other in enumerate(near.tolist())
        ]
        columns, values = self._own(row)
        weight = values * network.idf[columns]  # its own value times how rare the attribute is
        telling = np.argsort(-np.abs(weight), kind="stable")[:WORDS]
        words = [{"word": self._single(int(columns[i])), "weight": round(float(weight[i]), 4)} for i in telling]
        about = {"degree": int(graph.degree[row]), "words": words, "position": network.position(row)}
        link, texts = str(self.data.info.get("link") or ""), self.data.texts
        if link.startswith(("https://", "http://")):
            about["link"] = link.replace("{id}", quote(self.data.node_name(row), safe=""))
        about["text"] = (texts[row] or None) if texts else None
        return {**self.brief(row), **about, "neighbours": neighbours, "links": links, "neighbours_total": every.size}

    def _edges_with(self, node: int, near: Ints) -> list[list[dict[str, Any]]]:
        """The kinds of edges that join each neighbour to the node; none in a plain network.

        `way` is `to` the neighbour, `from` it or `both`, and None where the kind has no direction. `weight` is the
        larger one of both ways, on the scale of the network (mean 1), and None where the kind has no weights.
        """
        found: list[list[dict[str, Any]]] = [[] for _ in range(near.size)]
        for relation in self.data.graph.relations:
            come = relation.adj[[node]][:, near].toarray()[0]
            lead = relation.adj[near][:, [node]].toarray()[:, 0]
            for entries, one, other in zip(found, come.tolist(), lead.tolist(), strict=True):
                if one or other:
                    way = WAYS[bool(one), bool(other)] if relation.directed else None
                    weight = round(max(one, other), 4) if relation.weighted else None
                    entries.append({"kind": relation.name, "way": way, "weight": weight})
        return found


# --- a list that somebody pasted or uploaded ---


def read_list(network: Network, text: str) -> dict[str, Any]:
    """The nodes of the list that are there, with their classes; lines that name no node of the network."""
    numbered = enumerate(text.removeprefix("\ufeff").splitlines(), 1)
    lines = list(islice(((number, line) for number, line in numbered if line.strip()), MAX_NODES + 2))
    if len(lines) > MAX_NODES + 1:
        raise FewnodeError(f"line {lines[MAX_NODES + 1][0]}: more than {MAX_NODES:,} nodes; give them in several lists")
    first = lines[0][1] if lines else ""
    separator = max(SEPARATORS, key=first.count)
    rows = [(number, _cells(line, separator)) for number, line in lines]
    if wide := next((number for number, cells in rows if len(cells) > MAX_COLUMNS), None):
        told = f"line {wide} has more than {MAX_COLUMNS} columns"
        raise FewnodeError(f"{told}; a list has a node and, if you like, its class")
    names = rows[0][1] if rows else []
    header = [name.lower() for name in names]
    if not header or header[0] not in NODE or network.has(names[0]):
        names, header = [], []
    place = next((i for i, name in enumerate(header) if name in CLASS), 1)
    verdict = header.index(ANSWER) if ANSWER in header else -1
    found: dict[tuple[str, str | None], None] = {}
    unknown, repeated, said_no = [], 0, 0
    for number, cells in rows[bool(header) :]:
        name = network.form(bare(cells[0]))
        label = bare(cells[place]) if place < len(cells) else ""
        if not network.has(name) or not _is_class(label):
            unknown.append({"line": number, "text": ",".join(cells)[:200]})
        elif 0 <= verdict < len(cells) and cells[verdict].lower() == "no":
            said_no += 1
        else:
            repeated += (name, label or None) in found
            found[name, label or None] = None
    widest = max((len(cells) for _, cells in rows), default=0)
    unused = [names[i] if i < len(names) else f"column {i + 1}" for i in range(1, widest) if i not in (place, verdict)]
    nodes = [{"node": node, "class": label} for node, label in found]
    return {"nodes": nodes, "unknown": unknown, "repeated": repeated, "said_no": said_no, "unused_columns": unused}


def _cells(line: str, separator: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=separator))]
    except csv.Error:
        return [line]


def _is_class(label: str) -> bool:
    try:
        return not label or _CLASS.validate_python(label) == label
    except ValidationError:
        return False


def _folded(name: str) -> str:
    """Whatever the case, and however the accents are put together."""
    return name.lower() if name.isascii() else unicodedata.normalize("NFC", name).lower()
