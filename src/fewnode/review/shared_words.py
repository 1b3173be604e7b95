"""Words that a node, or a neighbour of it, shares with the description of a class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fewnode.dataset import Dataset
from fewnode.embedding.attributes import inverse_document_frequency
from fewnode.graph import Ints
from fewnode.recognition.description import Description, dense, has_words, word_block


class SharedWords(NamedTuple):
    """Words of a description that a node has itself, and those that only nodes next to it have."""

    own: tuple[str, ...]
    near: tuple[tuple[str, int], ...]
    """With the neighbour that has the word most often."""


def shared_words(
    description: Description,
    data: Dataset,
    nodes: Sequence[int] | Ints,
    count: int = 5,
    idf: NDArray[np.float32] | None = None,
) -> list[SharedWords]:
    """For each node the words that it shares with a description, those that tell most first: by tf-idf.

    `idf`: that of the attributes, for who asks often.
    """
    if data.graph.blocks and not has_words(data):
        return [SharedWords((), ()) for _ in nodes]
    names, adj, block = data.feature_names or (), data.graph.adj, word_block(data)
    row = dense(description.x)[0]
    columns = block.start + np.flatnonzero(row[block.start : block.stop])
    rarity = inverse_document_frequency(data.graph.x) if idf is None else idf
    weight = row[columns] * np.square(rarity[columns])
    found = []
    for node in nodes:
        around = adj.indices[adj.indptr[node] : adj.indptr[node + 1]]
        held = dense(data.graph.x[np.append(around, node)][:, columns])
        mine, theirs = held[-1], held[:-1]
        most = theirs.max(axis=0, initial=0)
        own = _leading(np.log1p(mine) * weight, count)
        near = _leading(np.where(mine > 0, 0, np.log1p(most)) * weight, count)
        who = around[theirs.argmax(axis=0)] if around.size else around
        found.append(
            SharedWords(tuple(names[columns[i]] for i in own), tuple((names[columns[i]], int(who[i])) for i in near))
        )
    return found


def _leading(weight: NDArray[np.float32], count: int) -> list[int]:
    """The places of the largest weights that are not zero."""
    return [i for i in np.argsort(-weight, kind="stable")[:count].tolist() if weight[i] > 0]
