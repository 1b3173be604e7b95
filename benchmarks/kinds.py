"""What GPN+ makes of weights, kinds and directions of edges, as a Markdown table.

- Planted networks whose classes only weights tell apart, only one relation of five, or only directions: with that
  knowledge, without it, and given the right edges alone.
- WordNet, of Debian's package wordnet-base: 18 kinds of directed pointers between 117,659 senses, 45 classes.
- Ten useless random relations beside a network's own edges, each of as many edges.
- Debian with and without its kinds and directions.

    python benchmarks/kinds.py --network ../shared/data/wikispeedia.npz

Differences are paired: both answer the same 5-way tasks.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch

import fewnode
from fewnode.adjacency import Relation
from fewnode.dataset import Dataset
from fewnode.estimator import Estimator
from fewnode.evaluation import evaluate
from fewnode.graph import Graph
from fewnode.scoring.interval import interval

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import wordnet
from graphs import planted_edges

SHOTS = (1, 5)
USELESS = 10
Variant = tuple[str, Dataset]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", action="append", default=[], help="to add useless relations to")
    parser.add_argument("--tasks", type=int, default=300)
    parser.add_argument("--only", choices=[*_CASES], action="append", help="default: all")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(
        "| network | edges | 1 shot, % | more | 5 shots, % | more | seconds to fit |\n" + "|---" * 7 + "|", flush=True
    )
    for case in options.only or _CASES:
        for name, variants in _CASES[case](options.network):
            _compare(name, variants, options.tasks)


def _compare(name: str, variants: Iterator[Variant], tasks: int) -> None:
    """A row for each variant. `more` is how much better it is than the first."""
    first: dict[int, np.ndarray] = {}
    for label, data in variants:
        start, cells = time.process_time(), []
        model = Estimator("gpn-plus", way=5, shot=5).fit(data)
        seconds = time.process_time() - start
        for shot in SHOTS:
            scores = evaluate(model, data, 5, shot, 10, tasks).per_task["accuracy"]
            gain = "" if shot not in first else str(interval(scores - first[shot]))
            first.setdefault(shot, scores)
            cells += [f"{100 * scores.mean():.1f}", gain]
        print(f"| {name} | {label} | {' | '.join(cells)} | {seconds:.1f} |", flush=True)


def _planted(networks: list[str]) -> Iterator[tuple[str, Iterator[Variant]]]:
    for signal in ("weights", "relation", "direction"):
        yield f"planted {signal}", _planted_variants(planted_edges(signal))


def _planted_variants(data: Dataset) -> Iterator[Variant]:
    graph = data.graph
    yield "alike", replace(data, graph=graph.unweighted)
    yield "as they are", data
    (first, *_), named = graph.relations, {relation.name: relation.adj for relation in graph.relations}
    if data.name == "relation":
        right = named["c"].copy()
    elif data.name == "weights":
        right = sp.csr_array(first.adj * (first.adj > 2))
    else:
        node = np.arange(graph.n) < np.count_nonzero(data.y >= 0)  # who points: landmarks do not have a class
        right = sp.diags_array((~node).astype(np.float32)) @ first.adj
        right = (right + right.T).tocsr()
    right.eliminate_zeros()
    yield "the right ones alone", replace(data, graph=Graph(right.sign().tocsr(), graph.x))


def _useless(networks: list[str]) -> Iterator[tuple[str, Iterator[Variant]]]:
    for network in networks:
        data = fewnode.load(network)
        yield data.name, _useless_variants(data)


def _useless_variants(data: Dataset, seed: int = 0) -> Iterator[Variant]:
    yield "its own", data
    rng, graph = np.random.default_rng(seed), data.graph
    relations = []
    for i in range(USELESS):
        edges = rng.integers(0, graph.n, (2, int(1.01 * graph.n_edges)))  # its own edges are the fewest
        relations.append(Relation(f"useless {i + 1}", Graph.from_edges(edges, graph.n).adj))
    relations.append(Relation("own", graph.adj))
    mixed = Graph.from_relations(relations, graph.x)
    yield f"and {USELESS} useless relations", replace(data, graph=mixed)
    yield "the same, without kinds", replace(data, graph=mixed.unweighted)


def _wordnet(networks: list[str]) -> Iterator[tuple[str, Iterator[Variant]]]:
    with tempfile.TemporaryDirectory() as folder:
        wordnet.write(wordnet.FOLDER, Path(folder))
        tables = Path(folder) / "nodes.csv", Path(folder) / "edges.csv"
        data = fewnode.read_tables(*tables, label="file", text="text", relation="kind", directed=True)
    yield "wordnet", _kinds_of(data)


def _debian(networks: list[str]) -> Iterator[tuple[str, Iterator[Variant]]]:
    yield "debian", _kinds_of(fewnode.load("debian"))


def _kinds_of(data: Dataset) -> Iterator[Variant]:
    one_way = Relation("any", sp.csr_array(sum(r.adj for r in data.graph.relations)).sign(), directed=True)
    alike = Relation("any", one_way.both_ways.sign(), directed=False)
    both = [replace(r, adj=r.both_ways.sign(), directed=False) for r in data.graph.relations]
    variants = {"alike": [alike], "with directions": [one_way], "with kinds": both, "with both": data.graph.relations}
    for name, relations in variants.items():
        graph = Graph.from_relations(relations, data.graph.x, directed=False)
        yield name, replace(data, graph=replace(graph, blocks=data.graph.blocks))


_CASES: dict[str, Callable[[list[str]], Iterator[tuple[str, Iterator[Variant]]]]] = {
    "planted": _planted,
    "wordnet": _wordnet,
    "useless": _useless,
    "debian": _debian,
}

if __name__ == "__main__":
    main()
