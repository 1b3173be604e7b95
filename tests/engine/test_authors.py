"""The authors' formulation: against their formulas written out with dense matrices, and engine against whole graph."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from fewnode import load_model
from fewnode.dataset import Dataset
from fewnode.episodes import Batch, EpisodeSampler
from fewnode.errors import FewnodeError
from fewnode.graph import Graph
from fewnode.methods.gpn import GPN
from fewnode.methods.networks import AuthorsNetworks, Reference, weights_of
from fewnode.model.estimator import Estimator
from graphs import random_graph
from test_gpn import random_episode


def networks_of(graph: Graph, seed: int, dtype: torch.dtype = torch.float64) -> AuthorsNetworks:
    torch.manual_seed(seed)
    return AuthorsNetworks(graph.n_features, (8, 4)).to(dtype)


def test_answers_are_those_of_their_formulas() -> None:
    """Dense, in float64, one class at a time."""
    for seed in range(30):
        graph = random_graph(seed)
        networks, episode = networks_of(graph, seed), random_episode(graph, seed)
        values = {name: value.numpy() for name, value in networks.state_dict().items()}
        closed = graph.adj.toarray().astype(np.float64) + np.eye(graph.n)
        scale = closed.sum(axis=1) ** -0.5
        a_hat, x = (
            scale[:, None] * closed * scale,
            np.asarray(graph.x.todense() if hasattr(graph.x, "todense") else graph.x),
        )

        def convolved(part: str) -> np.ndarray:
            first = np.maximum(a_hat @ x @ values[f"{part}.weight.0"] + values[f"{part}.bias.0"], 0)  # noqa: B023
            return a_hat @ first @ values[f"{part}.weight.1"] + values[f"{part}.bias.1"]  # noqa: B023

        z, scored = convolved("encoder"), convolved("scores") @ values["last.weight"].T + values["last.bias"]
        weight = 1 / (1 + np.exp(-np.log(np.maximum(graph.degree, 1)) * scored[:, 0]))
        p = []
        for c in range(episode.n_way):
            own = episode.support[episode.support_y == c]
            p.append((weight[own] / weight[own].sum()) @ z[own])
        squared = ((z[episode.query][:, None] - np.array(p)[None]) ** 2).sum(axis=2)
        log_prob = -squared - np.log(np.exp(-squared).sum(axis=1, keepdims=True))
        expected = -log_prob[np.arange(episode.query.size), episode.query_y].mean()

        found, _ = Reference(networks, graph).loss_and_gradients(weights_of(networks), Batch.of([episode]), 0.0, 0)
        assert found == pytest.approx(expected, rel=1e-9)


def test_a_model_of_theirs_learns_and_comes_back_from_a_file(planted: Dataset, tmp_path: Path) -> None:
    model = Estimator("gpn-authors", 3, 2, query=2, episodes=60).fit(planted)
    (episode,) = EpisodeSampler(planted, "test", 3, 2, 5).take(1)
    asked = (planted, episode.support, episode.support_y, episode.query)
    answer = model.predict_proba(*asked)
    assert (answer.argmax(axis=1) == episode.query_y).mean() > 0.6
    model.save(tmp_path / "run")
    again = load_model(tmp_path / "run")
    assert np.array_equal(again.predict_proba(*asked), answer)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"formulation": "author"}, "did you mean 'authors'"),
        ({"formulation": "authors", "encoder": "mlp"}, "leave out the other"),
        ({"formulation": "authors", "hidden": (16,)}, "two layers"),
        ({"keep": "first"}, "known are best, last"),
    ],
)
def test_what_does_not_go_together_is_refused(planted: Dataset, options: dict[str, object], said: str) -> None:
    train, valid = EpisodeSampler(planted, "train", 3, 2), EpisodeSampler(planted, "valid", 3, 2)
    with pytest.raises(FewnodeError, match=said):
        GPN(episodes=10, **options).fit(planted.graph, train, valid)  # type: ignore[arg-type]
