"""node2vec at the size of Electronics (42,318 nodes): 10 walks of 80 steps, 128 dimensions, 1 epoch, all cores.

The network is the published one if `--network` names it (an .npz file), else a random one of that size. If gensim is
installed, both train on one pass of the walks, a tenth of them, with as many threads; a ratio is theirs over ours.

    python benchmarks/node2vec.py --network ../shared/data/amazon_electronics_noattr.npz
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fewnode.datasets.npz import read_dataset_npz
from fewnode.graph import Graph
from fewnode.represent.random_walks import random_walks
from fewnode.represent.skipgram import Nodes, cores, skip_gram

NODES, EDGES = 42_318, 43_556


def timed(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    start, cpu = time.perf_counter(), time.process_time()
    result = work()
    return result, {
        "seconds": round(time.perf_counter() - start, 2),
        "cpu_seconds": round(time.process_time() - cpu, 2),
    }


def measure(graph: Graph, p: float, q: float, walks: int) -> tuple[Nodes, dict[str, Any]]:
    random_walks(graph, p, q, 1, 2, 0)  # compiles
    skip_gram(random_walks(graph, 1, 1, 1, 2, 0)[:100], graph.n)
    rows, walking = timed(lambda: random_walks(graph, p, q, walks, 80, 0, cores()))
    _, training = timed(lambda: skip_gram(rows, graph.n, workers=cores()))
    total = {key: round(walking[key] + training[key], 2) for key in walking}
    return rows, {"walks": walking, "skip_gram": training, "node2vec": total}


def compare(rows: Nodes, n: int) -> dict[str, Any]:
    """The same skip-gram by gensim, on the same walks."""
    try:
        from gensim.models import Word2Vec
    except ImportError:
        return {}
    sentences = [[str(v) for v in row if v >= 0] for row in rows.tolist()]
    options = {"vector_size": 128, "window": 10, "sg": 1, "negative": 5, "min_count": 0, "sample": 0, "epochs": 1}
    _, ours = timed(lambda: skip_gram(rows, n, workers=cores()))
    _, theirs = timed(lambda: Word2Vec(sentences, workers=cores(), **options))
    ratio = {f"gensim_ratio_{key}": round(theirs[key] / ours[key], 2) for key in ours}
    return {"ours_tenth": ours, "gensim_tenth": theirs, **ratio}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", type=Path)
    parser.add_argument("--p", type=float, default=4.0)
    parser.add_argument("--q", type=float, default=0.25)
    parser.add_argument("--walks", type=int, default=10)
    options = parser.parse_args()
    if options.network:
        graph = read_dataset_npz(options.network).graph
    else:
        graph = Graph.from_edges(np.random.default_rng(0).integers(0, NODES, (2, EDGES)), NODES)
    rows, figures = measure(graph, options.p, options.q, options.walks)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figures |= {"nodes": graph.n, "edges": graph.n_edges, "cores": cores(), "peak_mb": round(peak)}
    print(json.dumps({**figures, **compare(rows[: graph.n], graph.n)}, indent=1))


if __name__ == "__main__":
    main()
