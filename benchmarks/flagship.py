"""GPN+ beside Propagation: networks x class splits x settings, paired on the same tasks, in both modes.

A split is the file's own (0) or drawn by a seed with as many classes in each part. Each line of --out is one model in
one setting; --table prints the comparison from such a file.

    python benchmarks/flagship.py DATA/*.npz debian --out flagship.jsonl
    python benchmarks/flagship.py --table flagship.jsonl
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

import fewnode
from fewnode.dataset import ClassSplit, Dataset
from fewnode.episodes import EpisodeSampler
from fewnode.errors import FewnodeError
from fewnode.evaluation import evaluate
from fewnode.model.estimator import Estimator
from fewnode.scores import interval


def split_of(data: Dataset, seed: int) -> Dataset:
    if seed == 0:
        return data
    parts = [data.split.part(name) for name in ("train", "valid", "test")]
    order = np.random.default_rng(seed).permutation([c for part in parts for c in part]).tolist()
    ends = np.cumsum([len(part) for part in parts])[:-1]
    return replace(data, split=ClassSplit(*(tuple(sorted(part.tolist())) for part in np.split(np.array(order), ends))))


def settings(data: Dataset) -> Iterator[tuple[int, int, int]]:
    """Ways, shots and the most queries that the test classes allow."""
    for way, shot in ((way, shot) for way in (5, 10) for shot in (1, 3, 5)):
        for query in (10, 8, 5):
            try:
                EpisodeSampler(data, "test", way, shot, query)
            except FewnodeError:
                continue
            yield way, shot, query
            break


def run(data: Dataset, seed: int, method: str) -> Iterator[dict[str, Any]]:
    models: dict[int, Estimator] = {}
    for way, shot, query in settings(data):
        fit_shot = 5 if method == "gpn-plus" else shot
        if fit_shot not in models:
            models[fit_shot] = Estimator(method, min(5, len(data.split.train)), fit_shot).fit(data)
        record = {"network": data.name, "split": seed, "method": method, "way": way, "shot": shot, "query": query}
        for mode in ("inductive", "transductive"):
            for queries in ("balanced", "long-tail"):
                asked = {"transductive": mode == "transductive", "queries": queries}
                result = evaluate(models[fit_shot], data, way, shot, query, 500, **asked)
                accuracy = result.per_task["accuracy"][0]
                record[f"{mode} {queries}"] = {"accuracy": accuracy.round(4).tolist(), "ece": round(result.ece, 4)}
        yield record


def table(path: Path) -> str:
    """Markdown: accuracy of each method, and the lead of GPN+ over it with its interval over tasks and splits."""
    cells: dict[tuple[Any, ...], dict[str, dict[int, np.ndarray]]] = defaultdict(lambda: defaultdict(dict))
    for record in map(json.loads, path.read_text().splitlines()):
        for name, value in record.items():
            if isinstance(value, dict):
                key = record["network"], f"{record['way']}-way {record['shot']}-shot", name
                cells[key][record["method"]][record["split"]] = np.array(value["accuracy"])
    lines = ["| network | setting | mode | method | accuracy | GPN+ ahead by |", "|---|---|---|---|---|---|"]
    for key, methods in cells.items():
        for method, splits in methods.items():
            mean, ahead = 100 * np.mean([scores.mean() for scores in splits.values()]), ""
            if method != "gpn-plus":
                ahead = str(interval(np.concatenate([methods["gpn-plus"][s] - splits[s] for s in splits])[None]))
            lines.append(f"| {' | '.join(key)} | {method} | {mean:.1f} | {ahead} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*")
    parser.add_argument("--methods", default="gpn-plus;propagation")
    parser.add_argument("--splits", default="0,1,2")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", type=Path)
    given = parser.parse_args()
    if given.table:
        print(table(given.table))
        return
    torch.set_num_threads(1)
    for whole in map(fewnode.load, given.networks):
        for seed in map(int, given.splits.split(",")):
            for method in given.methods.split(";"):
                for record in run(split_of(whole, seed), seed, method):
                    with given.out.open("a") as file:
                        file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
