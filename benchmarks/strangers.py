"""What nodes of none of the classes do to the transductive mode: accuracy on members, with so many strangers a member.

Members are the queries of 5-way tasks; strangers are drawn from the nodes that are in none of the task's classes. "All"
asks about every such node of the network that training has no label of.

    python benchmarks/strangers.py debian ../shared/data/wikispeedia.npz
"""

from __future__ import annotations

import argparse
import itertools
import json

import numpy as np
import torch

import fewnode
from fewnode.episodes import EpisodeSampler
from fewnode.estimator import Estimator
from fewnode.predict.labelling import unlabelled

SHOTS, STRANGERS, QUERIES = (1, 3, 5), (0, 1, 2, 5, 20, None), 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="+")
    parser.add_argument("--tasks", type=int, default=50)
    parser.add_argument("--part", choices=["valid", "test"], default="test")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for network in options.networks:
        data = fewnode.load(network)
        model = Estimator("gpn-plus", way=min(5, len(data.split.train))).fit(data)
        for shot, strangers in itertools.product(SHOTS, STRANGERS):
            sampler = EpisodeSampler(data, options.part, min(5, len(data.split.part(options.part))), shot, QUERIES)
            right: dict[str, list[float]] = {"inductive": [], "transductive": []}
            for t in range(options.tasks):
                task, rng = sampler[t], np.random.default_rng(t)
                own, others = data.y[task.support], np.array(unlabelled(data, task.support.tolist()))
                others = others[np.isin(data.y[others], own, invert=True)]
                count = others.size if strangers is None else min(others.size, strangers * task.query.size)
                asked = np.concatenate([task.query, rng.choice(others, count, replace=False)])
                for mode, scores in right.items():
                    p = model.predict_proba(data.graph, task.support, task.support_y, asked, mode == "transductive")
                    scores.append(float((p[: task.query.size].argmax(axis=1) == task.query_y).mean()))
            found = {mode: round(100 * float(np.mean(scores)), 1) for mode, scores in right.items()}
            told = {
                "network": data.name,
                "shots": shot,
                "strangers a member": "all" if strangers is None else strangers,
            }
            print(json.dumps({**told, **found, "tasks": options.tasks}), flush=True)


if __name__ == "__main__":
    main()
