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
import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import fewnode
from fewnode.dataset import Dataset
from fewnode.estimator import Estimator, load_model
from fewnode.serve.bodies import Attach, Classify, PutClass
from fewnode.serve.changes import BaseDataset
from fewnode.serve.network import ServedNetwork
from fewnode.serve.session import Session
from fewnode.serve.snapshot import Condition
from fewnode.serve.state import State
from fewnode.serve.store import Store
from fewnode.storage.io import load_dataset, save_dataset
from serve import TOKEN, serving

CLASSES, SHOTS, EDGES = 10, 5, 1000


def prepared(folder: Path, count: int) -> tuple[Dataset, list[str], Dataset]:
    """Debian, the names of packages that are taken out, and the network without them, with a fitted model."""
    data = fewnode.load("debian")
    taken = np.sort(np.random.default_rng(0).choice(data.graph.n, count, replace=False))
    names = [data.node_name(int(i)) for i in taken]
    if not (folder / "run" / "model.json").exists():
        save_dataset(BaseDataset(data).changed(State(removed=frozenset(names))), folder / "data")
        part = load_dataset(folder / "data")
        model = Estimator("gpn-plus").fit(part)
        model.trained_["data"]["path"] = str(folder / "data")
        model.save(folder / "run")
    return data, names, load_dataset(folder / "data")


def body_of(data: Dataset, node: int, name: str, there: set[str]) -> dict[str, Any]:
    """A package as `POST /api/nodes` takes it, with its edges to those that are there."""
    graph, features = data.graph, data.feature_names or ()
    place = slice(graph.x.indptr[node], graph.x.indptr[node + 1])
    said = {features[c]: float(v) for c, v in zip(graph.x.indices[place], graph.x.data[place], strict=True)}
    near = [data.node_name(int(v)) for v in graph.adj.indices[graph.adj.indptr[node] : graph.adj.indptr[node + 1]]]
    return {"node": name, "attributes": said, "edges": [other for other in near if other in there][:EDGES]}


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


def close(folder: Path, data: Dataset, names: list[str], part: Dataset) -> None:
    """Attached one after another in this process; then everything is embedded again, and the answers compared."""
    model, state = load_model(folder / "run"), folder / "close.sqlite"
    for old in folder.glob("close.sqlite*"):
        old.unlink() if old.is_file() else shutil.rmtree(old)
    session = Session(model, part, Store(state, part.sha256), drift_bound=1.0)
    session.refresh.wait()
    for name, nodes in supports(part, 0).items():
        session.put_class(name, PutClass(support=nodes), Condition())
    there, took = set(part.node_names or ()), []
    for name in names:
        body = Attach.model_validate({"nodes": [body_of(data, data.node(name), name, there)]})
        start = time.perf_counter()
        session.attach(body)
        took.append(time.perf_counter() - start)
        there.add(name)
    print(f"in process, {len(names)} nodes attached and answered about: {milliseconds(took)}")
    print(f"drift {session.now.online.drift:.4f}, rows that changed {len(session.now.online.overlay.nodes):,}")
    start = time.perf_counter()
    again = ServedNetwork(model, session.base.changed(session.now.state), Path(tempfile.mkdtemp(dir=folder)) / "again")
    print(f"embedding everything again: {time.perf_counter() - start:.1f} s")
    old = [part.node_name(int(i)) for i in np.random.default_rng(1).choice(part.graph.n, len(names), replace=False)]
    for kind, asked in (("attached nodes", names), ("as many nodes that were there", old)):
        for closed in (False, True):
            same, apart = [], []
            for seed in range(10):
                given = supports(part, seed)
                whole = again.model.recogniser(again.data, [n for own in given.values() for n in own],
                                               [c for c, own in given.items() for _ in own])  # fmt: skip
                fresh, member = whole.judge(asked, closed_set=closed)
                answer = session.classify(Classify(nodes=asked, support=given, explain=False, closed_set=closed))
                label = [whole.classes[c] for c in fresh.argmax(axis=1)]
                if not closed:
                    label = [None if m < 0.5 else name for m, name in zip(member, label, strict=True)]
                same += [a["class"] == b for a, b in zip(answer["results"], label, strict=True)]
                order = [whole.classes.index(name) for name in answer["classes"]]
                online = np.array([each["probabilities"] for each in answer["results"]])
                apart.append(np.abs(online - fresh[:, order]).max(axis=1))
            off = np.concatenate(apart)
            print(
                f"{kind}, {'closed set' if closed else 'as served'}, {len(same):,} answers: "
                f"{100 * np.mean(same):.2f} % of labels the same; the probability that differs most differs by "
                f"{off.mean():.4f} on average, by {np.percentile(off, 95):.4f} in 1 of 20"
            )
    session.store.close()
    start = time.process_time()
    session = Session(model, part, Store(state, part.sha256), drift_bound=1.0)
    rows = 0 if session.now.online.overlay is None else len(session.now.online.overlay.nodes)
    print(f"a restart: {time.process_time() - start:.1f} s of processor time, {rows:,} new rows")
    session.refresh.wait()
    session.store.close()


class Asker:
    """One connection that stays open."""

    def __init__(self, port: int) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def ask(self, path: str, body: Any, method: str = "POST") -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        self.connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        response = self.connection.getresponse()
        return response.status, json.loads(response.read())


def rate(folder: Path, data: Dataset, names: list[str], part: Dataset, a_second: float = 100) -> None:
    """Over HTTP: each after the last one's answer, then at a fixed rate, where time counts from when it is due."""
    there = set(part.node_names or ())
    bodies = []
    for name in names:
        bodies.append({"nodes": [body_of(data, data.node(name), name, there)]})
        there.add(name)
    with serving(folder / "run", None) as (_, port, ready):
        asker = _with_classes(port, part)
        print(f"the service was ready after {ready:.1f} s")
        half, took = len(bodies) // 2, []
        for body in bodies[:half]:
            start = time.perf_counter()
            assert asker.ask("/api/nodes", body)[0] == 200
            took.append(time.perf_counter() - start)
        print(f"over HTTP, one after another, {half} nodes: {milliseconds(took)}; {half / sum(took):.0f} a second")
        took, begin = [], time.perf_counter()
        for i, body in enumerate(bodies[half:]):
            due = begin + i / a_second
            time.sleep(max(0.0, due - time.perf_counter()))
            assert asker.ask("/api/nodes", body)[0] == 200
            took.append(time.perf_counter() - due)
        print(f"over HTTP, at {a_second:.0f} a second: {milliseconds(took)}")


def _with_classes(port: int, part: Dataset) -> Asker:
    asker = Asker(port)
    for name, nodes in supports(part, 0).items():
        assert asker.ask(f"/api/classes/{name}", {"support": nodes}, "PUT")[0] == 200
    while asker.ask("/api/model", None, "GET")[1]["online"]["refreshing"]:
        time.sleep(0.2)
    return asker


def feed(folder: Path, data: Dataset, part: Dataset, count: int) -> None:
    """Copies of packages with their edges, one after another, while nodes are classified all the time."""
    draw, there = np.random.default_rng(2), set(part.node_names or ())
    copied = [part.node_name(int(i)) for i in draw.choice(part.graph.n, count)]
    asked = [part.node_name(int(i)) for i in draw.choice(part.graph.n, 20, replace=False)]
    with serving(folder / "run", None) as (_, port, _ready):
        asker, classifier = _with_classes(port, part), Asker(port)
        first = classifier.ask("/api/classify", {"nodes": asked})[1]["results"]
        took: list[float] = []
        wrong: list[str] = []
        moved: list[float] = []
        done = threading.Event()

        def classify() -> None:
            while not done.is_set():
                start = time.perf_counter()
                status, answer = classifier.ask("/api/classify", {"nodes": asked})
                took.append(time.perf_counter() - start)
                if status == 429:
                    continue
                if status != 200 or [each["node"] for each in answer["results"]] != asked:
                    wrong.append(str(answer)[:200])
                    continue
                for was, now in zip(first, answer["results"], strict=True):
                    moved.append(float(np.abs(np.array(was["probabilities"]) - now["probabilities"]).max()))
                    if was["class"] != now["class"] and moved[-1] > 0.1:
                        wrong.append(f"{was['node']}: {was['class']} became {now['class']}")
                time.sleep(0.01)

        thread = threading.Thread(target=classify)
        thread.start()
        attached, begin = [], time.perf_counter()
        for i, name in enumerate(copied):
            new = body_of(data, data.node(name), f"copy {i} of {name}", there)
            body = {"nodes": [{**new, "edges": new["edges"][:100]}]}
            start = time.perf_counter()
            status, answer = asker.ask("/api/nodes", body)
            attached.append(time.perf_counter() - start)
            assert status == 200, answer
        seconds = time.perf_counter() - begin
        done.set()
        thread.join()
        online = asker.ask("/api/model", None, "GET")[1]["online"]
        print(f"a feed of {count:,} nodes in {seconds:.0f} s, {count / seconds:.0f} a second: {milliseconds(attached)}")
        print(f"meanwhile {len(took):,} classify requests: {milliseconds(took)}; wrong: {len(wrong)} {wrong[:3]}")
        print(f"probabilities moved by {np.mean(moved):.4f} on average, by {max(moved):.3f} at most; {online}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--part", choices=("close", "rate", "feed", "all"), default="all")
    parser.add_argument("--taken", type=int, default=1000)
    parser.add_argument("--feed", type=int, default=10_000)
    args = parser.parse_args()
    torch.set_num_threads(1)
    whole, out, rest = prepared(args.folder, args.taken)
    if args.part in ("close", "all"):
        close(args.folder, whole, out, rest)
    if args.part in ("rate", "all"):
        rate(args.folder, whole, out, rest)
    if args.part in ("feed", "all"):
        feed(args.folder, whole, rest, args.feed)
