"""From 1 to 2 workers of a local Ray cluster of two nodes: views, propagation and grid, start-up apart, in turn.

    python benchmarks/cluster.py --rounds 3

Runs with one and with two workers alternate, so that whatever else the machine does falls on both. The ratio is that of
the medians. Workers of views (GPN+) and of the propagation (GPN) are started before the clock starts. Those of a grid
are its own; what it takes to connect, start one and load the network is measured by a grid of one cell with one
episode, and taken off.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
from ray.cluster_utils import Cluster

from fewnode.bench.networks import Size, network
from fewnode.experiment.grid import Grid, read_grid
from fewnode.experiment.run import experiment
from fewnode.represent.blocks import Propagation, finish
from fewnode.represent.diffused_views import DiffusedViews
from fewnode.represent.sources import attribute_sources
from fewnode.represent.views import all_views
from fewnode.represent.workspace import Workspace
from fewnode.scale import cluster
from fewnode.scale.cluster import block_runner, connected
from fewnode.storage.io import load_dataset, save_dataset

GRID = """
[defaults]
datasets = "debian"
tasks = 50
[[compare]]
methods = ["gpn"]
way = 5
shot = 5
seeds = 8
"""


START = GRID.replace("seeds = 8", "seeds = 1") + "[methods.gpn]\noptions = { episodes = 1 }\n"


def alternate(rounds: int, run: Callable[[int], None], apart: float = 0.0) -> dict[str, float]:
    seconds: dict[int, list[float]] = {1: [], 2: []}
    run(2)  # starts workers, which stay
    for _ in range(rounds):
        for workers in (1, 2):
            start = time.perf_counter()
            run(workers)
            seconds[workers].append(time.perf_counter() - start)
    one, two = median(seconds[1]) - apart, median(seconds[2]) - apart
    return {"one": round(one, 2), "two": round(two, 2), "ratio": round(one / two, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--no-grid", action="store_true", help="Views and propagation alone.")
    given = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="fewnode-cluster-"))
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    nodes.add_node(num_cpus=1)
    cluster.PATIENCE = 120.0  # a machine that is busy takes its time to start workers
    found: dict[str, object] = {"load_before": round(os.getloadavg()[0], 1)}
    try:
        (work / "grid.toml").write_text(GRID)
        (work / "start.toml").write_text(START)
        grid, one_cell = read_grid(work / "grid.toml"), read_grid(work / "start.toml")
        size = Size(given.nodes, 10 * given.nodes, 64, (10, 5, 5), spread=0.5, non_zeros=0)
        save_dataset(network(size), work / "data")
        data = load_dataset(work / "data")
        plan = Propagation.plan(data.graph, rows=given.nodes // 16 + 1)
        with connected(nodes.address, work) as ray:

            def propagate(workers: int) -> None:
                finish(plan, block_runner(ray, workers, None))
                shutil.rmtree(plan.folder)

            def views(workers: int) -> None:
                space = Workspace.of(data.graph, work / "views", {}, None, block_runner(ray, workers, None))
                every = DiffusedViews(sources, dict.fromkeys(all_views(names), 1.0), workspace=space)
                for _ in every.diffused(data.graph, sources=names):
                    pass
                for folder in (work / "views").glob("*/views-*"):
                    shutil.rmtree(folder)

            sources = tuple(attribute_sources(data.graph, 256, 0))
            names = [source.name for source in sources]
            found["views"] = alternate(given.rounds, views)
            print(json.dumps(found), flush=True)
            found["propagation"] = alternate(given.rounds, propagate)
            print(json.dumps(found), flush=True)

        if given.no_grid:
            return

        def cells(workers: int, wanted: Grid = grid) -> None:
            shutil.rmtree(work / "out", ignore_errors=True)
            experiment(wanted, work / "out", workers, "ray", address=nodes.address)

        cells(1, one_cell)
        begun = time.perf_counter()
        cells(1, one_cell)
        start = time.perf_counter() - begun
        found["start-up"] = round(start, 2)
        found["grid, start-up apart"] = alternate(given.rounds, cells, start)
        records = [json.loads(line) for line in (work / "out" / "cells.jsonl").read_text().splitlines()]
        spent = [sum(record["seconds"].values()) for record in records]
        found["a cell"] = round(float(np.mean(spent)), 2)
    finally:
        nodes.shutdown()
        shutil.rmtree(work)
    print(json.dumps({**found, "load_after": round(os.getloadavg()[0], 1)}, indent=1))


if __name__ == "__main__":
    main()
