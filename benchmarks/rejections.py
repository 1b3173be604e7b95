"""What truthful rejections do: 30 at random, nearly all of them expected, and 30 of the likeliest strangers.

For each class of a part of the split: average precision, recall and precision at the threshold of 0.5 over all labelled
nodes, from 1 and 5 examples, before and after. Nodes that are rejected are left out of all three.

    python benchmarks/rejections.py debian ../shared/data/coauthor_cs.npz ../shared/data/wikispeedia.npz
"""

from __future__ import annotations

import argparse
import json

import numpy as np
import torch
from numpy.typing import NDArray

import fewnode
from fewnode.dataset import Dataset
from fewnode.estimator import Estimator
from fewnode.graph import Ints
from fewnode.predict.predictions import Answerer
from fewnode.predict.untrained import untrained

REJECTED, SHOTS, NAME = 30, (1, 5), "wanted"


def scores(p: NDArray[np.float64], member: NDArray[np.bool_], asked: NDArray[np.bool_]) -> tuple[float, float, float]:
    """Average precision, recall and precision of the nodes that are asked about."""
    own, truth = p[asked], member[asked]
    order = truth[np.argsort(-own, kind="stable")]
    average = float((np.cumsum(order) / np.arange(1, order.size + 1))[order].mean())
    claimed = own >= 0.5
    right = int((claimed & truth).sum())
    return average, right / int(truth.sum()), right / max(1, int(claimed.sum()))


def compare(
    model: Estimator, data: Dataset, c: int, shot: int, rng: np.random.Generator
) -> dict[str, NDArray[np.float64]]:
    everyone, member = np.arange(data.graph.n), data.y == c
    support: Ints = rng.choice(np.flatnonzero(member), shot, replace=False)
    asked = Answerer(model, data, support, [NAME] * shot)
    before = asked.recogniser.judge(everyone)[0][:, 0]
    strangers = np.flatnonzero(~member & (data.y >= 0))
    wrong = strangers[np.argsort(-before[strangers], kind="stable")[:REJECTED]]
    found = {}
    for kind, no in (("at random", rng.choice(strangers, REJECTED, replace=False)), ("wrong claims", wrong)):
        rest = data.y >= 0
        rest[[*support, *no]] = False
        after = asked.rejecting({NAME: no}).recogniser.judge(everyone)[0][:, 0]
        found[kind] = np.array([scores(before, member, rest), scores(after, member, rest)])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="+")
    parser.add_argument("--part", choices=["valid", "test"], default="test")
    parser.add_argument("--classes", type=int, default=12)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for network in options.networks:
        data = fewnode.load(network)
        model = untrained(data)
        for shot in SHOTS:
            rng = np.random.default_rng(0)
            large = [c for c in data.split.part(options.part) if data.class_sizes[c] > 3 * shot]
            each = [compare(model, data, c, shot, rng) for c in large[: options.classes]]
            for kind in each[0]:
                before, after = np.mean([found[kind] for found in each], axis=0).round(3).tolist()
                names = ("average precision", "recall", "precision")
                told = {name: f"{one:.3f} -> {two:.3f}" for name, one, two in zip(names, before, after, strict=True)}
                print(json.dumps({"network": data.name, "examples": shot, "rejected": kind, **told}), flush=True)


if __name__ == "__main__":
    main()
