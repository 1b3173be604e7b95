"""Compile the loops that most tests share, once: each worker of the tests would compile them for itself."""

import os
from dataclasses import replace

os.environ["OMP_NUM_THREADS"] = "1"  # as in conftest.py

from fewnode.estimator import Estimator
from fewnode.graph import Graph
from graphs import planted

QUICK = {
    "gpn": {"episodes": 1},
    "pn": {"episodes": 1},
    "gpn-plus": {},
    "deepwalk": {"dimensions": 32, "length": 5, "walks": 1},
    "node2vec": {"dimensions": 32, "length": 5, "walks": 1},
}
words = planted()
vectors = replace(words, graph=Graph(words.graph.adj, words.graph.x.toarray()))
for data in (words, vectors):
    for method, options in QUICK.items():
        model = Estimator(method, way=3, shot=3, **options).fit(data)
        model.predict_proba(data.graph, [0, 50], ["a", "b"], [1, 2])
