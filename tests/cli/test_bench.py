"""The three formulations that `fewnode bench` measures, and what it says of them. No time is asserted."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from fewnode.bench import plain, plus, run
from fewnode.bench.formulations import FORMULATIONS, initial_networks
from fewnode.bench.networks import SIZES, Size, network
from fewnode.bench.run import Disagreement, agree, ratios
from fewnode.episodes import EpisodeSampler
from fewnode.graph import is_sparse

TINY = SIZES["tiny"]


def test_the_three_formulations_agree() -> None:
    data = network(TINY)
    networks = run.trained(data, EpisodeSampler(data, "train", 5, 5))
    ready = {name: formulation(data, networks) for name, formulation in FORMULATIONS.items()}
    train, test = (EpisodeSampler(data, part, 5, 5) for part in ("train", "test"))
    for t in range(5):
        assert max(agree(ready, train[t], [episode.task for episode in test.take(3)]).values()) < 1e-4


def test_a_formulation_that_differs_is_refused() -> None:
    data = network(TINY)
    networks = initial_networks(data)
    ready = {name: formulation(data, networks) for name, formulation in FORMULATIONS.items()}
    train = EpisodeSampler(data, "train", 5, 5)
    with torch.no_grad():
        ready["naive"].model.valuator.w += 0.01
    with pytest.raises(Disagreement, match="fewnode and naive differ"):
        agree(ready, train[0], [train[1].task])


def test_an_episode_of_each_formulation_lowers_its_loss() -> None:
    data = network(TINY)
    train = EpisodeSampler(data, "train", 5, 5)
    for formulation in FORMULATIONS.values():
        ready = formulation(data, initial_networks(data))
        before, _ = ready.loss_and_gradients(train[0])
        for _ in range(20):
            ready.episode(train, 0)
        assert ready.loss_and_gradients(train[0])[0] < before


def test_networks_have_the_size_that_is_asked_for() -> None:
    data = network(TINY)
    assert (data.graph.n, data.graph.n_edges, data.graph.n_features) == (TINY.nodes, TINY.edges, TINY.attributes)
    assert [len(data.split.part(part)) for part in ("train", "valid", "test")] == list(TINY.split)
    dense = network(Size(300, 900, 7, (5, 5, 5), non_zeros=0))
    assert not is_sparse(dense.graph.x)
    again = network(TINY)
    assert data.sha256 == again.sha256


def test_the_json_of_a_run(fewnode: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(run, "peak_of", lambda name, size, edges: {"naive": 50.0, "pyg": 20.0, "fewnode": 10.0}[name])
    monkeypatch.setattr(run, "protocol_seconds", lambda data: 1.0)
    plot = tmp_path / "bench.svg"
    done = fewnode("bench", "--size", "tiny", "--rounds", 1, "--json", "--plot", plot)
    assert done.code == 0
    found = done.json
    for what in ("training_episode", "protocol", "evaluation_500_tasks", "peak_mb"):
        assert set(found[what]) == {"naive", "pyg", "fewnode"}
        assert set(found["ratio"][what]) == {"naive", "pyg"}
        assert all(value > 0 for value in found[what].values())
    assert found["ratio"]["peak_mb"] == {"naive": 5.0, "pyg": 2.0}
    assert found["provenance"]["nodes"] == TINY.nodes
    assert max(found["agreement"].values()) <= 1e-4
    assert "they agree" in done.err
    assert plot.read_text().startswith("<svg")
    json.dumps(found)


def test_the_table_fits_a_terminal() -> None:
    from fewnode.cli.bench import table_of

    figures = {
        "training_episode": {"naive": 0.777, "pyg": 0.331, "fewnode": 0.0049},
        "protocol": {"naive": 627.5, "pyg": 103.0, "fewnode": 1.5},
        "evaluation_500_tasks": {"naive": 143.2, "pyg": 0.185, "fewnode": 0.04},
        "peak_mb": {"naive": 931.0, "pyg": 171.0, "fewnode": 33.0},
    }
    made = {"nodes": 24919, "edges": 91680, "attributes": 9034}
    shown = table_of(
        {
            **figures,
            "ratio": ratios(figures),
            "goals": run.GOALS,
            "labels": run.LABELS,
            "estimated": list(run.ESTIMATED),
            "provenance": made,
        }
    )
    assert max(map(len, shown.splitlines())) <= 80
    assert "159x" in shown


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_peak_memory_is_measured_beyond_imports() -> None:
    assert 0 <= run.peak("fewnode", TINY, None) < 500


def test_edges_come_from_a_file_and_a_bad_file_is_named(fewnode: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "edges.txt"
    path.write_text("0 1\n1 2\n")
    assert network(TINY, edges=path).graph.n_edges == 2
    for text, message in (("0 1\nx y\n", "not two node numbers"), ("0 99999\n", "there is a node 99999")):
        path.write_text(text)
        done = fewnode("bench", "--size", "tiny", "--network", path)
        assert done.code == 2
        assert message in done.err
    assert fewnode("bench", "--size", "huge").code == 2


# --- GPN+ -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "attributes"),
    [(400, 24), (400, 1_000), *(pytest.param(1_500, d, marks=pytest.mark.check) for d in (24, 1_000))],
)
def test_gpn_plus_written_plainly_gives_the_same_numbers(nodes: int, attributes: int) -> None:
    assert plus.agree(plus.made(nodes, attributes)) < 1e-4


def test_a_plain_formulation_that_differs_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain, "plain_diffusion", lambda graph, diffusion, z: z)
    with pytest.raises(Disagreement, match="no time is measured"):
        plus.agree(plus.made(400, 16))


def test_the_table_of_gpn_plus(fewnode: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    taken = {"plain": 10.0, "logistic": 0.5, "fewnode": 2.0}
    monkeypatch.setattr(plus, "measure_apart", lambda way, *_: dict.fromkeys(plus.LABELS, taken[way]))
    monkeypatch.setattr(plus, "agree", lambda data: 1e-6)
    done = fewnode("bench", "--nodes", 600, "--json", "--plot", tmp_path / "plus.svg")
    assert done.code == 0
    assert done.json["ratio"]["ready"] == {"plain": 5.0, "logistic": 0.25}
    assert "logistic" in (tmp_path / "plus.svg").read_text()
    assert "5.0x" in fewnode("bench", "--nodes", 600).out


def test_each_way_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    data = plus.made(400, 16)
    monkeypatch.setattr(plus, "ANSWERS", 5)
    monkeypatch.setattr(plus, "made", lambda nodes, attributes: data)  # also for the one that is not measured
    for way in plus.WAYS:
        found = plus.measure(way, 400, 16)
        assert found.keys() == plus.LABELS.keys()
        assert all(value > 0 for value in found.values())


def test_options_of_the_other_method_are_refused(fewnode: Callable[..., Any]) -> None:
    assert "--method gpn" in fewnode("bench", "--method", "gpn-plus", "--size", "tiny").err
    assert "expected gpn-plus or gpn" in fewnode("bench", "--method", "pn").err
