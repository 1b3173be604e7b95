"""What the service answers: the same as `fewnode predict`, for registered classes and for those of a request."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fewnode.estimator import load_model
from fewnode.graph import Dataset
from fewnode.predictions import Predictions
from service import Running

SUPPORT = {"first": ["node-0", "node-1", "node-2"], "second": ["node-3", "node-4"], "<b>third": ["node-5"]}
NODES = ["node-10", "node-20", "node-30"]


def test_answers_are_those_of_predict(server: Running, run_dir: Path, planted: Dataset) -> None:
    given = [(planted.node(node), label) for label, nodes in SUPPORT.items() for node in nodes]
    support = [node for node, _ in given], [label for _, label in given]
    asked = [planted.node(node) for node in NODES]
    for transductive in (False, True):
        for open_set in (False, True):
            expected = Predictions.of(load_model(run_dir), planted, *support, asked, True, transductive, open_set)
            mode = "transductive" if transductive else "inductive"
            body = {"nodes": NODES, "support": SUPPORT, "mode": mode, "open_set": open_set}
            answer = server.ask("/api/classify", body).json
            columns = [expected.classes.index(name) for name in answer["classes"]]
            got = np.array([result["probabilities"] for result in answer["results"]], np.float32)
            assert np.array_equal(got, expected.probability[:, columns])
            nearest = [[near["node"] for near in result["nearest"]] for result in answer["results"]]
            assert nearest == expected.nearest
            beta = {node: weight for weights in answer["beta"].values() for node, weight in weights.items()}
            assert [np.float32(beta[node]) for node, _ in expected.support] == expected.why.beta.tolist()
