"""Many tasks answered together, from z of all nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from fewnode.episodes import Batch, Task
from fewnode.gpn import log_prob, prototypes
from fewnode.method import Probabilities
from fewnode.recognition.nearness import split_rows


def answer_tasks(
    z: Float[Tensor, "n d"], importance: Float[Tensor, " n"], tasks: Sequence[Task], distance: str
) -> list[Probabilities]:
    """Eqs. (11)-(13) for many tasks; those of equal N are computed together."""
    answers: dict[int, Probabilities] = {}
    for n_way in sorted({task.n_way for task in tasks}):
        places = [i for i, task in enumerate(tasks) if task.n_way == n_way]
        batch = Batch([tasks[i] for i in places])
        support, segment, query, task = (
            torch.from_numpy(part).to(z.device) for part in (batch.support, batch.segment, batch.query, batch.task)
        )
        with torch.inference_mode():
            p = prototypes(z[support], importance[support], segment, batch.n_tasks * n_way)
            p = p.view(batch.n_tasks, n_way, -1)
            parts = zip(*(split_rows(part, p[0].numel()) for part in (query, task)), strict=True)
            rows = torch.cat([log_prob(z[q], p[t], distance) for q, t in parts]).exp().cpu().numpy()
        ends = np.cumsum([tasks[i].query.size for i in places])
        answers |= dict(zip(places, np.split(rows, ends[:-1]), strict=True))
    return [answers[i] for i in range(len(tasks))]
