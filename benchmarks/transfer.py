"""Why GPN falls behind: what it learns on training classes, and how little of that carries over to others.

    python benchmarks/transfer.py ../shared/data/amazon_clothing_test20.npz ../shared/data/coauthor_cs.npz

Accuracy in % on 300 5-way 5-shot tasks of the training classes themselves and of the test classes, for encoders of
several widths: as initialised, with no training at all, and after 300 episodes.
"""

from __future__ import annotations

import argparse

import torch

from fewnode.datasets import load
from fewnode.episodes import EpisodeSampler
from fewnode.evaluation import score
from fewnode.methods.gpn import GPN


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+")
    torch.set_num_threads(1)
    print("| network | encoder | scaling | training | training classes | test classes |\n|---|---|---|---|---|---|")
    for source in parser.parse_args().data:
        data = load(source)
        train, valid = EpisodeSampler(data, "train", 5, 5), EpisodeSampler(data, "valid", 5, 5)
        pools = [EpisodeSampler(data, part, 5, 5, seed=7).take(300) for part in ("train", "test")]
        for scaling in ("raw", "l2"):
            for hidden in ((32, 16), (1024, 512)):
                for rate, name in ((0.0, "none"), (0.005, "300 episodes")):
                    # With a learning rate of 0 nothing is learned: one episode gives the encoder as initialised.
                    episodes = 300 if rate else 1
                    model = GPN(hidden=hidden, scaling=scaling, lr=rate, weight_decay=0.0, episodes=episodes)
                    model.fit(data.graph, train, valid)
                    own, new = (100 * score(model, data.graph, pool)["accuracy"].mean() for pool in pools)
                    widths = ", ".join(map(str, hidden))
                    print(f"| {data.name} | {widths} | {scaling} | {name} | {own:.1f} | {new:.1f} |", flush=True)


if __name__ == "__main__":
    main()
