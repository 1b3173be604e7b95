"""Compile once what each worker of the tests would compile for itself: loops that most tests share, and all asserts."""

import os
from dataclasses import replace
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # as in conftest.py

from _pytest.assertion.rewrite import PYC_TAIL, _read_pyc, _rewrite_test, _write_pyc, get_cache_dir

from fewnode.graph import Graph
from fewnode.model.estimator import Estimator
from graphs import planted

QUICK = {
    "gpn": {"episodes": 1},
    "pn": {"episodes": 1},
    "gpn-plus": {},
    "deepwalk": {"dimensions": 32, "length": 5, "walks": 1},
    "node2vec": {"dimensions": 32, "length": 5, "walks": 1},
}
words = planted(size=10)
vectors = replace(words, graph=Graph(words.graph.adj, words.graph.x.toarray()))
for data in (words, vectors):
    for method, options in QUICK.items():
        model = Estimator(method, way=3, shot=3, **options).fit(data)
        model.predict_proba(data.graph, [0, 50], ["a", "b"], [1, 2])

# Workers read the same files at the same time: each would rewrite the asserts of all of them, for 6 s.
for path in (path for name in ("test_*.py", "conftest.py") for path in Path(__file__).parent.rglob(name)):
    kept = get_cache_dir(path) / (path.stem + PYC_TAIL)
    if _read_pyc(path, kept) is None:
        kept.parent.mkdir(exist_ok=True)
        made, code = _rewrite_test(path, None)
        _write_pyc(None, code, made, kept)
