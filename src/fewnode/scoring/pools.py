"""Pools of tasks as JSON lines, to be saved, exchanged and read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fewnode.class_labels import class_index
from fewnode.dataset import Dataset
from fewnode.episodes import Episode, Task
from fewnode.errors import FewnodeError
from fewnode.machine.files import read_lines, write_text
from fewnode.nodes import refuse_twice


def save_pool(path: Path, pool: Sequence[Episode], data: Dataset) -> None:
    """One task a line; nodes by name where they have names, labels by class name."""
    lines = []
    for task in pool:
        label = data.y[task.support[np.unique(task.support_y, return_index=True)[1]]]
        name = [data.class_names[c] for c in label]
        line = {
            "support": [data.node_name(v) for v in task.support],
            "support_y": [name[c] for c in task.support_y],
            "query": [data.node_name(v) for v in task.query],
            "query_y": [name[c] for c in task.query_y],
        }
        lines.append(json.dumps(line, ensure_ascii=False))
    write_text(path, "\n".join(lines) + "\n")


def read_pool(path: Path, data: Dataset) -> list[Episode]:
    """Tasks that somebody drew: JSON lines of `support, support_y, query, query_y`; nodes are names or row numbers."""
    pool = []
    for number, line in read_lines(path):
        try:
            task = json.loads(line)
            label = class_index(str(name) for name in task["support_y"])
            support = np.array([data.node(str(v)) for v in task["support"]], np.int64)
            asked = Task(
                support=support,
                support_y=np.array([label[str(c)] for c in task["support_y"]], np.int64),
                query=np.array([data.node(str(v)) for v in task["query"]], np.int64),
            )
            refuse_twice(data, support, task["support_y"])
            pool.append(Episode(asked, np.array([label[str(c)] for c in task["query_y"]], np.int64)))
        except FewnodeError as error:
            raise FewnodeError(f"{path}: line {number}: {error}") from None
        except KeyError as error:
            raise FewnodeError(f"{path}: line {number}: {error} is missing") from None
        except (ValueError, TypeError, RecursionError):
            raise FewnodeError(
                f"{path}: line {number}: not a JSON object with support, support_y, query and query_y"
            ) from None
    if not pool:
        raise FewnodeError(f"{path}: no task in it")
    return pool


def pool_shape(pool: Sequence[Episode]) -> dict[str, int | None]:
    """N, K and M of the tasks of a pool; None where they differ. How its queries were drawn is not known."""
    counts = {
        "way": {task.n_way for task in pool},
        "shot": {count for task in pool for count in np.bincount(task.support_y).tolist()},
        "query": {count for task in pool for count in np.bincount(task.query_y, minlength=task.n_way).tolist()},
    }
    return {name: found.pop() if len(found) == 1 else None for name, found in counts.items()} | {"queries": None}
