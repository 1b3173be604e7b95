"""What training gives GPN: on its training classes and on new ones, by width, and by the number of training classes.

    python benchmarks/transfer.py --data-dir DATA --out rows.jsonl

Accuracy in % on 300 5-way 5-shot tasks, mean over `--seeds` trainings. Dropout is 0.2 throughout. One JSON line for
each row of the study `transfer` in docs/results.toml. Test classes are only asked about; nothing is chosen by them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from fewnode.dataset import Dataset
from fewnode.datasets import BUILT_IN, load
from fewnode.episodes import EpisodeSampler
from fewnode.evaluation import score
from fewnode.methods.gpn import GPN

NETWORKS = ("amazon_clothing_test20", "coauthor_cs", "nell_partial", "wikispeedia", "debian")
WIDE = NETWORKS[:2]
WIDTHS = ((32, 16), (256, 128))
COUNTS = (5, 9, 15, 21)
"""Of training classes of Debian, which has 27."""


def settings() -> Iterator[tuple[str, tuple[int, int], int | None]]:
    """Network, widths, and how many training classes, None for all."""
    yield from ((name, WIDTHS[0], None) for name in NETWORKS)
    yield from (("debian", WIDTHS[0], count) for count in COUNTS)
    yield from ((name, width, None) for width in WIDTHS[1:] for name in WIDE)


def fewer(data: Dataset, count: int | None, seed: int) -> Dataset:
    """With that many of its training classes, drawn by the seed."""
    if count is None:
        return data
    kept = np.random.default_rng(seed).permutation(data.split.train)[:count].tolist()
    return replace(data, split=replace(data.split, train=tuple(kept)))


def accuracies(data: Dataset, width: tuple[int, int], seed: int) -> list[float]:
    """Untrained and trained, each on training classes and on test classes."""
    train, valid = EpisodeSampler(data, "train", 5, 5, seed=seed), EpisodeSampler(data, "valid", 5, 5)
    pools = [EpisodeSampler(data, part, 5, 5, seed=7).take(300) for part in ("train", "test")]
    found = []
    for lr, episodes in ((0.0, 1), (0.005, 300)):  # a rate of 0 leaves the weights as they were drawn
        model = GPN(hidden=width, dropout=0.2, lr=lr, episodes=episodes, seed=seed).fit(data.graph, train, valid)
        found += [100 * float(score(model, data.graph, pool)["accuracy"].mean()) for pool in pools]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for name, width, count in settings():
        data = load(name if name in BUILT_IN else str(arguments.data_dir / f"{name}.npz"))
        found = np.array([accuracies(fewer(data, count, seed), width, seed) for seed in range(arguments.seeds)])
        classes = len(data.split.train) if count is None else count
        row = [name, "{}, {}".format(*width), classes, *found.mean(axis=0).round(1).tolist(), len(found)]
        with arguments.out.open("a") as file:
            file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
