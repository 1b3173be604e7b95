"""Nodes found by name, by the words of their text, by an attribute, or near another one; and what is known of one."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import cached_property
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from fewnode.adjacency import Relation
from fewnode.errors import FewnodeError
from fewnode.graph import Graph, Ints, is_sparse
from fewnode.service.attributes import AttributeIndex
from fewnode.service.bodies import Wanted
from fewnode.service.network import Network

MAX_NEAR, WORDS, NEIGHBOURS = 1_000, 12, 30
"""Nodes that are found near another one; attributes and neighbours of a node that are told."""
TOKENS, FORMS, STEM = 12, 50, 3
"""Words of a search that count, words of the network that one may begin, and letters that it needs for that."""
WAYS = {(True, False): "from", (False, True): "to", (True, True): "both"}
"""Whether an edge leads from the neighbour, and whether one leads to it."""


class Search:
    """Names and attributes of a network, made ready for searching once."""

    def __init__(self, network: Network) -> None:
        self.network, self.data = network, network.data
        self.attributes = AttributeIndex(network.data)

    # --- which nodes ---

    def find(self, wanted: Wanted) -> dict[str, Any]:
        """A page of the nodes for which all that is wanted holds, and why each was found."""
        rows, matched, columns = self.by_text(wanted.search, wanted.where)
        similarity: dict[int, float] = {}
        if wanted.attribute:
            keep = self.attributes.having(wanted.attribute, wanted.value)[rows]
            rows, matched = rows[keep], np.where(matched[keep] == None, "attribute", matched[keep])  # noqa: E711
        if wanted.near:
            rows, like = self.network.nearest(self.network.row(wanted.near), rows, MAX_NEAR)
            matched = np.full(rows.size, "near", object)
            similarity = dict(zip(rows.tolist(), like.round(4).tolist(), strict=True))
        page = slice(wanted.offset, wanted.offset + wanted.limit)
        found = [
            {
                **self.brief(row),
                "degree": int(self.data.graph.degree[row]),
                "matched": reason,
                "words": self._shared(row, columns),
                "similarity": similarity.get(row),
            }
            for row, reason in zip(rows[page].tolist(), matched[page].tolist(), strict=True)
        ]
        return {"total": int(rows.size), "offset": wanted.offset, "nodes": found}

    def by_text(self, text: str, where: str) -> tuple[Ints, NDArray[Any], frozenset[int]]:
        """Nodes by a text in their `name`, in their `text`, or in either (`all`); by what; and the words it means."""
        if where == "text" and self.attributes.vocabulary is None:
            raise FewnodeError(f"{self.data.name} has no words to search; search names, or by an attribute")
        if not text.strip():
            return np.arange(self.network.n), np.full(self.network.n, None, object), frozenset()
        named = np.zeros(0, np.int64) if where == "text" else self._by_name(text)
        rows, columns = (np.zeros(0, np.int64), frozenset[int]()) if where == "name" else self._by_words(text, where)
        rest = rows[~np.isin(rows, named)]
        why = np.repeat(np.array(["name", "text"], object), [named.size, rest.size])
        return np.concatenate([named, rest]), why, columns

    @cached_property
    def _names(self) -> list[str]:
        return [_folded(self.data.node_name(i)) for i in range(self.network.n)]

    def _by_name(self, text: str) -> Ints:
        """Nodes whose name holds the text, whatever the case; those that begin with it first."""
        wanted = _folded(text.strip())
        hits = [i for i, name in enumerate(self._names) if wanted in name]
        hits.sort(key=lambda i: (not self._names[i].startswith(wanted), len(self._names[i])))
        return np.array(hits, np.int64)

    def _by_words(self, text: str, where: str) -> tuple[Ints, frozenset[int]]:
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
        most = int(count.max(initial=0))
        rows = np.flatnonzero(count == most) if most else np.zeros(0, np.int64)
        return rows[np.argsort(-score[rows], kind="stable")], frozenset(meant)

    def _columns(self, token: str) -> Iterator[int]:
        """The attributes that a word means: the word, a form of it, or else words that begin so."""
        vocabulary, block = self.attributes.vocabulary, self.attributes.words
        if vocabulary is None or block is None:
            return
        known = [match.matched for match in vocabulary.read(token).matches]
        if not known and len(token) >= STEM:
            known = [word for word in vocabulary.column if word.startswith(token)][:FORMS]
        for word in dict.fromkeys(known):
            yield block.start + vocabulary.column[word]

    def _shared(self, row: int, columns: frozenset[int]) -> list[str]:
        """The words of a node that were searched for."""
        names = self.data.feature_names or ()
        return [names[column] for column in self._own(row)[0].tolist() if column in columns] if columns else []

    # --- one node ---

    def _own(self, row: int) -> tuple[Ints, NDArray[np.float32]]:
        """The attributes of a node that are not 0, and what they are."""
        x = self.data.graph.x
        if is_sparse(x):
            place = slice(x.indptr[row], x.indptr[row + 1])
            return x.indices[place].astype(np.int64), x.data[place]
        columns = np.flatnonzero(x[row])
        return columns, x[row][columns]

    def brief(self, row: int) -> dict[str, Any]:
        return {"node": self.data.node_name(row), "class": self.network.known(row)}

    def about(self, row: int) -> dict[str, Any]:
        graph, network = self.data.graph, self.network
        near = graph.adj.indices[graph.adj.indptr[row] : graph.adj.indptr[row + 1]].astype(np.int64)
        total, near = near.size, near[np.argsort(graph.degree[near], kind="stable")][:NEIGHBOURS]
        among = graph.adj[near][:, near].tocoo()
        links = sorted({(int(min(i, j)), int(max(i, j))) for i, j in zip(*among.coords, strict=True)})
        neighbours = [
            {**self.brief(other), "edges": edges, "position": network.position(other)}
            for other, edges in zip(near.tolist(), _edges_between(graph, row, near), strict=True)
        ]
        told = {"degree": int(graph.degree[row]), "words": self._words(row), "position": network.position(row)}
        link, texts = str(self.data.info.get("link") or ""), self.data.texts
        if link.startswith(("https://", "http://")):
            told["link"] = link.replace("{id}", quote(self.data.node_name(row), safe=""))
        told["text"] = (texts[row] or None) if texts else None
        return {**self.brief(row), **told, "neighbours": neighbours, "links": links, "neighbours_total": total}

    def _words(self, row: int) -> list[dict[str, Any]]:
        """The attributes that tell most about a node: its own value times how rare the attribute is."""
        columns, values = self._own(row)
        weight = values * self.network.idf[columns]
        names = self.data.feature_names
        return [
            {"word": names[columns[i]] if names else f"attribute {columns[i]}", "weight": round(float(weight[i]), 4)}
            for i in np.argsort(-np.abs(weight), kind="stable")[:WORDS]
        ]


def _edges_between(graph: Graph, node: int, near: Ints) -> list[list[dict[str, Any]]]:
    """Of each neighbour, an entry for each kind of edge that joins it to the node; none in a plain network.

    `way` is `to` the neighbour, `from` it or `both`, and None where the kind has no direction. `weight` is the larger
    one of both ways, on the scale of the network (mean 1), and None where the kind has no weights.
    """
    found: list[list[dict[str, Any]]] = [[] for _ in range(near.size)]
    for relation in graph.relations:
        for place, entry in _of_kind(relation, node, near):
            found[place].append(entry)
    return found


def _of_kind(relation: Relation, node: int, near: Ints) -> Iterator[tuple[int, dict[str, Any]]]:
    come = relation.adj[[node]][:, near].toarray()[0]
    lead = relation.adj[near][:, [node]].toarray()[:, 0]
    for place, (one, other) in enumerate(zip(come.tolist(), lead.tolist(), strict=True)):
        if one or other:
            way = WAYS[bool(one), bool(other)] if relation.directed else None
            weight = round(max(one, other), 4) if relation.weighted else None
            yield place, {"kind": relation.name, "way": way, "weight": weight}


def _folded(name: str) -> str:
    """Whatever the case, and however the accents are put together."""
    return name.lower() if name.isascii() else unicodedata.normalize("NFC", name).lower()
