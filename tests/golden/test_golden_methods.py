"""What methods learn and how well they answer, in Python: GPN by its equations, the paper's table, GPN+'s figures.

`PYTHONPATH=tests python tests/golden/test_golden_methods.py` writes the committed answers anew.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import torch
from doors import commit, committed
from golden_networks import kinds, opposites, part_of_debian, without_base
from safetensors.torch import load_file
from torch import Tensor

import oracle
from fewnode import Dataset, EpisodeSampler, Estimator, evaluate
from graphs import planted

SHORT = {"episodes": 40}
WALKS = {"dimensions": 16, "walks": 4, "length": 15}
TABLE: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("gpn", "gpn-naive", "pn", "gpn-authors", "maml", "meta-gnn"), SHORT),
    **dict.fromkeys(("deepwalk", "node2vec"), WALKS),
    **{name: {} for name in ("gcn", "sgc", "propagation", "nearest-mean", "logistic", "gpn-plus")},
}


def weights(model: Estimator, folder: Path) -> dict[tuple[int, ...], Tensor]:
    """Of a saved GPN. No two of its arrays have the same shape."""
    model.save(folder)
    arrays = load_file(folder / "model.safetensors").values()
    return {tuple(array.shape): array.double().requires_grad_() for array in arrays}


def embedded(data: Dataset, learned: dict[tuple[int, ...], Tensor]) -> tuple[Tensor, Tensor]:
    """z and the importance of every node, as the equations have them."""
    a, x = oracle.dense(data.graph, torch.float64)
    wide = data.graph.n_features
    z = oracle.encode(a, x, [learned[wide, 32], learned[32, 16]], [learned[(32,)], learned[(16,)]])
    return z, oracle.importance(a, x, learned[wide, 1], learned[(1,)], learned[2, 2], eps=1.0)


@pytest.mark.parametrize("seed", [1, 6])
def test_gpn_learns_what_the_equations_say(seed: int, tmp_path: Path) -> None:
    """The losses of 300 episodes, by matrices of all nodes in double precision, autograd and Adam.

    Adam divides by the size of a gradient, so it enlarges the rounding of one that is almost zero. With these two
    seeds there is none.
    """
    data, losses = planted(), []
    given: dict[str, Any] = {"way": 5, "shot": 3, "query": 5, "seed": seed, "dropout": 0.0, "keep": "last"}
    untrained = Estimator("gpn", **given, episodes=1, lr=1e-30, weight_decay=0.0).fit(data)  # the first weights
    model = Estimator("gpn", **given, patience=1000)
    model.fit(data, on_step=lambda step, loss, history: losses.append(loss))
    learned, expected = weights(untrained, tmp_path / "untrained"), []
    adam = torch.optim.Adam(learned.values(), lr=0.005, weight_decay=5e-4)
    for episode in EpisodeSampler(data, "train", 5, 3, 5, seed).take(300):
        task = (episode.support, episode.support_y, episode.query, episode.query_y)
        loss = oracle.loss(*embedded(data, learned), *map(torch.from_numpy, task))
        adam.zero_grad()
        loss.backward()
        adam.step()
        expected.append(loss.item())
    np.testing.assert_allclose(losses, expected, atol=1e-4)
    z, importance = (found.detach().tolist() for found in embedded(data, weights(model, tmp_path / "trained")))
    for episode in EpisodeSampler(data, "test", 5, 3, 5).take(20):
        task = (episode.support, episode.support_y, episode.query)
        support, support_y, query = (rows.tolist() for rows in task)
        beta = oracle.loop_beta(importance, support, support_y)
        likeliest = np.argmax(oracle.loop_probability(z, beta, support, support_y, query), axis=1)
        assert (model.predict_proba(data, *task).argmax(axis=1) == likeliest).mean() > 0.95  # ties are a matter of bits


def table() -> dict[str, list[float]]:
    """Accuracy of each method on one pool of tasks, and half of its interval."""
    data, found = part_of_debian(), {}
    for method, options in TABLE.items():
        model = Estimator(method, way=5, shot=3, query=5, **options).fit(data)
        accuracy = evaluate(model, data, way=5, shot=3, query=5, tasks=50).accuracy.to_json()
        found[method] = [round(accuracy["mean"], 4), round(accuracy["ci95"], 4)]
    return found


def test_the_papers_table_is_within_its_intervals() -> None:
    before = committed("methods")["table"]
    today = table()
    assert today.keys() == before.keys()
    assert {name: pair for name, pair in today.items() if abs(pair[0] - before[name][0]) > before[name][1]} == {}


def figures() -> dict[str, dict[str, float]]:
    """Accuracy, calibration error and AUROC of membership of GPN+."""
    found = {}
    for make in (part_of_debian, opposites, kinds):
        for base in (True, False):
            data = make() if base else without_base(make())
            model = Estimator("gpn-plus").fit(data)
            for shot in (1, 5):
                result = evaluate(model, data, way=5, shot=shot, query=5, tasks=40, open_set=True)
                scores = {"accuracy": result.accuracy.mean, "ece": result.ece, "auroc": result["auroc"].mean}
                name = f"{make.__name__}, {shot} labels, {'with' if base else 'without'} base classes"
                found[name] = {metric: round(float(score), 4) for metric, score in scores.items()}
    return found


def test_gpn_plus_is_as_right_and_as_sure_as_it_was() -> None:
    """An answer near the edge may change; the figures are means over a thousand answers and more."""
    before = committed("methods")["gpn-plus"]
    today = figures()
    assert today.keys() == before.keys()
    worse = {
        name: (scores, before[name])
        for name, scores in today.items()
        if any(abs(score - before[name][metric]) > 0.01 for metric, score in scores.items())
    }
    assert worse == {}


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        commit("methods", {"table": table(), "gpn-plus": figures()})
