"""gpn-plus against the others: networks x class splits x settings, paired on the same tasks, in both modes.

A split is the file's own or drawn by a seed with as many classes in each part. Each line of --out is one model in one
setting; --table prints the comparison from such a file.

    python benchmarks/flagship.py ../shared/data/*.npz debian --out flagship.jsonl
    python benchmarks/flagship.py --table flagship.jsonl
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

import fewnode
from fewnode.dataset import ClassSplit, Dataset
from fewnode.episodes import EpisodeSampler
from fewnode.errors import FewnodeError
from fewnode.estimator import Estimator
from fewnode.evaluation import evaluate
from fewnode.report.names import written
from fewnode.scoring.interval import Interval, interval

OPTIONS: dict[str, dict[str, Any]] = {"propagation, no graph": {"steps": 0}}
"""Rows of the table that are a method with options; the method's name is what stands before the comma."""
SHOTS, QUERY, TASKS = (1, 3, 5), 10, 500


def split_of(data: Dataset, seed: int) -> Dataset:
    """The dataset with its own split (seed 0), or with its classes dealt anew into parts of the same size."""
    if seed == 0:
        return data
    parts = [data.split.part(name) for name in ("train", "valid", "test")]
    order = np.random.default_rng(seed).permutation([c for part in parts for c in part]).tolist()
    ends = np.cumsum([len(part) for part in parts])[:-1]
    return replace(data, split=ClassSplit(*(tuple(sorted(part.tolist())) for part in np.split(np.array(order), ends))))


def settings(data: Dataset) -> Iterator[tuple[int, int, int]]:
    """Ways, shots and queries that the test classes allow."""
    for way in (5, 10):
        for shot in SHOTS:
            for query in (QUERY, 8, 5):
                try:
                    EpisodeSampler(data, "test", way, shot, query)
                except FewnodeError:
                    continue
                yield way, shot, query
                break


def fitted(row: str, data: Dataset, shot: int, features: str | None) -> tuple[Estimator, float, float]:
    start, cpu = time.perf_counter(), time.process_time()
    way = min(5, len(data.split.train))
    model = Estimator(row.split(",")[0], way, shot, features=features, **OPTIONS.get(row, {}))
    model.fit(data)
    return model, time.perf_counter() - start, time.process_time() - cpu


def run(source: str, rows: Sequence[str], splits: Sequence[int], features: str | None, out: Path) -> None:
    whole = fewnode.load(source)
    for seed in splits:
        data = split_of(whole, seed)
        for row in rows:
            models: dict[int, tuple[Estimator, float, float]] = {}
            for way, shot, query in settings(data):
                key = 5 if row == "gpn-plus" or row.startswith(("deepwalk", "node2vec")) else shot
                if key not in models:
                    models[key] = fitted(row, data, key, features)
                model, seconds, cpu = models[key]
                record = {"network": data.name, "split": seed, "method": row, "way": way, "shot": shot, "query": query}
                record |= {"fit_seconds": round(seconds, 1), "fit_cpu_seconds": round(cpu, 1)}
                for mode, queries in modes(row):
                    asked = {"transductive": mode, "queries": queries, "open_set": (mode, queries) == modes("")[0]}
                    if row not in ("gpn-plus", "propagation"):
                        asked["open_set"] = False
                    result = evaluate(model, data, way, shot, query, TASKS, **asked)
                    name = f"{'transductive' if mode else 'inductive'} {queries}"
                    record[name] = {
                        "accuracy": [round(a, 4) for a in result.per_task["accuracy"][0].tolist()],
                        "ece": round(result.ece, 4),
                        "auroc": round(result["auroc"].mean, 4) if "auroc" in result.per_task else None,
                    }
                with out.open("a") as file:
                    file.write(json.dumps(record) + "\n")
                print(
                    row,
                    data.name,
                    seed,
                    way,
                    shot,
                    {k: round(float(np.mean(v["accuracy"])), 3) for k, v in record.items() if isinstance(v, dict)},
                    flush=True,
                )


def modes(row: str) -> list[tuple[bool, str]]:
    both = [(False, "balanced"), (False, "long-tail"), (True, "balanced"), (True, "long-tail")]
    return both if row in ("gpn-plus", "propagation", "") else both[:1]


def table(path: Path) -> str:
    """Markdown: accuracy of each method, and the flagship's lead over it with its interval over tasks and splits."""
    cells: dict[tuple[Any, ...], dict[str, dict[int, np.ndarray]]] = defaultdict(lambda: defaultdict(dict))
    for line in path.read_text().splitlines():
        record = json.loads(line)
        for name, value in record.items():
            if isinstance(value, dict):
                key = (record["network"], record["way"], record["shot"], name)
                cells[key][record["method"]][record["split"]] = np.array(value["accuracy"])
    lines = ["| network | setting | mode | method | accuracy | GPN+ ahead by |", "|---|---|---|---|---|---|"]
    for (network, way, shot, mode), methods in cells.items():
        ours = methods["gpn-plus"]
        for method, per_split in methods.items():
            mean = 100 * np.mean([scores.mean() for scores in per_split.values()])
            ahead = ""
            if method != "gpn-plus" and ours.keys() >= per_split.keys():
                gap = np.concatenate([ours[s] - per_split[s] for s in per_split])[None]
                ahead = str(Interval(interval(gap).mean, interval(gap).ci95))
            lines.append(f"| {network} | {way}-way {shot}-shot | {mode} | {written(method)} | {mean:.1f} | {ahead} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*")
    parser.add_argument("--methods", default="gpn-plus;propagation;propagation, no graph")
    parser.add_argument("--splits", default="0,1,2")
    parser.add_argument("--features")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    if options.table:
        print(table(options.table))
        return
    torch.set_num_threads(1)
    for network in options.networks:
        run(
            network,
            options.methods.split(";"),
            [int(s) for s in options.splits.split(",")],
            options.features,
            options.out,
        )


if __name__ == "__main__":
    main()
