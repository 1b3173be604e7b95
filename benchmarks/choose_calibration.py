"""How the temperature's tasks were chosen: calibration error by the classes, ways and number of tasks it is fitted on.

No test class is used: the temperature is fitted on half of the validation classes, with or without the training
classes, and looked at on the other half, in tasks of 2, 5 and 10 ways as far as the classes go.

    python benchmarks/choose_calibration.py amazon_clothing_test20.npz coauthor_cs.npz wikispeedia.npz nell_partial.npz
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
import torch

from fewnode.calibration import calibration_tasks, fit_temperature
from fewnode.datasets import load
from fewnode.episodes import Episode, EpisodeSampler
from fewnode.estimator import Estimator
from fewnode.evaluation import calibration_error
from fewnode.graph import Dataset, Ints
from flagship import split_of

WAYS = (2, 5, 10)


def fitted_on(train: list[Ints], valid: list[Ints]) -> Iterator[tuple[str, list[Episode]]]:
    for what, members in (("validation classes", valid), ("training classes, too", [*train, *valid])):
        yield f"{what}; up to 5 ways, 40 tasks", calibration_tasks(members, min(5, len(members)))
        for count in (13, 40):
            ways = [way for way in WAYS if way <= len(members)]
            tasks = [task for way in ways for task in calibration_tasks(members, way, count=count)]
            yield f"{what}; 2 to 10 ways, {count} tasks each", tasks


def errors(data: Dataset, method: str) -> Iterator[tuple[str, float]]:
    """What the temperature was fitted on, and its error on the other half: halves x modes x ways."""
    model = Estimator(method, 5, 5).fit(data).method_
    train, valid = (EpisodeSampler(data, part, 2, 5, 5).members for part in ("train", "valid"))
    for half in (0, 1):
        known, asked = valid[half::2], valid[1 - half :: 2]
        if min(len(known), len(asked)) < 2:
            continue
        for transductive in (False, True):
            found = {
                what: fit_temperature(model.predict_tasks(data.graph, tasks, transductive), tasks)
                for what, tasks in fitted_on(train, known)
            }
            for way in sorted({min(way, len(asked)) for way in WAYS}):
                tasks = calibration_tasks(asked, way, seed=9)
                answers = model.predict_tasks(data.graph, tasks, transductive)
                for what, temperature in found.items():
                    sure = [temperature(p, task.support_y) for p, task in zip(answers, tasks, strict=True)]
                    yield what, float(calibration_error(sure, tasks))


def table(networks: Sequence[str], splits: Sequence[int], method: str) -> None:
    found: dict[str, list[float]] = defaultdict(list)
    for name in networks:
        for split in splits:
            for what, error in errors(split_of(load(name), split), method):
                found[what].append(error)
    for what, values in found.items():
        high = sum(value > 0.05 for value in values)
        print(
            f"| {method} | {what} | {np.mean(values):.4f} | {max(values):.3f} | {high} of {len(values)} |", flush=True
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="+")
    parser.add_argument("--splits", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--methods", nargs="+", default=["gpn-plus", "propagation"])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print("| method | fitted on | mean error | largest | above 0.05 |\n|---|---|---|---|---|")
    for method in arguments.methods:
        table(arguments.networks, arguments.splits, method)


if __name__ == "__main__":
    main()
