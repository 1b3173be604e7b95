"""Whether "in one of these classes" can be believed when every node of a network is asked about.

Tasks of test classes, a few labels each; all other nodes are asked. `precision`: the share of the claimed nodes (member
at least 0.5) that are members by the data's labels; `said`: what `member` was on average of those; `recall`: the share
of the members that are claimed. `label` is the share whose class is right as well. "every second" is the same model
without the network's own share of members: as if every second node were one.

    python benchmarks/membership.py debian ../shared/data/wikispeedia.npz
"""

from __future__ import annotations

import argparse
import json

import numpy as np
import torch

import fewnode
from fewnode.episodes import EpisodeSampler
from fewnode.estimator import Estimator


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="+")
    parser.add_argument("--tasks", type=int, default=30)
    parser.add_argument("--shot", type=int, default=5)
    parser.add_argument("--ways", type=int, nargs="+", default=[1, 3])
    parser.add_argument("--method", default="gpn-plus")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for network in options.networks:
        data = fewnode.load(network)
        model = Estimator(options.method, way=min(5, len(data.split.train))).fit(data)
        for way in options.ways:
            sampler = EpisodeSampler(data, "test", max(2, way), options.shot, options.shot, 7)
            found: dict[str, list[list[float]]] = {"every second": [], "the network's share": []}
            for t in range(options.tasks):
                own = sampler[t].support_y < way
                support, label = sampler[t].support[own], data.y[sampler[t].support[own]]
                asked = np.setdiff1d(np.arange(data.graph.n), support)
                truth, told = np.isin(data.y[asked], label), model.recogniser(data, support, label)
                right = np.array(told.classes)[told.among(asked).argmax(axis=1)] == data.y[asked]
                for rule, member in zip(found, (told.familiar(asked), told.member(asked)), strict=True):
                    claimed = member >= 0.5
                    counts = [part[claimed].sum() for part in (claimed, truth, right, member)]
                    found[rule].append([*map(float, counts), float(truth[claimed].sum() / truth.sum())])
            for rule, rows in found.items():
                claimed, hit, right_, said = np.sum(rows, axis=0)[:4]
                each = [row[1] / row[0] for row in rows if row[0]]
                told_ = {
                    "claimed": round(claimed / len(rows)),
                    "precision": round(100 * hit / max(1.0, claimed), 1),
                    "said": round(100 * said / max(1.0, claimed), 1),
                    "label": round(100 * right_ / max(1.0, claimed), 1),
                    "recall": round(100 * float(np.mean([row[4] for row in rows])), 1),
                    "precision of a task, mean": round(100 * float(np.mean(each)), 1),
                    "tasks that claim": len(each),
                }
                setting = {"network": data.name, "ways": way, "shots": options.shot, "share": rule}
                print(json.dumps({**setting, **told_}), flush=True)


if __name__ == "__main__":
    main()
