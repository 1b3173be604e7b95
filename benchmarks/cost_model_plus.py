"""What GPN+ costs beyond memory, on paper: bytes counted, processor seconds fitted on runs of `benchmarks/scale.py`.

    python benchmarks/cost_model_plus.py docs/scale-runs-plus.json --held-back 10000000

The work of a fit is products: each arc is read once for every column and step of a diffusion. What is read at random
costs more the larger the array is: hence the doublings from `NEAR` nodes on. An import reads in order. The run with so
many nodes is held back.
Then come plans for two networks that no machine here could hold. The text goes into docs/scale.md as it is printed.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from scipy.optimize import nnls

from cost_model import GB, NEAR, Network, hours, network_of, show

RANK, STRUCTURE = 256, 64
"""Directions of attributes at most, and those of the structure."""
ATTRIBUTE_STEPS, STRUCTURE_STEPS = 22, 50
"""Products that all views of a source share: 20 of Â and 2 of the walk; 10 and 40."""
KEPT = 8
"""Views of all nodes that are kept at most."""
SECOND = 20_000_000
"""Pairs of nodes that second steps join at most."""
ROUNDS, EXTRA = 2, 16
STAGES = ("import", "train", "classify")


def columns(network: Network) -> int:
    return min(network.width, RANK)


def near_pairs(network: Network) -> float:
    """Entries of the matrix that tells the place of a node in the structure."""
    return network.arcs + min(SECOND, network.arcs * network.degree * network.spread)


def diffusion(network: Network) -> float:
    """Multiply-adds of diffusions in thousands of millions, half of them again for views that are kept."""
    steps = ATTRIBUTE_STEPS * columns(network) + STRUCTURE_STEPS * STRUCTURE
    return 1.5 * network.arcs * steps / 1e9


def products(network: Network) -> float:
    """Those of diffusions and of the directions of the structure."""
    return diffusion(network) + near_pairs(network) * (2 * ROUNDS + 1) * (STRUCTURE + EXTRA) / 1e9


def features(network: Network, stage: str) -> list[float]:
    """What the time of a stage is linear in; the first is the start of the process."""
    n, a, far = network.nodes / 1e6, network.arcs / 1e6, np.log2(network.nodes / NEAR)
    if stage == "import":
        return [1, a, n * network.width]
    if stage == "train":
        return [1, products(network), products(network) * far]
    return [1, n]


def kept_bytes(network: Network) -> float:
    """Files of a run: sources, views of all nodes, z."""
    return 4 * network.nodes * ((1 + KEPT / 2) * columns(network) + (1 + KEPT / 2) * STRUCTURE + 2 * RANK)


def least_memory(network: Network) -> float:
    """What must be in memory: one column of twelve arrays, degrees and labels, and what is near what."""
    return 4 * network.nodes * (12 + 10) + 2 * (network.index + 4) * near_pairs(network)


def fit(runs: list[dict], stage: str) -> np.ndarray:
    rows = np.array([features(network_of(run), stage) for run in runs])
    seconds = np.array([run["stages"][stage]["processor_seconds"] for run in runs])
    return nnls(rows / seconds[:, None], np.ones(len(runs)))[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--held-back", type=int, default=10_000_000)
    given = parser.parse_args()
    runs = json.loads(given.runs.read_text())
    seen = [run for run in runs if run["nodes"] != given.held_back]
    models = {stage: fit(seen, stage) for stage in STAGES}
    names = {"import": ("start", "a", "n d"), "train": ("start", "p", "p l"), "classify": ("start", "n")}
    print(f"Processor seconds, fitted on {len(seen)} runs of up to {max(r['nodes'] for r in seen):,} nodes. Here n are")
    print("millions of nodes, a = 2E of arcs, d is the width, p are 10⁹ multiply-adds,")
    print(f"l doublings from {NEAR:,} nodes to all:\n")
    for stage, model in models.items():
        terms = " + ".join(f"{c:.3g} ({name})" for c, name in zip(model, names[stage], strict=True) if c > 0)
        inside = [model @ features(network_of(r), stage) / r["stages"][stage]["processor_seconds"] - 1 for r in seen]
        print(f"- {stage}: {terms}; largest error on these runs {100 * max(map(abs, inside)):.0f} %")
    print()
    for run in (run for run in runs if run["nodes"] == given.held_back):
        network, rows = network_of(run), []
        for stage in STAGES:
            expected, measured = models[stage] @ features(network, stage), run["stages"][stage]["processor_seconds"]
            rows.append([stage, f"{expected:.1f}", f"{measured:.1f}", f"{100 * (expected / measured - 1):+.0f} %"])
        load = f"load {run['load_before']:.0f} when it began"
        print(f"Held back: {network.nodes:,} nodes, {network.edges:,} edges, {load}.\n")
        show(["stage", "expected, processor s", "measured", "error"], rows)
    plans = {
        "ogbn-papers100M": Network(111_059_956, 1_615_685_872, 128, spread=6.0),
        "10 billion edges": Network(500_000_000, 10_000_000_000, 128, spread=6.0),
    }
    rows = []
    for name, network in plans.items():
        seconds = {stage: models[stage] @ features(network, stage) for stage in STAGES}
        disk = f"{network.dataset_bytes() / GB:.0f} + {kept_bytes(network) / GB:.0f}"
        shared = diffusion(network) / products(network) * seconds["train"]  # the rest is one process's
        times = [hours(seconds["import"]), hours(seconds["train"]), hours(seconds["train"] - shared * 15 / 16)]
        rows.append([name, disk, f"{least_memory(network) / GB:.0f}", *times, hours(seconds["classify"])])
    headers = ["network", "disk GB", "memory GB at least", "import", "train", "on 16 workers", "classify"]
    show(headers, rows)


if __name__ == "__main__":
    main()
