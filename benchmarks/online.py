"""New nodes of a running GPN+ service: how close to embedding everything again, how quick, and a feed under load.

    python benchmarks/online.py --folder /tmp/online              # all of it, on Debian
    python benchmarks/online.py --folder /tmp/online --part feed  # one part: close, rate or feed

Packages are taken out of Debian beforehand, the model is fitted without them, and they are attached one after another.
The folder keeps the network without them and its model, so that a second call does not fit again.
"""

from __future__ import annotations

import argparse
import http.client
import json
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import fewnode
from fewnode.dataset import Dataset
from fewnode.graph import Graph
from fewnode.storage.io import load_dataset, save_dataset

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from service import TOKEN, anew, serving

CLASSES, SHOTS, EDGES = 10, 5, 1000


class Asker:
    """One connection that stays open."""

    def __init__(self, port: int) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def ask(self, path: str, body: Any, method: str = "POST") -> tuple[int, Any, float]:
        """The status, the answer and the seconds that it took."""
        headers, start = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}, time.perf_counter()
        self.connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        response = self.connection.getresponse()
        return response.status, json.loads(response.read()), time.perf_counter() - start


@contextmanager
def asker(folder: Path, *options: object) -> Iterator[Asker]:
    """A service of the model, with an empty state."""
    with tempfile.TemporaryDirectory() as state:
        path = Path(state) / "state.sqlite"
        with serving(folder / "run", "-q", "--state", path, *options, start=anew) as server:
            yield Asker(server.port)


def prepared(folder: Path, count: int) -> tuple[Dataset, list[str], Dataset]:
    """Debian, the names of packages that are taken out, and the network without them, with a fitted model."""
    data = fewnode.load("debian")
    taken = np.sort(np.random.default_rng(0).choice(data.graph.n, count, replace=False))
    if not (folder / "run" / "model.json").exists():
        kept = np.setdiff1d(np.arange(data.graph.n), taken)
        relations = [replace(relation, adj=relation.adj[kept][:, kept]) for relation in data.graph.relations]
        graph = Graph.from_relations(relations, data.graph.x[kept], directed=data.graph.directed)
        names = tuple(data.node_name(int(i)) for i in kept)
        graph = replace(graph, blocks=data.graph.blocks)
        save_dataset(replace(data, graph=graph, y=data.y[kept], node_names=names), folder / "data")
        model = fewnode.Estimator("gpn-plus").fit(load_dataset(folder / "data"))
        model.trained_["data"]["path"] = str(folder / "data")
        model.save(folder / "run")
    return data, [data.node_name(int(i)) for i in taken], load_dataset(folder / "data")


def body_of(data: Dataset, package: str, name: str, there: set[str]) -> dict[str, Any]:
    """A package as `POST /api/nodes` takes it, with its edges to those that are there."""
    graph, node, features = data.graph, data.node(package), data.feature_names or ()
    row, edges = (slice(*matrix.indptr[node : node + 2]) for matrix in (graph.x, graph.adj))
    words = {features[c]: float(v) for c, v in zip(graph.x.indices[row], graph.x.data[row], strict=True)}
    near = [data.node_name(int(v)) for v in graph.adj.indices[edges]]
    return {"nodes": [{"node": name, "attributes": words, "edges": [other for other in near if other in there][:EDGES]}]}


def supports(data: Dataset, seed: int) -> dict[str, list[str]]:
    """Some test classes with a few nodes each."""
    draw, found = np.random.default_rng(seed), {}
    large = [c for c in data.split.test if (data.y == c).sum() >= SHOTS]
    for c in draw.choice(large, min(CLASSES, len(large)), replace=False):
        nodes = draw.choice(np.flatnonzero(data.y == c), SHOTS, replace=False)
        found[data.class_names[c]] = [data.node_name(int(i)) for i in nodes]
    return found


def with_classes(service: Asker, part: Dataset) -> None:
    for name, nodes in supports(part, 0).items():
        assert service.ask(f"/api/classes/{name}", {"support": nodes}, "PUT")[0] == 200


def milliseconds(seconds: list[float]) -> str:
    p50, p99, most = np.percentile(np.array(seconds) * 1e3, [50, 99, 100])
    return f"p50 {p50:.1f} ms, p99 {p99:.1f} ms, longest {most:.0f} ms; {len(seconds) / sum(seconds):.0f} a second"


def attached(service: Asker, data: Dataset, names: list[str], part: Dataset) -> list[float]:
    there, took = set(part.node_names or ()), []
    for name in names:
        status, answer, seconds = service.ask("/api/nodes", body_of(data, name, name, there))
        assert status == 200, answer
        took.append(seconds)
        there.add(name)
    return took


def close(folder: Path, data: Dataset, names: list[str], part: Dataset) -> None:
    """Answers about attached packages beside those of the same model on the whole network, which embeds them anew."""
    draw = np.random.default_rng(1)
    old = [part.node_name(int(i)) for i in draw.choice(part.graph.n, len(names), replace=False)]
    with asker(folder) as service, asker(folder, "--data", "debian") as whole:
        attached(service, data, names, part)
        for kind, asked in (("attached packages", names), ("as many that were there", old)):
            for closed in (False, True):
                same, apart = [], []
                for seed in range(10):
                    body = {"nodes": asked, "support": supports(part, seed), "explain": False, "closed_set": closed}
                    now, fresh = (one.ask("/api/classify", body)[1] for one in (service, whole))
                    for a, b in zip(now["results"], fresh["results"], strict=True):
                        same.append(a["class"] == b["class"])
                        apart.append(np.abs(np.subtract(a["probabilities"], b["probabilities"])).max())
                print(
                    f"{kind}, {'closed set' if closed else 'as served'}, {len(same):,} answers: "
                    f"{100 * np.mean(same):.2f} % of labels the same; the probability that differs most differs by "
                    f"{np.mean(apart):.4f} on average, by {np.percentile(apart, 95):.4f} in 1 of 20"
                )


def rate(folder: Path, data: Dataset, names: list[str], part: Dataset, a_second: float = 100) -> None:
    """Each after the last one's answer, then at a fixed rate, where time counts from when it is due."""
    with asker(folder) as service:
        with_classes(service, part)
        half, there, took = len(names) // 2, set(part.node_names or ()), []
        print(f"one after another: {milliseconds(attached(service, data, names[:half], part))}")
        bodies, begin = [body_of(data, name, name, there) for name in names[half:]], time.perf_counter()
        for i, body in enumerate(bodies):
            due = begin + i / a_second
            time.sleep(max(0.0, due - time.perf_counter()))
            assert service.ask("/api/nodes", body)[0] == 200
            took.append(time.perf_counter() - due)
        print(f"at {a_second:.0f} a second: {milliseconds(took)}")


def feed(folder: Path, data: Dataset, part: Dataset, count: int) -> None:
    """Copies of packages with their edges, one after another, while nodes are classified all the time."""
    draw, there = np.random.default_rng(2), set(part.node_names or ())
    copied = [part.node_name(int(i)) for i in draw.choice(part.graph.n, count)]
    asked = [part.node_name(int(i)) for i in draw.choice(part.graph.n, 20, replace=False)]
    with asker(folder) as service:
        with_classes(service, part)
        classifier, took, wrong, done = Asker(service.connection.port), [], [], threading.Event()
        first = classifier.ask("/api/classify", {"nodes": asked})[1]["results"]

        def classify() -> None:
            while not done.wait(0.01):
                status, answer, seconds = classifier.ask("/api/classify", {"nodes": asked})
                took.append(seconds)
                for was, now in zip(first, answer["results"], strict=True) if status == 200 else ():
                    moved = np.abs(np.subtract(was["probabilities"], now["probabilities"])).max()
                    if now["node"] != was["node"] or (now["class"] != was["class"] and moved > 0.1):
                        wrong.append(now["node"])

        thread = threading.Thread(target=classify)
        thread.start()
        spent = []
        for i, name in enumerate(copied):
            status, answer, seconds = service.ask("/api/nodes", body_of(data, name, f"copy {i} of {name}", there))
            assert status == 200, answer
            spent.append(seconds)
        done.set()
        thread.join()
        print(f"a feed of {count:,} nodes: {milliseconds(spent)}")
        print(f"meanwhile {len(took):,} classify requests: {milliseconds(took)}; wrong: {len(wrong)} {wrong[:3]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--part", choices=("close", "rate", "feed", "all"), default="all")
    parser.add_argument("--taken", type=int, default=1000)
    parser.add_argument("--feed", type=int, default=10_000)
    given = parser.parse_args()
    whole, out, rest = prepared(given.folder, given.taken)
    if given.part in ("close", "all"):
        close(given.folder, whole, out, rest)
    if given.part in ("rate", "all"):
        rate(given.folder, whole, out, rest)
    if given.part in ("feed", "all"):
        feed(given.folder, whole, rest, given.feed)


if __name__ == "__main__":
    main()
