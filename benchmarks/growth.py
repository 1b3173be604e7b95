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
from pathlib import Path

import numpy as np
import torch

from fewnode.engine.fields import ReceptiveFields
from fewnode.episodes import EpisodeSampler
from formulations import Ours, initial_networks
from networks import SIZES, Size, network
from speed import gpn_plus_alone, resident, seconds_of

NAMES = {
    "gpn-plus": {"ready_s": "a ready model, s", "answer_ms": "an answer, ms", "memory_mb": "memory, MB"},
    "gpn": {"episode_ms": "a training episode, ms", "preparation_s": "preparation, s", "memory_mb": "memory, MB"},
}


def gpn_plus(edges: int) -> dict[str, float]:
    found = gpn_plus_alone("fewnode", edges // 5, 64)
    return {"ready_s": found["ready"], "answer_ms": 1000 * found["answer"], "memory_mb": found["peak_mb"]}


def gpn(edges: int) -> dict[str, float]:
    tiny = network(SIZES["tiny"])  # what is compiled or imported when first used is not the network's
    Ours(tiny, initial_networks(tiny)).episode(EpisodeSampler(tiny, "train", 5, 5), 0)
    before = resident("VmRSS")
    data = network(Size(edges // 2, edges, 1_000, (10, 5, 5), spread=0.5, non_zeros=16))
    train = EpisodeSampler(data, "train", 5, 5)
    preparing = min(seconds_of(lambda: ReceptiveFields.of(data.graph).lean) for _ in range(3))
    ours = Ours(data, initial_networks(data))
    times = [seconds_of(lambda t=t: ours.episode(train, t)) for t in range(320)][20:]
    held, episode = resident("VmRSS") - before, 1000 * float(np.median(times))
    return {"episode_ms": episode, "preparation_s": preparing, "memory_mb": held}


def draw(rows: list[dict[str, float]], slopes: dict[str, float], names: dict[str, str]) -> str:
    from matplotlib.figure import Figure

    from fewnode.experiment.figures import svg

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
    parser.add_argument("--edges", type=int, help="measure this size alone, in this process")
    parser.add_argument("--method", default="gpn-plus", choices=tuple(NAMES))
    parser.add_argument("--largest", type=float, default=1e7)
    parser.add_argument("--plot", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.edges:
        print(json.dumps((gpn if given.method == "gpn" else gpn_plus)(given.edges)))
        return
    rows, names = [], NAMES[given.method]
    for edges in np.geomspace(1e4, given.largest, int(2 * np.log10(given.largest / 1e4)) + 1).astype(int).tolist():
        command = [sys.executable, __file__, "--edges", str(edges), "--method", given.method]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        rows.append({"edges": edges, **json.loads(done.stdout)})
        print(rows[-1], file=sys.stderr, flush=True)
    logs = {what: np.log([row[what] for row in rows]) for what in ("edges", *names)}
    slopes = {what: float(np.polyfit(logs["edges"], logs[what], 1)[0]) for what in names}
    if given.plot:
        given.plot.write_text(draw(rows, slopes, names), encoding="utf-8")
    print(json.dumps({"exponents": slopes, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
