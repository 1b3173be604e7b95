"""A results directory made up by hand: what `fewnode experiment` would have written, without a training."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewnode.experiment.ledger import FILE, Record
from fewnode.experiment.results import LAYOUT

Scores = NDArray[np.float64]
METRICS = ("accuracy", "macro_f1", "weighted_f1")


def part(
    kind: str,
    score: Callable[[str, str, tuple[int, int, int]], Scores | str],
    datasets: Iterable[str] = ("mine",),
    labels: Iterable[str] = ("gpn", "pn"),
    settings: Sequence[tuple[int, int, int]] = ((5, 5, 5),),
    along: str | None = None,
    title: str | None = None,
) -> tuple[dict[str, Any], list[Record]]:
    """A part of a layout and its records; `score` gives seeds x tasks, or the reason why there are none."""
    rows, records = [], []
    for dataset in datasets:
        for label in labels:
            for setting in settings:
                found = score(dataset, label, setting)
                shape = dict(zip(("way", "shot", "query"), setting, strict=True))
                own: list[Record] = []
                for seed, values in enumerate([found] if isinstance(found, str) else found):
                    cell = {"dataset": dataset, "method": label, **shape, "seed": seed, "kind": "score"}
                    own.append(_record(f"{kind} {title} {dataset} {label} {setting} {seed}", cell, values))
                ids = [record.id for record in own]
                rows.append({"label": label, "dataset": dataset, "method": label, **shape, "ids": ids})
                records += own
    return {"kind": kind, "title": title or kind, "along": along, "rows": rows}, records


def _record(name: str, cell: dict[str, Any], values: Any) -> Record:
    versions = {"versions": {"fewnode": "0.1"}, "shared_training": False}
    if isinstance(values, str):
        return Record(id=name, cell=cell, status="impossible", reason=values)
    scores = {metric: np.round(values, 4).tolist() for metric in METRICS}
    spent = {"fit": 2.0, "evaluate": 0.5}
    return Record(id=name, cell=cell, status="done", per_task=scores, seconds=spent, provenance=versions)


def case_part(datasets: Iterable[str], labels: Iterable[str], classes: Sequence[str]) -> tuple[Any, list[Record]]:
    """A case study of random numbers."""
    rng = np.random.default_rng(0)
    layout, records = part("case", lambda *_: rng.random((1, 2)), datasets, labels, title="Case")
    side = 5 * len(classes)
    found = {
        "classes": list(classes),
        "similarity": rng.normal(size=(side, side)).round(3).tolist(),
        "map": {
            "share": [0.5, 0.2],
            "support": rng.normal(size=(side, 2)).round(3).tolist(),
            "prototypes": rng.normal(size=(len(classes), 2)).round(3).tolist(),
            "cloud": rng.normal(size=(8 * side, 2)).round(3).tolist(),
            "cloud_y": np.repeat(range(len(classes)), 40).tolist(),
        },
        "beta": {"degree": list(range(300)), "beta": rng.random(300).round(3).tolist(), "even": 0.2},
        "class_sizes": {"train": [50, 9], "valid": [20], "test": [7]},
    }
    cells = [r.model_copy(update={"cell": {**r.cell, "kind": "case"}, "per_task": {}, "case": found}) for r in records]
    return layout, cells


def write(
    directory: Path, parts: Iterable[tuple[Any, list[Record]]], title: str = "Made up", reported: Any = ()
) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    made = list(parts)
    layout = {"title": title, "parts": [each for each, _ in made], "reported": list(reported)}
    (directory / LAYOUT).write_text(json.dumps(layout))
    lines = [record.to_line() for _, records in made for record in records]
    (directory / FILE).write_text("".join(line + "\n" for line in lines))
    return directory


def noisy(means: dict[str, float], seeds: int = 3, tasks: int = 50, noise: float = 0.05) -> Callable[..., Scores]:
    """Scores around a mean for each method; a task is as hard for every method."""

    def score(dataset: str, label: str, setting: tuple[int, int, int]) -> Scores:
        hard = np.random.default_rng(7).normal(0, 0.15, tasks)
        own = np.random.default_rng(abs(hash_of(label)) % 2**32).normal(0, noise, (seeds, tasks))
        return np.clip(means[label] + hard + own, 0, 1)

    return score


def hash_of(label: str) -> int:
    return sum(ord(c) * 31**i for i, c in enumerate(label))
