"""Many tasks answered together, from z of all nodes or of theirs alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from fewnode.engine.door import Engine
from fewnode.episodes import Task
from fewnode.gpn import Batch, Networks, log_prob, prototypes
from fewnode.graph import Ints
from fewnode.method import Probabilities
from fewnode.recognition.nearness import split_rows


def answer_tasks(
    z: Float[Tensor, "n d"], importance: Float[Tensor, " n"], tasks: Sequence[Task], distance: str
) -> list[Probabilities]:
    """Eqs. (11)-(13) for many tasks; those of equal N are computed together."""
    answers: dict[int, Probabilities] = {}
    for n_way in sorted({task.n_way for task in tasks}):
        places = [i for i, task in enumerate(tasks) if task.n_way == n_way]
        batch = Batch([tasks[i] for i in places], z.device)
        with torch.inference_mode():
            p = prototypes(z[batch.support], importance[batch.support], batch.segment, batch.n_tasks * n_way)
            p = p.view(batch.n_tasks, n_way, -1)
            parts = zip(*(split_rows(part, p[0].numel()) for part in (batch.query, batch.task)), strict=True)
            rows = torch.cat([log_prob(z[q], p[t], distance) for q, t in parts]).exp().cpu().numpy()
        ends = np.cumsum([tasks[i].query.size for i in places])
        answers |= dict(zip(places, np.split(rows, ends[:-1]), strict=True))
    return [answers[i] for i in range(len(tasks))]


@dataclass(frozen=True, eq=False)
class NumberedTasks:
    """Tasks whose nodes are numbered anew, so that no other node needs to be embedded."""

    nodes: Ints
    support: Ints
    """Of the nodes, those that are in a support set: only they need an importance."""
    tasks: list[Task]

    @classmethod
    def of(cls, tasks: Sequence[Task]) -> NumberedTasks:
        nodes = np.unique(np.concatenate([part for task in tasks for part in (task.support, task.query)]))
        support = np.unique(np.concatenate([task.support for task in tasks]))
        places = [[np.searchsorted(nodes, part) for part in (task.support, task.query)] for task in tasks]
        return cls(nodes, support, [replace(t, support=s, query=q) for t, (s, q) in zip(tasks, places, strict=True)])

    def embed(self, engine: Engine, networks: Networks) -> tuple[Float[Tensor, "k d"], Float[Tensor, " k"]]:
        """z and importance, row by row of `nodes`; queries have an importance of 0."""
        z, valued = engine.embed(networks, self.nodes, self.support)
        importance = z.new_zeros(self.nodes.size)
        importance[torch.from_numpy(np.searchsorted(self.nodes, self.support)).to(z.device)] = valued
        return z, importance
