"""Every method at the size of Amazon-Clothing: seconds to train and, of those that adapt to a task, for 500 tasks.

MAML, Meta-GNN, GCN and SGC: 300 episodes with validation. GCN and SGC also as they are by default, stopped
early. The others: by default options. The network is that of core.py: the published one if
`--network` names it, with attributes of the published density. `ratio_direct` is the time of 64 tasks if the inner
loop moves the weights of all attributes at every step, over the time it takes through the products of rows, one
after the other in the same process.

    python benchmarks/adapt.py --network ../shared/data/few_shot_data/Amazon_clothing_network
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from core import clothing
from fewnode.episodes import EpisodeSampler
from fewnode.estimator import Estimator
from fewnode.methods import inner
from fewnode.methods.adapt import Adapt
from fewnode.methods.defaults import options

METHODS: dict[str, dict[str, Any]] = {
    "maml": options("maml"),
    "meta-gnn": options("meta-gnn"),
    "meta-gnn, gcn": {**options("meta-gnn"), "encoder": "gcn", "hidden": (32, 16)},
    "gcn": options("gcn"),
    "sgc": options("sgc"),
}
OTHERS = ["gpn", "gpn-naive", "pn", "propagation", "gpn-plus", "deepwalk", "node2vec"]


def timed(work: Callable[[], Any]) -> tuple[float, float]:
    start, cpu = time.perf_counter(), time.process_time()
    work()
    return round(time.perf_counter() - start, 2), round(time.process_time() - cpu, 2)


def measure(data: Any, settings: dict[str, Any], patience: int) -> dict[str, float]:
    train, valid, test = (EpisodeSampler(data, part, 5, 5, 5) for part in ("train", "valid", "test"))
    model = Adapt(**{**settings, "patience": patience})
    training = timed(lambda: model.fit(data.graph, train, valid))
    tasks = timed(lambda: model.predict_tasks(data.graph, [episode.task for episode in test.take(500)]))
    few = [episode.task for episode in test.take(64)]
    fast = timed(lambda: model.predict_tasks(data.graph, few))[1]
    limit, inner.MAX_GRAM = inner.MAX_GRAM, 0
    direct = timed(lambda: model.predict_tasks(data.graph, few))[1]
    inner.MAX_GRAM = limit
    return {
        "episodes": model.history_.done,
        "seconds_training": training[0],
        "cpu_seconds_training": training[1],
        "seconds_500_tasks": tasks[0],
        "cpu_seconds_500_tasks": tasks[1],
        "ratio_direct": round(direct / fast, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", type=Path)
    parser.add_argument("--method", choices=[*METHODS, *OTHERS], action="append")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    data = clothing(arguments.network)
    for name in arguments.method or [*METHODS, *OTHERS]:
        if name in OTHERS:
            seconds, cpu = timed(lambda name=name: Estimator(name, 5, 5).fit(data))  # type: ignore[misc]
            print(json.dumps({"method": name, "seconds_training": seconds, "cpu_seconds_training": cpu}), flush=True)
            continue
        for patience in {METHODS[name].get("patience", 1000), 1000}:
            print(json.dumps({"method": name, **measure(data, METHODS[name], patience)}), flush=True)


if __name__ == "__main__":
    main()
