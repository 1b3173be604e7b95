"""The three hottest steps of a training episode against what the machine can do, one thread, in one run.

The bound is the larger of bytes / bandwidth and operations / peak. An entry of a sparse row moves itself (8 bytes) and
the row of W it points to (128), which comes from the second-level cache: there is no reuse to be had. So the bandwidth
of the two products is that of a copy within 1 MB, the size of W; Adam's is that of a copy within 8 MB, what it reads
and writes. Both are faster than memory, so the bounds are strict. Peak is that of a large matrix product.

    python benchmarks/limit.py
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import numpy as np
import torch

from fewnode.bench.formulations import Ours, initial_networks
from fewnode.bench.networks import SIZES, network
from fewnode.engine import loops
from fewnode.episodes import EpisodeSampler
from fewnode.gpn import Batch
from fewnode.train import step


def best(work: Callable[[], object], repeat: int = 60) -> float:
    work()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def bandwidth(size: int) -> float:
    """Bytes a second, read and written, of a copy within so many bytes."""
    source, target = torch.ones(size // 8), torch.ones(size // 8)
    return size / best(lambda: target.copy_(source))


def peak() -> float:
    """Floating-point operations a second."""
    a, b = torch.rand(768, 768), torch.rand(768, 768)
    return 2 * 768**3 / best(lambda: a @ b, 20)


def main() -> None:
    torch.set_num_threads(1)
    data = network(SIZES["clothing"])
    ours = Ours(data, initial_networks(data))
    train = EpisodeSampler(data, "train", 5, 5)
    ours.episode(train, 0)
    g, w = ours.engine.fields, ours.model.encoder.weight[0].detach().numpy()
    x, adj = g.lean
    task = train[0]
    nodes = np.concatenate([task.support, task.query])
    _, around, _ = loops.neighbours(g.adj.arrays, nodes, g.place)
    _, ball, _ = loops.neighbours(adj.arrays, around, g.place, True)
    start, stop, indices, values = x.arrays
    rows = (start[ball], stop[ball], indices, values)
    entries = int((rows[1] - rows[0]).sum())
    product = loops.multiply(*rows, w)
    gradients = [torch.rand_like(p) for p in ours.optimizer.parameters]
    moved = sum(p.numel() * 4 for p in gradients)
    wide = 4 * w.shape[1]
    steps = {
        "X W, the rows of the ball": (
            lambda: loops.multiply(*rows, w),
            1 << 20,
            entries * (8 + wide) + product.nbytes,
            2 * entries * w.shape[1],
        ),
        "X' G, its derivative": (
            lambda: loops.multiply_transposed(*rows, product, w.shape[0]),
            1 << 20,
            entries * (8 + 2 * wide) + product.nbytes + w.nbytes,
            2 * entries * w.shape[1],
        ),
        "Adam": (lambda: ours.optimizer.step(gradients), 8 << 20, 7 * moved, 12 * moved // 4),
    }
    found: dict[str, dict[str, float]] = {}
    for _ in range(3):  # bandwidth and peak between the steps: other work on the machine slows all of them down
        flops = peak()
        for name, (work, within, size, operations) in steps.items():
            rate, seconds = bandwidth(within), best(work)
            bound = max(size / rate, operations / flops)
            row = {"ms": 1e3 * seconds, "bound_ms": 1e3 * bound, "times": seconds / bound, "gb_a_second": rate / 1e9}
            found[name] = min(found.get(name, row), row, key=lambda r: r["ms"])
    whole = min(timed(ours, train, t) for t in range(1, 200))
    shown = {"gflops": flops / 1e9, "steps": found, "episode_ms": 1e3 * whole}
    print(json.dumps({**shown, "batch_of_8": _batch_share(ours, train)}, indent=1))


def timed(ours: Ours, train: EpisodeSampler, t: int) -> float:
    start = time.perf_counter()
    ours.episode(train, t)
    return time.perf_counter() - start


def _batch_share(ours: Ours, train: EpisodeSampler) -> float:
    """How many times as long as a step on one episode a step on 8 takes: the best of each, by turns."""

    best = {1: float("inf"), 8: float("inf")}
    for t in range(60):
        for size in best:
            batch = Batch([train[t * size + i] for i in range(size)])
            start = time.perf_counter()
            step(
                ours.model, ours.optimizer, lambda k, b=batch: ours.engine.loss_and_gradients(ours.model, b, 0.5, k), t
            )
            best[size] = min(best[size], time.perf_counter() - start)
    return best[8] / best[1]


if __name__ == "__main__":
    main()
