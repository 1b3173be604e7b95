"""Nodes found by name, by the words of their text, by an attribute, or near another node."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.graph import Ints, is_sparse
from fewnode.serve.attribute_index import AttributeIndex

NEAR = 1_000
"""Nodes that are found near another one."""
TOKENS, FORMS, STEM = 12, 50, 3
"""Words of a search that count, words of the network that one may begin, and letters that it needs for that."""


@dataclass(frozen=True)
class Hits:
    """Nodes in the order in which they are shown, and why each was found."""

    rows: Ints
    matched: NDArray[Any]
    """Of each: `name`, `text`, `attribute` or `near`; None if nothing was asked."""
    columns: frozenset[int] = frozenset()
    """Attributes that the words of the search mean."""
    similarity: dict[int, float] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Ints, matched: str | None, **more: Any) -> Hits:
        return cls(rows, np.full(rows.size, matched, object), **more)

    def only(self, keep: NDArray[np.bool_], matched: str) -> Hits:
        """Some of them; where nothing was asked before, this is why."""
        why = self.matched[keep]
        why[why == None] = matched  # noqa: E711
        return replace(self, rows=self.rows[keep], matched=why)


class NodeSearch:
    """Names and attributes of a network, made ready for searching once."""

    def __init__(self, data: Dataset) -> None:
        self.data, self.attributes = data, AttributeIndex(data)

    @cached_property
    def _names(self) -> list[str]:
        return [_folded(self.data.node_name(i)) for i in range(self.data.graph.n)]

    def by_name(self, text: str) -> Ints:
        """Nodes whose name holds the text, whatever the case; those that begin with it first."""
        wanted = _folded(text.strip())
        hits = [i for i, name in enumerate(self._names) if wanted in name]
        hits.sort(key=lambda i: (not self._names[i].startswith(wanted), len(self._names[i])))
        return np.array(hits, np.int64)

    def find(self, text: str, where: str) -> Hits:
        """Nodes by a text in their `name`, in their `text`, or in either (`all`)."""
        if where == "text" and self.attributes.vocabulary is None:
            raise FewnodeError(f"{self.data.name} has no words to search; search names, or by an attribute")
        if not text.strip():
            return Hits.of(np.arange(self.data.graph.n), None)
        if where == "name":
            return Hits.of(self.by_name(text), "name")
        named = self.by_name(text) if where == "all" else np.zeros(0, np.int64)
        rows, columns = self._by_words(text, where == "all")
        rest = rows[~np.isin(rows, named)]
        matched = np.repeat(np.array(["name", "text"], object), [named.size, rest.size])
        return Hits(np.concatenate([named, rest]), matched, columns)

    def _by_words(self, text: str, names: bool) -> tuple[Ints, frozenset[int]]:
        """Nodes that have all the words or, if none has, as many as any; the most telling first."""
        tokens, n = text.lower().split()[:TOKENS], self.data.graph.n
        score, count, meant = np.zeros(n), np.zeros(n, np.int64), set[int]()
        for token in tokens:
            best, hit = np.zeros(n), np.zeros(n, bool)
            for column in self._columns(token):
                nodes, amount = self.attributes.nodes(column)
                worth = np.log1p(np.abs(amount)) * np.log(n / max(1, nodes.size))
                best[nodes] = np.maximum(best[nodes], worth)
                hit[nodes] = True
                meant.add(column)
            if names and len(tokens) > 1:
                hit[self.by_name(token)] = True
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

    def having(self, hits: Hits, attribute: str, value: str) -> Hits:
        """Those of the hits whose attribute is as it is wanted."""
        return hits.only(self.attributes.having(attribute, value)[hits.rows], "attribute")

    def words(self, hits: Hits, row: int) -> list[str]:
        """The words of a node that were searched for."""
        if not hits.columns:
            return []
        x, names = self.data.graph.x, self.data.feature_names or ()
        own = x.indices[x.indptr[row] : x.indptr[row + 1]] if is_sparse(x) else np.flatnonzero(x[row])
        return [names[column] for column in own.tolist() if column in hits.columns]


def _folded(name: str) -> str:
    """Whatever the case, and however the accents are put together."""
    return name.lower() if name.isascii() else unicodedata.normalize("NFC", name).lower()


def nearest(z: Tensor, node: int, among: Hits) -> Hits:
    """The hits that are most like a node, by the angle between their embeddings."""
    length = torch.linalg.vector_norm(z, dim=1)
    like = (z @ z[node] / (length * length[node]).clamp(min=1e-12)).numpy()
    others = among.rows[among.rows != node]
    found = others[np.argsort(-like[others], kind="stable")[:NEAR]]
    similarity = {row: round(float(like[row]), 4) for row in found.tolist()}
    return Hits.of(found, "near", columns=among.columns, similarity=similarity)
