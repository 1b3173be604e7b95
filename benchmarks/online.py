"""New nodes of a running GPN+ service: how close to embedding everything again, and how quick.

    python benchmarks/online.py --folder /tmp/online              # all of it, on Debian
    python benchmarks/online.py --folder /tmp/online --part rate  # one part: close or rate

Packages are taken out of Debian beforehand, the model is fitted without them, and they are attached one after another.
The folder keeps the network without them and its model, so that a second call does not fit again.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import fewnode
from fewnode.dataset import Dataset
from fewnode.formats.directory import load_dataset, save_dataset
from fewnode.graph import Graph

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from service import Running, anew, serving

CLASSES, SHOTS, EDGES, RATE = 10, 5, 1000, 100


@contextmanager
def service(folder: Path, *options: object) -> Iterator[Running]:
    """A service of the model, with an empty state."""
    with tempfile.TemporaryDirectory() as state:
        path = Path(state) / "state.sqlite"
        with serving(folder / "run", "-q", "--state", path, *options, start=anew) as running:
            yield running


def prepared(folder: Path, count: int) -> tuple[Dataset, list[str], Dataset]:
    """Debian without kinds of edges, the packages that are taken out, and what is left, for which a model is fitted.

    Those taken out are the last rows of the whole, where `POST /api/nodes` puts them.
    """
    data = fewnode.load("debian")
    taken = np.sort(np.random.default_rng(0).choice(data.graph.n, count, replace=False))
    kept = np.setdiff1d(np.arange(data.graph.n), taken)
    if not (folder / "run" / "model.json").exists():
        for name, rows in (("whole", np.concatenate([kept, taken])), ("data", kept)):
            graph = Graph(data.graph.adj[rows][:, rows], data.graph.x[rows])
            names = tuple(map(data.node_name, rows.tolist()))
            save_dataset(replace(data, graph=graph, y=data.y[rows], node_names=names), folder / name)
        model = fewnode.Estimator("gpn-plus").fit(load_dataset(folder / "data"))
        model.trained_["data"]["path"] = str(folder / "data")
        model.save(folder / "run")
    return load_dataset(folder / "whole"), [data.node_name(int(i)) for i in taken], load_dataset(folder / "data")


def body_of(data: Dataset, name: str, there: set[str]) -> dict[str, Any]:
    """A package as `POST /api/nodes` takes it, with its edges to those that are there."""
    graph, node, features = data.graph, data.node(name), data.feature_names or ()
    row, edges = (slice(*matrix.indptr[node : node + 2]) for matrix in (graph.x, graph.adj))
    words = {features[c]: float(v) for c, v in zip(graph.x.indices[row], graph.x.data[row], strict=True)}
    near = [other for v in graph.adj.indices[edges].tolist() if (other := data.node_name(v)) in there]
    return {"nodes": [{"node": name, "attributes": words, "edges": near[:EDGES]}]}


def supports(data: Dataset, seed: int) -> dict[str, list[str]]:
    """Some test classes with a few nodes each."""
    draw, found = np.random.default_rng(seed), {}
    large = [c for c in data.split.test if (data.y == c).sum() >= SHOTS]
    for c in draw.choice(large, min(CLASSES, len(large)), replace=False):
        nodes = draw.choice(np.flatnonzero(data.y == c), SHOTS, replace=False)
        found[data.class_names[c]] = [data.node_name(int(i)) for i in nodes]
    return found


def milliseconds(seconds: list[float]) -> str:
    p50, p99, most = np.percentile(np.array(seconds) * 1e3, [50, 99, 100])
    return f"p50 {p50:.1f} ms, p99 {p99:.1f} ms, longest {most:.0f} ms"


def attach(running: Running, data: Dataset, names: list[str], there: set[str], rate: float = 0.0) -> list[float]:
    """Seconds of each: from the last answer, or at a rate from when it is due."""
    took, begin = [], time.perf_counter()
    for i, name in enumerate(names):
        body = body_of(data, name, there)
        due = begin + i / rate if rate else time.perf_counter()
        time.sleep(max(0.0, due - time.perf_counter()))
        answer = running.ask("/api/nodes", body)
        assert answer.status == 200, answer.body
        took.append(time.perf_counter() - due)
        there.add(name)
    return took


def close(folder: Path, data: Dataset, names: list[str], part: Dataset) -> None:
    """Answers about attached packages beside those of the same model on the whole network, which embeds them anew."""
    draw = np.random.default_rng(1)
    old = [part.node_name(int(i)) for i in draw.choice(part.graph.n, len(names), replace=False)]
    with service(folder) as grown, service(folder, "--data", folder / "whole") as whole:
        attach(grown, data, names, set(part.node_names or ()))
        for kind, asked in (("attached packages", names), ("as many that were there", old)):
            for closed in (False, True):
                same, apart = [], []
                for seed in range(10):
                    body = {"nodes": asked, "support": supports(part, seed), "closed_set": closed}
                    now, fresh = (running.ask("/api/classify", body).json for running in (grown, whole))
                    for a, b in zip(now["results"], fresh["results"], strict=True):
                        same.append(a["class"] == b["class"])
                        apart.append(np.abs(np.subtract(a["probabilities"], b["probabilities"])).max())
                print(
                    f"{kind}, {'closed set' if closed else 'as served'}, {len(same):,} answers: "
                    f"{100 * np.mean(same):.2f} % of labels the same; the probability that differs most differs by "
                    f"{np.mean(apart):.4f} on average, by {np.percentile(apart, 95):.4f} in 1 of 20"
                )


def rate(folder: Path, data: Dataset, names: list[str], part: Dataset) -> None:
    """Each after the last one's answer, then at a fixed rate, where time counts from when it is due."""
    with service(folder) as running:
        for name, nodes in supports(part, 0).items():
            assert running.ask(f"/api/classes/{name}", {"support": nodes}, "PUT").status == 200
        half, there = len(names) // 2, set(part.node_names or ())
        took = attach(running, data, names[:half], there)
        print(f"one after another: {milliseconds(took)}; {half / sum(took):.0f} a second")
        print(f"at {RATE} a second: {milliseconds(attach(running, data, names[half:], there, RATE))}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--part", choices=("close", "rate", "all"), default="all")
    parser.add_argument("--taken", type=int, default=1000)
    given = parser.parse_args()
    whole, out, rest = prepared(given.folder, given.taken)
    for part in (close, rate):
        if given.part in (part.__name__, "all"):
            part(given.folder, whole, out, rest)


if __name__ == "__main__":
    main()
