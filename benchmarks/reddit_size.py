"""Training at the size of Reddit: 232,965 nodes, 11.6 million edges, 602 dense attributes, 41 classes.

The valuator sees two hops, which is nearly every node here. Exact all the same: no tensor is as long as the arcs, and
the scores of all nodes are one product with X, which is not copied.

    python benchmarks/reddit_size.py --episodes 300
"""

from __future__ import annotations

import argparse
import json
import time

import torch

from fewnode.bench.networks import SIZES, network
from fewnode.bench.run import resident
from fewnode.episodes import EpisodeSampler
from fewnode.methods.gpn import GPN
from fewnode.train import Journal


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=300)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    start = time.perf_counter()
    data = network(SIZES["reddit"])
    generated = time.perf_counter() - start
    degree = data.graph.degree
    print(f"{data.graph}, largest degree {degree.max()}, made in {generated:.0f} s", flush=True)
    train, valid = (EpisodeSampler(data, part, 5, 5) for part in ("train", "valid"))
    steps: list[float] = []
    start = time.perf_counter()
    report = Journal(on_step=lambda step, loss, history: steps.append(time.perf_counter() - start))
    model = GPN(episodes=arguments.episodes, patience=1000)
    model.fit_in_steps(data.graph, train, valid, report)
    seconds = time.perf_counter() - start
    found = {
        "episodes": model.history_.done,
        "seconds": seconds,
        "seconds_to_first_episode": steps[0],
        "peak_mb": resident("VmHWM"),
        "largest_degree": int(degree.max()),
        "threads": arguments.threads,
    }
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
