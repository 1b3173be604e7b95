"""How many members of a class a truthful labeller finds: from one example and one sentence, a verdict at a time.

"Found" are members that were confirmed, or that are claimed at the threshold of 0.5; precision is the share of members
among all of these. Questions are asked by `fewnode.predict.finding` (doubt), by the highest probability, or at random.

Classes are those of one part of the split whose size is nearest to 500. GPN+ learned from training and validation
classes; how a rejection counts and what is asked was chosen on training classes. So test classes are unseen.

    python benchmarks/labeller.py debian ../shared/data/debian_classes.csv
    python benchmarks/labeller.py ../shared/data/coauthor_cs.npz --ways random

Asked at random, nearly every answer is a rejection that was expected: it must do no harm.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

import fewnode
from fewnode.classes.definitions import Class, Definitions
from fewnode.classes.description import read_classes
from fewnode.dataset import Dataset
from fewnode.estimator import Estimator
from fewnode.graph import Ints
from fewnode.model.recogniser import Recogniser
from fewnode.predict.finding import ask_next
from fewnode.predict.predictions import Answerer
from fewnode.predict.untrained import untrained

SIZE, NAME = 500, "wanted"
REPORTED = (0, 5, 10, 20, 30, 40, 50, 60)


@dataclass
class Session:
    """What the labeller has answered so far."""

    data: Dataset
    model: Estimator
    member: Ints
    text: str | None
    yes: list[int]
    no: list[int] = field(default_factory=list)
    _asked: tuple[int, Answerer] | None = None

    def recogniser(self) -> Recogniser:
        if self._asked is None or self._asked[0] != len(self.yes):
            given = Definitions.of(self.data, {NAME: Class(self.yes, self.text)})
            self._asked = (len(self.yes), Answerer(self.model, self.data, given.support, given.labels, given.rows))
        return self._asked[1].recogniser.rejecting({NAME: self.no})

    def score(self) -> dict[str, float]:
        p = self.recogniser().judge(np.arange(self.data.graph.n))[0][:, 0]
        claimed = p >= 0.5
        right = int(claimed[self.member].sum())
        order = np.isin(np.argsort(-p, kind="stable"), self.member)
        average = (np.cumsum(order) / np.arange(1, order.size + 1))[order].mean()
        return {
            "found": right / self.member.size,
            "precision": right / max(1, int(claimed.sum())),
            "average_precision": float(average),
            "yes": len(self.yes) - 1,
        }


Ask = Callable[[Recogniser, Ints, np.random.Generator], int]


def by_doubt(recogniser: Recogniser, pool: Ints, rng: np.random.Generator) -> int:
    return int(ask_next(recogniser, NAME, pool)[0][0])


def by_probability(recogniser: Recogniser, pool: Ints, rng: np.random.Generator) -> int:
    p = recogniser.judge(np.arange(recogniser.graph.n))[0][pool, 0]
    return int(pool[p.argmax()])


def at_random(recogniser: Recogniser, pool: Ints, rng: np.random.Generator) -> int:
    return int(rng.choice(pool))


WAYS: dict[str, Ask] = {"doubt": by_doubt, "highest probability": by_probability, "random": at_random}


def labelled(session: Session, ask: Ask, verdicts: int, rng: np.random.Generator) -> list[dict[str, float]]:
    """Scores after each of `REPORTED` verdicts."""
    members, found = set(session.member.tolist()), []
    for turn in range(verdicts + 1):
        if turn in REPORTED:
            found.append({"verdicts": turn, **session.score()})
        pool = np.setdiff1d(np.arange(session.data.graph.n), [*session.yes, *session.no])
        node = ask(session.recogniser(), pool, rng)
        (session.yes if node in members else session.no).append(node)
    return found


def nearest_in_size(data: Dataset, part: str, count: int) -> list[str]:
    own = [c for c in data.split.part(part) if data.class_sizes[c]]
    order = sorted(own, key=lambda c: abs(np.log(data.class_sizes[c] / SIZE)))
    return [data.class_names[c] for c in order[:count]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network")
    parser.add_argument("sentences", type=Path, nargs="?", help="Table `class,description`; default: no sentence")
    parser.add_argument("--part", choices=["train", "valid", "test"], default="test")
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--verdicts", type=int, default=60)
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    data = fewnode.load(options.network)
    model, texts = untrained(data), read_classes(options.sentences) if options.sentences else {}
    means: dict[str, list[list[dict[str, float]]]] = {way: [] for way in options.ways}
    for name in nearest_in_size(data, options.part, options.classes):
        member = data.members(data.class_names.index(name))
        for way in options.ways:
            rng = np.random.default_rng(options.seed)
            session = Session(data, model, member, texts.get(name), [int(rng.choice(member))])
            curve = labelled(session, WAYS[way], options.verdicts, rng)
            means[way].append(curve)
            rounded = [{key: round(value, 3) for key, value in point.items()} for point in curve]
            print(json.dumps({"class": name, "members": int(member.size), "way": way, "curve": rounded}), flush=True)
    for way, curves in means.items():
        mean = [
            {key: round(float(np.mean([c[key] for c in points])), 3) for key in points[0]}
            for points in zip(*curves, strict=True)
        ]
        reached = sum(curve[-1]["found"] >= 0.8 for curve in curves)
        print(json.dumps({"way": way, "mean": mean, "80 % found": reached, "classes": len(curves)}), flush=True)


if __name__ == "__main__":
    main()
