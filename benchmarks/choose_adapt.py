"""How the inner loop of MAML, Meta-GNN, GCN and SGC was chosen: mean validation accuracy by its settings.

No test class is used: besides its own split, each network is tried with its training and validation classes dealt
anew among themselves, and the classes that the file keeps for test take part in neither. Training is cut short.

    python benchmarks/choose_adapt.py amazon_clothing_test20.npz coauthor_cs.npz wikispeedia.npz --method maml
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch

from fewnode.datasets import load
from fewnode.episodes import EpisodeSampler
from fewnode.graph import ClassSplit, Dataset
from fewnode.methods import adapt
from fewnode.methods.defaults import options

METHODS = ("maml", "meta-gnn", "gcn", "sgc")


def splits(data: Dataset, count: int) -> Iterator[Dataset]:
    """The dataset as it is, then `count` times with the classes that are not for test dealt anew."""
    yield data
    train, valid = data.split.train, data.split.valid
    y = np.where(np.isin(data.y, train + valid), data.y, -1)
    for seed in range(count):
        yield replace(data, split=ClassSplit.random(y, (len(train), len(valid), 0), seed))


def validate(data: Dataset, method: str, settings: tuple[int, float, str, float], episodes: int) -> float:
    """The best accuracy on validation tasks during a training, in %."""
    steps, inner_lr, scaling, adapt.LENGTH = settings
    train, valid = (EpisodeSampler(data, part, 5, 5) for part in ("train", "valid"))
    chosen = {"steps": steps, "inner_lr": inner_lr, "scaling": scaling, "episodes": episodes}
    model = adapt.Adapt(**{**options(method), **chosen}).fit(data.graph, train, valid)
    return 100 * model.history_.best.accuracy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--method", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--steps", type=int, nargs="+", default=[5, 10, 20])
    parser.add_argument("--inner-lr", type=float, nargs="+", default=[0.1, 0.5, 1.0])
    parser.add_argument("--scaling", nargs="+", default=["l2"])
    parser.add_argument("--length", type=float, nargs="+", default=[10.0])
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--episodes", type=int, default=30)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    data = [split for source in arguments.data for split in splits(load(source), arguments.splits)]
    grid = list(itertools.product(arguments.steps, arguments.inner_lr, arguments.scaling, arguments.length))
    print("| method | steps | inner_lr | scaling | length | validation accuracy, % | of each network and split |")
    print("|---|---|---|---|---|---|---|")
    for method, settings in itertools.product(arguments.method, grid):
        found = [validate(one, method, settings, arguments.episodes) for one in data]
        each = ", ".join(f"{accuracy:.1f}" for accuracy in found)
        print(f"| {method} | {' | '.join(map(str, settings))} | {np.mean(found):.1f} | {each} |", flush=True)


if __name__ == "__main__":
    main()
