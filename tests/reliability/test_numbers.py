"""The paper's numbers against slow loops, and properties that hold for every network."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

import oracle
from fewnode.dataset import Dataset
from fewnode.engine.compiled import ENCODER, VALUATOR, Compiled, weight_shapes
from fewnode.engine.fields import ReceptiveFields
from fewnode.episodes import Task
from fewnode.formats.directory import save_dataset
from fewnode.gpn import prototypes
from fewnode.graph import Graph
from fewnode.method import predict_tasks, space_of
from fewnode.methods.gpn import GPN
from graphs import random_graph
from sizes import Figure, sizes

HIDDEN = (5, 4)
Floats = NDArray[np.floating]


def method(graph: Graph, seed: int, **options: object) -> GPN:
    """GPN with random weights, biases among them."""
    gpn = GPN(**{"hidden": HIDDEN, "seed": seed, **options})  # type: ignore[arg-type]
    gpn.idf_ = None
    rng, shapes = np.random.default_rng(seed), weight_shapes(graph.n_features, HIDDEN, True)
    weights = {name: (0.7 * rng.standard_normal(shape)).astype(np.float32) for name, shape in shapes.items()}
    gpn.weights_ = {name: array for name, array in weights.items() if gpn.valuator or name in ENCODER}
    return gpn


def task(graph: Graph, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Support of unequal shots, its classes, and every node as query."""
    k = int(rng.integers(1, graph.n + 1))
    support = rng.permutation(graph.n)[:k]
    way = int(rng.integers(1, min(k, 4) + 1))
    y = np.concatenate([np.arange(way), rng.integers(0, way, k - way)])
    return support, rng.permutation(y), np.arange(graph.n)


def near(graph: Graph) -> list[list[int]]:
    return [graph.adj.indices[graph.adj.indptr[i] : graph.adj.indptr[i + 1]].tolist() for i in range(graph.n)]


def answers(gpn: GPN, graph: Graph, task: Task) -> Floats:
    return predict_tasks(gpn, graph, [task])[0]


def rows(graph: Graph) -> oracle.Rows:
    dense = graph.x.toarray() if sp.issparse(graph.x) else graph.x
    return dense.astype(np.float64).tolist()  # type: ignore[no-any-return]


@sizes(60, 2000, 50_000)
def test_loops_written_from_the_equations_give_the_same(figure: Figure, count: int) -> None:
    worst, isolated, single = 0.0, 0, 0
    for seed in range(count):
        graph, rng = random_graph(seed), np.random.default_rng(seed)
        gpn = method(graph, seed)
        support, y, query = task(graph, rng)
        (ours,) = predict_tasks(gpn, graph, [Task(support, y, query)])
        beta = space_of(gpn, graph).prepare(Task(support, y, query)).beta
        first, second, *bias = (gpn.weights_[name].tolist() for name in ENCODER)
        w, b, a = (gpn.weights_[name].tolist() for name in VALUATOR)
        around, x = near(graph), rows(graph)
        z = oracle.loop_encode(around, x, [first, second], bias)
        given = [value for (value,) in w], b[0], a, gpn.eps
        s = oracle.loop_importance(around, x, *given)
        expected_beta = oracle.loop_beta(s, support.tolist(), y.tolist())
        expected = oracle.loop_probability(z, expected_beta, support.tolist(), y.tolist(), query.tolist())
        assert np.isfinite(ours).all()
        scale = 1 + max(abs(value) for row in z for value in row) ** 2  # float32 squares it
        error = max(np.abs(ours - expected).max() / scale, np.abs(beta - expected_beta).max())
        assert error < 5e-5, (seed, error)
        worst = max(worst, float(error))
        isolated += bool((graph.degree[support] == 0).any())
        single += bool((np.bincount(y) == 1).any())
    figure(
        "numbers.oracle",
        f"{count:,} networks, {isolated:,} with an isolated support node, {single:,} with a class of one: "
        f"largest error {worst:.0e}",
    )


# --- properties ---------------------------------------------------------------------------------------------------


def renumbered(graph: Graph, order: NDArray[np.int64]) -> Graph:
    return Graph(sp.csr_array(graph.adj[order][:, order]), graph.x[order])


def one_shot(graph: Graph, seed: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """With one node a class, the valuator is irrelevant."""
    support = rng.permutation(graph.n)[: int(rng.integers(1, min(graph.n, 5) + 1))]
    given = support, np.arange(support.size), np.arange(graph.n)
    whole, naive = method(graph, seed), method(graph, seed, valuator=False)
    return answers(whole, graph, Task(*given)), answers(naive, graph, Task(*given))


def equal_importance(graph: Graph, seed: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Equal importance gives the plain mean."""
    support, y, _ = task(graph, rng)
    z = torch.randn(support.size, 3, generator=torch.Generator().manual_seed(seed))
    found = prototypes(z, torch.full((support.size,), 0.7), torch.from_numpy(y), int(y.max()) + 1)
    return found.numpy(), np.stack([z.numpy()[y == c].mean(axis=0) for c in range(y.max() + 1)])


def renumbering(graph: Graph, seed: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Renumbering nodes permutes the outputs."""
    support, y, query = task(graph, rng)
    order = rng.permutation(graph.n)
    place = np.argsort(order)
    other = renumbered(graph, order)
    ours = answers(method(graph, seed), graph, Task(support, y, query))
    return ours[order], answers(method(graph, seed), other, Task(place[support], y, query))


def repeated_edges(graph: Graph, seed: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Edges given twice, and self-loops, change nothing."""
    edges = graph.edge_index()
    again = edges[:, rng.integers(0, max(1, edges.shape[1]), 9 if edges.size else 0)]
    loops = np.tile(rng.integers(0, graph.n, 3), (2, 1))
    other = Graph.from_edges(np.concatenate([edges, again, loops], axis=1), graph.n, graph.x, directed=True)
    given = task(graph, rng)
    return answers(method(graph, seed), graph, Task(*given)), answers(method(graph, seed), other, Task(*given))


def far_nodes(graph: Graph, seed: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Nodes that no path leads to change nothing."""
    extra = int(rng.integers(1, 9))
    edges = np.concatenate([graph.edge_index(), graph.n + rng.integers(0, extra, (2, 12))], axis=1)
    x = np.vstack([np.array(rows(graph)), 9 * rng.normal(size=(extra, graph.n_features))]).astype(np.float32)
    other = Graph.from_edges(edges, graph.n + extra, sp.csr_array(x) if sp.issparse(graph.x) else x, directed=True)
    given = task(graph, rng)
    return answers(method(graph, seed), graph, Task(*given)), answers(method(graph, seed), other, Task(*given))


def receptive_field(graph: Graph, seed: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """What is computed for some nodes is what is computed for all."""
    gpn = method(graph, seed)
    engine, nodes = Compiled(ReceptiveFields.of(graph)), rng.permutation(graph.n)[: int(rng.integers(1, graph.n + 1))]
    both = map(partial(engine.embed, gpn.weights_), (nodes, None))
    some, every = (np.concatenate([z, s[:, None]], axis=1) for z, s in both)
    return some, every[nodes]


def renaming(graph: Graph, seed: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """The order of the support set does not matter, and renaming classes permutes the columns."""
    support, y, query = task(graph, rng)
    shuffle, name = rng.permutation(support.size), rng.permutation(int(y.max()) + 1)
    ours = answers(method(graph, seed), graph, Task(support, y, query))
    return ours, answers(method(graph, seed), graph, Task(support[shuffle], name[y[shuffle]], query))[:, name]


def alike(graph: Graph, seed: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Identical attributes and no edge: every node is as likely in every class."""
    n = graph.n
    other = Graph.from_edges(np.zeros((2, 0), int), n, np.ones((n, 3), np.float32))
    support, y, query = task(graph, rng)
    found = answers(method(other, seed), other, Task(support, y, query))
    return found, np.full_like(found, 1 / (y.max() + 1))


Property = Callable[[Graph, int, np.random.Generator], tuple[Floats, Floats]]
PROPERTIES: list[Property] = [
    one_shot,
    equal_importance,
    renumbering,
    repeated_edges,
    far_nodes,
    receptive_field,
    renaming,
    alike,
]


@sizes(25, 1000, 20_000)
def test_properties_of_every_network(figure: Figure, count: int) -> None:
    worst = 0.0
    for check in PROPERTIES:
        for seed in range(count):
            one, other = check(random_graph(seed), seed, np.random.default_rng(seed))
            assert np.isfinite(one).all(), (check.__name__, seed)
            error = float(np.abs(one - other).max() / (1 + np.abs(other).max()))
            assert error < 2e-3, (check.__doc__, seed, error)
            worst = max(worst, error)
    figure("numbers.properties", f"{len(PROPERTIES)} properties on {count:,} networks each: largest error {worst:.0e}")


# --- the same bytes -----------------------------------------------------------------------------------------------

SESSION = """
import sys
from fewnode.cli import main
def fewnode(*arguments):
    sys.argv = ["fewnode", *arguments]
    try:
        main()
    except SystemExit as end:
        assert not end.code, arguments
home, out = sys.argv[1:3]
tables = ("--nodes", f"{home}/nodes.csv", "--edges", f"{home}/edges.csv", "--min-nodes", "5", "-q")
fewnode("data", "import", *tables, "--name", "mine", "--out", f"{out}/data")
small = ("--method", "gpn", "--way", "3", "--episodes", "10")
fewnode("train", "--data", f"{home}/data", *small, "--out", f"{out}/run", "-q")
asked = ("--run", f"{out}/run", "--support", f"{home}/support.csv")
fewnode("predict", *asked, "--all", "--explain", "--out", f"{out}/p.csv", "-q")
fewnode("suggest", *asked, "--out", f"{out}/s.csv", "-q")
fewnode("evaluate", "--run", f"{out}/run", "--tasks", "5", "--save-pool", f"{out}/pool.jsonl", "-q")
"""


def outputs(folder: Path) -> dict[str, bytes]:
    """All that was written, less seconds and dates; checksums over them too."""
    found = {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
    manifest = json.loads(found.pop("run/model.json"))
    manifest["trained"].pop("seconds")
    manifest["sha256"].pop("manifest")
    return {**found, "run/model.json": json.dumps(manifest).encode()}


@pytest.mark.check
def test_the_same_bytes_for_any_hash_seed(planted: Dataset, tmp_path: Path, figure: Figure) -> None:
    names, labels = planted.node_names or (), [planted.class_names[c] for c in planted.y]
    texts = [" ".join(f"w{w}" for w in planted.graph.x[[v]].indices) for v in range(planted.graph.n)]
    table = ["id,label,text", *(",".join(row) for row in zip(names, labels, texts, strict=True))]
    (tmp_path / "nodes.csv").write_text("\n".join(table))
    edges = [f"{names[i]},{names[j]}" for i, j in planted.graph.edge_index().T]
    (tmp_path / "edges.csv").write_text("\n".join(["source,target", *edges]))
    (tmp_path / "support.csv").write_text("\n".join(["node,class", *(f"{names[v]},{labels[v]}" for v in range(20))]))
    save_dataset(planted, tmp_path / "data")
    found = []
    for seed in ("0", "1", "4294967295"):
        out = tmp_path / f"out{seed}"
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", SESSION, tmp_path, out], env=environment, check=True)
        found.append(outputs(out))
    assert found[0].keys() == found[1].keys() == found[2].keys()
    differ = [name for name in found[0] if len({files[name] for files in found}) > 1]
    assert differ == []
    figure("numbers.hashseed", f"{len(found[0])} files of 6 commands with {len(found)} hash seeds: same bytes")


GRID = """
[defaults]
datasets = "data"
tasks = 4
seeds = 2
[[compare]]
methods = {methods}
way = 3
shot = [2, 3]
[methods.gpn]
options = {{ episodes = 10 }}
"""


@pytest.mark.check
def test_the_same_numbers_for_any_number_of_workers_and_order(planted: Dataset, tmp_path: Path, figure: Figure) -> None:
    from fewnode.experiment.grid import read_grid
    from fewnode.experiment.results import TABLE
    from fewnode.experiment.run import experiment

    save_dataset(planted, tmp_path / "data")

    def tables() -> Iterator[list[str]]:
        for number, (methods, workers) in enumerate(
            ((["gpn", "propagation"], 1), (["gpn", "propagation"], 2), (["propagation", "gpn"], 1))
        ):
            (tmp_path / "grid.toml").write_text(GRID.format(methods=json.dumps(methods)))
            experiment(read_grid(tmp_path / "grid.toml"), tmp_path / str(number), workers=workers)
            yield (tmp_path / str(number) / TABLE).read_text().splitlines()

    one, two, other = tables()
    assert one == two
    assert sorted(one) == sorted(other)
    figure("numbers.workers", f"{len(one) - 1} rows with 1 and 2 workers and in another order: same bytes")
