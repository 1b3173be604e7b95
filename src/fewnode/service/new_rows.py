"""z of new nodes, made from what is stored of every node; all others keep theirs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from fewnode.dataset import Dataset
from fewnode.embedding.kinds import both_ways
from fewnode.embedding.new_rows import Kept, Neighbourhood, StoredViews
from fewnode.embedding.sources import STRUCTURE
from fewnode.graph import Ints
from fewnode.vectors import Floats


@dataclass(frozen=True)
class Stored:
    """What rows of new nodes are made from: rows of every node of the dataset, and those of nodes that came since."""

    views: StoredViews
    later: Mapping[Kept, Floats] = field(default_factory=dict)

    def of(self, name: Kept, nodes: Ints) -> Floats:
        first, more = self.views.kept[name], self.later.get(name)
        rows: Floats = first[np.minimum(nodes, len(first) - 1)]
        late = nodes >= len(first)
        if more is not None and late.any():
            rows[late] = more[np.minimum(nodes[late] - len(first), len(more) - 1)] if len(more) else 0
        return rows

    def with_rows(self, data: Dataset, old: int) -> tuple[Stored, Floats]:
        """z of the nodes from `old` on, and what is stored then; that of all others stays as it is."""
        graph, views = both_ways(data.graph), self.views
        new = np.arange(old, data.graph.n)
        around = [graph.adj.indices[graph.adj.indptr[i] : graph.adj.indptr[i + 1]].astype(np.int64) for i in new]
        others = np.setdiff1d(np.concatenate([np.zeros(0, np.int64), *around]), new)
        every = np.concatenate([new, others])
        place = {node: i for i, node in enumerate(every.tolist())}
        near = [np.array([place[node] for node in nodes.tolist()], np.int64) for nodes in around]
        rows = {name: self.of(name, every) for name in views.kept}
        for name, said in views.said(data.graph.x[old:]).items():
            rows[name][: new.size] = said
        if STRUCTURE in rows:
            for i, nodes in enumerate(near):
                rows[STRUCTURE][i] = views.placed(rows[STRUCTURE][nodes[nodes >= new.size]])
        kept, z = views.made(Neighbourhood(near, graph.degree[every]), rows, np.ones(new.size, bool))
        before = [(name, self.later.get(name, rows[:0])) for name, rows in kept.items()]
        return Stored(views, {name: np.concatenate([rows, kept[name]]) for name, rows in before}), z
