"""A cost model of import, propagation, training and classification, fitted on runs of `benchmarks/scale.py`.

    python benchmarks/cost_model.py docs/scale-runs.json --held-back 5000000

Bytes are counted; processor seconds are fitted, with coefficients that are not negative and relative errors that count
alike. What is read at random costs more the larger the array is that it is read from, level of cache by level: hence
logarithms of the number of nodes. The run with so many nodes is held back: the model has not seen it, and was fixed
before it was made. Then come plans for two networks that no machine here could hold. The text goes into docs/scale.md
as it is printed.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import nnls

HIDDEN, OUT = 32, 16
SUPPORT, QUERY, EPISODES = 25, 25, 300
STAGES = ("import", "propagate", "train", "classify")
GB = 2**30
NEAR = 100_000
"""Nodes whose numbers the caches of a core hold."""


@dataclass(frozen=True)
class Network:
    """n nodes, so many undirected edges, so many attributes; `spread` is <k²>/<k>², 1 if all degrees are equal."""

    nodes: int
    edges: int
    width: int
    spread: float = 1.28  # of the generator: exp(0.5²)

    @property
    def arcs(self) -> int:
        return 2 * self.edges

    @property
    def degree(self) -> float:
        return self.arcs / self.nodes

    @property
    def index(self) -> int:
        """Bytes of a column number."""
        return 4 if self.arcs + self.nodes < 2**31 else 8

    @property
    def rows(self) -> float:
        """Rows that an episode reads: P of one hop of S and Q, X of two hops of S."""
        one = (SUPPORT + QUERY) * (self.degree + 1)
        return min(one + SUPPORT * self.degree * self.degree * self.spread, 2.0 * self.nodes)

    def dataset_bytes(self) -> float:
        return self.index * (self.arcs + self.nodes) + 4 * self.nodes * self.width + 8 * self.nodes

    def prepared_bytes(self) -> float:
        return (self.index + 4) * (self.arcs + self.nodes) + self.index * self.nodes + 4 * self.nodes * self.width

    def features(self, stage: str) -> list[float]:
        """What the time of a stage is linear in, in millions; the first is the start of the process."""
        n, a, d = self.nodes / 1e6, self.arcs / 1e6, self.width
        far = np.log2(self.nodes / NEAR)
        if stage == "import":
            return [1, a * far, n * d]
        if stage == "propagate":
            return [1, (a + n * d) * far, a * d]
        if stage == "train":
            return [1, (a + n * d) * far, EPISODES * self.rows * d / 1e6]
        return [1, n, a * far]

    def step_flops(self) -> float:
        """Multiply-adds of an episode, forwards and twice backwards."""
        return 3 * self.rows * self.width * HIDDEN

    def step_bytes(self) -> float:
        """Read from disk or page cache."""
        return 4 * self.rows * self.width + (self.index + 4) * self.rows

    def network_bytes(self, workers: int) -> float:
        """Of a step: weights out and gradients back, for each worker."""
        return 2 * 4 * workers * (self.width * (HIDDEN + 1) + HIDDEN + HIDDEN * OUT + OUT + 5)


def fit(runs: list[dict], stage: str) -> np.ndarray:
    rows = np.array([network_of(run).features(stage) for run in runs])
    seconds = np.array([run["stages"][stage]["processor_seconds"] for run in runs])
    return nnls(rows / seconds[:, None], np.ones(len(runs)))[0]


def network_of(run: dict) -> Network:
    return Network(run["nodes"], run["edges"], run["width"])


def show(headers: list[str], rows: list[list[str]]) -> None:
    print("| " + " | ".join(headers) + " |")
    print("|" + "---|" * len(headers))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def hours(seconds: float) -> str:
    return (
        f"{seconds:.0f} s"
        if seconds < 600
        else f"{seconds / 60:.0f} min"
        if seconds < 7200
        else f"{seconds / 3600:.1f} h"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--held-back", type=int, default=5_000_000)
    given = parser.parse_args()
    runs = json.loads(given.runs.read_text())
    seen = [run for run in runs if run["nodes"] != given.held_back]
    held = [run for run in runs if run["nodes"] == given.held_back]
    models = {stage: fit(seen, stage) for stage in STAGES}

    print(f"Processor seconds, fitted on {len(seen)} runs of up to {max(r['nodes'] for r in seen):,} nodes. Here n are")
    print("millions of nodes, a = 2E arcs, d is the width, r are rows an episode,")
    print(f"and l doublings from {NEAR:,} nodes to all:\n")
    names = {
        "import": ("start", "a l", "n d"),
        "propagate": ("start", "(a + n d) l", "a d"),
        "train": ("start", "(a + n d) l", "300 r d"),
        "classify": ("start", "n", "a l"),
    }
    for stage, model in models.items():
        terms = " + ".join(f"{c:.3g} ({name})" for c, name in zip(model, names[stage], strict=True) if c > 0)
        inside = [model @ network_of(r).features(stage) / r["stages"][stage]["processor_seconds"] - 1 for r in seen]
        print(f"- {stage}: {terms}; largest error on these runs {100 * max(map(abs, inside)):.0f} %")
    print()
    largest = max(seen, key=lambda run: run["nodes"])
    beyond = []
    for stage in STAGES:
        model = fit([run for run in seen if run is not largest], stage)
        error = model @ network_of(largest).features(stage) / largest["stages"][stage]["processor_seconds"] - 1
        beyond.append(f"{stage} {100 * error:+.0f} %")
    print(f"Fitted without the largest of them, with {largest['nodes']:,} nodes, it errs there: {', '.join(beyond)}.\n")
    for run in held:
        network, rows = network_of(run), []
        for stage, model in ((stage, models[stage]) for stage in STAGES if stage in run["stages"]):
            expected, measured = model @ network.features(stage), run["stages"][stage]["processor_seconds"]
            rows.append([stage, f"{expected:.1f}", f"{measured:.1f}", f"{100 * (expected / measured - 1):+.0f} %"])
        load = f"load {run['load_before']:.0f} when it began"
        print(f"Held back: {network.nodes:,} nodes, {network.edges:,} edges, {load}.\n")
        show(["stage", "expected, processor s", "measured", "error"], rows)
    kept = (network.dataset_bytes() + network.prepared_bytes()) / GB
    print(f"Dataset and prepared record of that network: {kept:.2f} GB counted.\n")

    plans = {
        "ogbn-papers100M": Network(111_059_956, 1_615_685_872, 128, spread=6.0),
        "10 billion edges": Network(500_000_000, 10_000_000_000, 128, spread=6.0),
    }
    rows = []
    for name, network in plans.items():
        seconds = {stage: models[stage] @ network.features(stage) for stage in STAGES}
        held = 4 * network.nodes * (OUT + 10)  # the layer that is gathered from; degrees, labels, numbering
        rows.append(
            [
                name,
                f"{network.dataset_bytes() / GB:.0f} + {network.prepared_bytes() / GB:.0f}",
                f"{held / GB:.0f}",
                hours(seconds["import"]),
                hours(seconds["propagate"]),
                f"{hours(seconds['propagate'] / 16)}",
                f"{network.rows:,.0f} rows, {network.step_bytes() / 2**20:.0f} MB",
                hours(seconds["train"]),
                hours(seconds["classify"]),
            ]
        )
    headers = [
        "network",
        "disk GB",
        "memory GB at least",
        "import",
        "propagate",
        "on 16 workers",
        "an episode",
        "train",
    ]
    show([*headers, "classify"], rows)
    wide = plans["ogbn-papers100M"]
    print(
        f"Over the network: a training step of 16 workers moves {wide.network_bytes(16) / 2**20:.1f} MB; a worker of "
        f"the propagation reads X once for each of its column blocks, {4 * wide.nodes * wide.width / GB:.0f} GB in all."
    )


if __name__ == "__main__":
    main()
