"""What suggestions are worth: from 1 shot, four more labels a class, suggested or at random, on the same tasks.

Labels are asked for in rounds of as many nodes as there are classes, or all at once (`--rounds 1`). The pool is every
node that training has no label of, which is what `suggest` asks among: a node of another class, or of none, is an
answer too, of no use but that `suggest` is told of it. Then the same among the nodes of all classes that tasks are
drawn from, where others have no label; and among nodes of the task's own classes only, so that every label counts.

    python benchmarks/labelling.py debian ../shared/data/wikispeedia.npz --splits 0 1 2
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Callable

import numpy as np
import torch

import fewnode
from fewnode.dataset import Dataset
from fewnode.episodes import Episode, EpisodeSampler
from fewnode.estimator import Estimator
from fewnode.graph import Ints
from fewnode.predict.labelling import may_have_class
from fewnode.scoring.interval import Interval, interval
from flagship import split_of

LABELS = 4
"""Nodes asked about for each class, in all."""
Choose = Callable[[Ints, Ints, Ints, Ints, int], list[int]]


def grown(data: Dataset, task: Episode, choose: Choose, pool: Ints, rounds: int) -> tuple[Ints, Ints]:
    """The support set after all rounds."""
    own = data.y[task.support]
    labelled, rejected = task.support, np.zeros(0, np.int64)
    for _ in range(rounds):
        label = np.array([int(np.flatnonzero(own == data.y[v])[0]) for v in labelled])
        left, count = np.setdiff1d(pool, [*labelled, *rejected]), LABELS * task.n_way // rounds
        picked = np.array(choose(labelled, label, left, rejected, count))
        useful = np.isin(data.y[picked], own)
        labelled = np.concatenate([labelled, picked[useful]])
        rejected = np.concatenate([rejected, picked[~useful]])
    return labelled, np.array([int(np.flatnonzero(own == data.y[v])[0]) for v in labelled])


POOLS = {"all": "all that training has no label of", "part": "all classes of the part", "own": "the task's own classes"}


def pool_of(data: Dataset, name: str, part: str, task: Episode) -> Ints:
    """Nodes that may be asked about."""
    if name == "all":
        rest = [other for other in ("train", "valid", "test") if other != part]
        inside = np.isin(data.y, [c for other in rest for c in data.split.part(other)], invert=True)
        inside &= may_have_class(data, task.support)
    else:
        inside = np.isin(data.y, data.split.part(part) if name == "part" else data.y[task.support])
    return np.setdiff1d(np.flatnonzero(inside), np.concatenate([task.query, task.support]))


def compare(
    model: Estimator, data: Dataset, part: str, tasks: int, name_of_pool: str, rounds: int
) -> dict[str, object]:
    classes = data.split.part(part)
    sampler = EpisodeSampler(data, part, min(5, len(classes)), 1, 5)
    scores: dict[str, list[float]] = {"suggested": [], "random": []}
    useful: dict[str, list[int]] = {"suggested": [], "random": []}
    for t in range(tasks):
        task, rng = sampler[t], np.random.default_rng(t)
        pool = pool_of(data, name_of_pool, part, task)
        choices: dict[str, Choose] = {
            "suggested": lambda s, y, pool, rejected, k: [
                found.node for found in fewnode.suggest(model, data, s, y, k, pool.tolist(), rejected.tolist())
            ],
            "random": lambda s, y, pool, rejected, k, rng=rng: rng.choice(pool, k, replace=False).tolist(),  # type: ignore[misc]
        }
        for name, choose in choices.items():
            support, label = grown(data, task, choose, pool, rounds)
            p = model.predict_proba(data.graph, support, label, task.query)
            scores[name].append(float((p.argmax(axis=1) == task.query_y).mean()))
            useful[name].append(len(support) - task.n_way)
    gain = np.subtract(scores["suggested"], scores["random"])[None]
    means = {name: str(interval(np.array(values)[None])) for name, values in scores.items()}
    labels = {f"useful labels, {name}": round(float(np.mean(found)), 1) for name, found in useful.items()}
    return {**means, "gain": str(Interval(interval(gain).mean, interval(gain).ci95)), **labels, "tasks": tasks}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="+")
    parser.add_argument("--tasks", type=int, default=50)
    parser.add_argument("--part", choices=["valid", "test"], default="test")
    parser.add_argument("--splits", type=int, nargs="+", default=[0], help="0 is the file's own, others are dealt anew")
    parser.add_argument("--pools", nargs="+", choices=list(POOLS), default=list(POOLS))
    parser.add_argument("--rounds", type=int, choices=(1, 2, LABELS), default=LABELS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for network, split in itertools.product(options.networks, options.splits):
        data = split_of(fewnode.load(network), split)
        model = Estimator("gpn-plus").fit(data)
        for pool in options.pools:
            everyone = data.split.train + data.split.valid + data.split.test
            if pool == "part" and np.isin(data.y, everyone).all():
                continue  # the same as the first
            found = {"network": data.name, "split": split, "pool": POOLS[pool], "rounds": options.rounds}
            found |= compare(model, data, options.part, options.tasks, pool, options.rounds)
            print(json.dumps(found, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
