"""How cost grows with the network at a fixed degree, from 10^4 to 10^7 edges.

Of GPN+: a ready model, an answer, memory; mean degree 10 and 64 dense attributes. Of GPN: a training episode,
preparation, memory; mean degree 4 and 1,000 sparse attributes. Each size in a process of its own. Exponents are fitted
on logarithms; 0 is flat, 1 is linear.

    python benchmarks/growth.py --plot docs/growth-plus.svg
    python benchmarks/growth.py --method gpn --plot docs/growth.svg
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

DEGREE, ATTRIBUTES, NON_ZEROS = 4, 1_000, 16
NAMES = {
    "gpn-plus": {"ready_s": "a ready model, s", "answer_ms": "an answer, ms", "memory_mb": "memory, MB"},
    "gpn": {"episode_ms": "a training episode, ms", "preparation_s": "preparation, s", "memory_mb": "memory, MB"},
}


def measure_plus(edges: int) -> dict[str, float]:
    from fewnode.bench.plus import measure

    found = measure("fewnode", edges // 5, 64)
    return {
        "edges": edges,
        "ready_s": found["ready"],
        "answer_ms": 1000 * found["answer"],
        "memory_mb": found["peak_mb"],
    }


def measure(edges: int) -> dict[str, float]:
    import torch

    torch.set_num_threads(1)
    from fewnode.bench.formulations import Ours, initial_networks
    from fewnode.bench.networks import SIZES, Size, network
    from fewnode.bench.run import resident
    from fewnode.engine.fields import ReceptiveFields
    from fewnode.episodes import EpisodeSampler

    tiny = network(SIZES["tiny"])  # what is compiled or imported when first used is not the network's
    Ours(tiny, initial_networks(tiny)).episode(EpisodeSampler(tiny, "train", 5, 5), 0)
    before = resident("VmRSS")
    size = Size(2 * edges // DEGREE, edges, ATTRIBUTES, (10, 5, 5), spread=0.5, non_zeros=NON_ZEROS)
    data = network(size)
    loaded = resident("VmRSS") - before
    train = EpisodeSampler(data, "train", 5, 5)
    preparing = []
    for _ in range(3):
        start = time.process_time()
        ready = ReceptiveFields.of(data.graph).lean  # which is built when it is first asked for
        preparing.append(time.process_time() - start)
        del ready
    ours = Ours(data, initial_networks(data))
    for t in range(20):
        ours.episode(train, t)
    times = []
    for t in range(20, 320):
        start = time.process_time()
        ours.episode(train, t)
        times.append(time.process_time() - start)
    held = resident("VmRSS") - before
    return {
        "edges": edges,
        "episode_ms": 1000 * float(np.median(times)),
        "preparation_s": min(preparing),
        "memory_mb": held,
        "network_mb": loaded,
    }


def exponent(rows: list[dict[str, float]], what: str) -> float:
    """The slope of log cost against log edges."""
    edges, cost = (np.log([row[key] for row in rows]) for key in ("edges", what))
    return float(np.polyfit(edges, cost, 1)[0])


def draw(rows: list[dict[str, float]], slopes: dict[str, float], names: dict[str, str]) -> str:
    from matplotlib.figure import Figure

    from fewnode.report.figures import svg

    figure = Figure(figsize=(8, 2.6), layout="constrained")
    for place, (what, name) in enumerate(names.items()):
        ax = figure.add_subplot(1, 3, place + 1)
        ax.loglog([row["edges"] for row in rows], [row[what] for row in rows], "o-", color="#4477aa", ms=4)
        ax.set(xlabel="edges", title=f"{name}: exponent {slopes[what]:.2f}")
        ax.title.set_size(9)
        if what in ("episode_ms", "answer_ms"):
            ax.set_ylim(0.1, 100)
    return svg(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=int, help="Measure this size alone, in this process.")
    parser.add_argument("--method", default="gpn-plus", choices=tuple(NAMES))
    parser.add_argument("--largest", type=float, default=1e7)
    parser.add_argument("--plot", type=Path)
    arguments = parser.parse_args()
    if arguments.edges:
        print(json.dumps((measure_plus if arguments.method == "gpn-plus" else measure)(arguments.edges)))
        return
    rows = []
    for edges in np.geomspace(1e4, arguments.largest, int(2 * np.log10(arguments.largest / 1e4)) + 1).astype(int):
        command = [sys.executable, __file__, "--edges", str(edges), "--method", arguments.method]
        done = subprocess.run(command, capture_output=True, check=True)
        rows.append(json.loads(done.stdout))
        print(rows[-1], file=sys.stderr, flush=True)
    names = NAMES[arguments.method]
    slopes = {what: exponent(rows, what) for what in names}
    if arguments.plot:
        arguments.plot.write_text(draw(rows, slopes, names), encoding="utf-8")
    print(json.dumps({"exponents": slopes, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
