"""The search of hyper-parameters: what it sees, what it finds again, what it writes."""

from __future__ import annotations

import inspect
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from fewnode.cli.tune import tune as command
from fewnode.dataset import ClassSplit, Dataset
from fewnode.episodes import EpisodeSampler
from fewnode.errors import FewnodeError
from fewnode.evaluation import score
from fewnode.experiment.tune import POOL_SEED, tune
from fewnode.formats.directory import save_dataset
from fewnode.methods.table import DEFAULTS, METHODS, class_of
from fewnode.model.estimator import Estimator

SMALL: dict[str, Any] = {"shape": (3, 3, None), "trials": 4, "tasks": 20}
QUICK: dict[str, Any] = {"method": "sgc", **SMALL, "episodes": 5}
"""A method that is trained in no time: how the search goes is the same for all."""


@pytest.fixture(name="found", scope="module")
def _found(planted: Dataset) -> dict[str, Any]:
    pytest.importorskip("optuna", reason="the extra tune is not installed")
    return tune(data=planted, **QUICK)


def test_the_best_trial_is_found_and_the_first_has_the_defaults(found: dict[str, Any], planted: Dataset) -> None:
    usual = METHODS["sgc"]
    assert found["trials"][0]["options"] == {
        name: usual[name] for name in DEFAULTS["sgc"]["space"] if name != "episodes"
    }
    assert len(found["trials"]) == 4
    accuracies = [trial["accuracy"] or 0.0 for trial in found["trials"]]
    assert found["accuracy"] == max(accuracies)
    assert found["options"] == {"episodes": 5, **found["trials"][accuracies.index(max(accuracies))]["options"]}
    assert len({str(trial["options"]) for trial in found["trials"]}) > 2
    model = Estimator("sgc", 3, 3, **found["options"]).fit(planted)
    pool = EpisodeSampler(planted, "valid", 3, 3, seed=POOL_SEED).take(20)
    assert score(model, planted.graph, pool)["accuracy"].mean() == found["accuracy"]


def test_the_same_seed_finds_the_same(found: dict[str, Any], planted: Dataset) -> None:
    assert tune(data=planted, **QUICK) == found
    assert tune(data=planted, **QUICK, seed=1)["trials"] != found["trials"]


@pytest.mark.usefixtures("found")
@pytest.mark.parametrize("method", ["propagation", "gpn"])
def test_no_test_class_is_seen(method: str, planted: Dataset) -> None:
    sizes = {**SMALL, "trials": 2, "episodes": 10} if method == "gpn" else {**SMALL, "trials": 1}
    found = tune(method, planted, **sizes)["trials"]
    tested = np.isin(planted.y, planted.split.test)
    y = planted.y.copy()
    y[tested] = np.random.default_rng(0).permutation(y[tested])
    assert tune(method, replace(planted, y=y), **sizes)["trials"] == found
    split = ClassSplit(planted.split.train, planted.split.valid, ())
    assert tune(method, replace(planted, y=np.where(tested, -1, y), split=split), **sizes)["trials"] == found


@pytest.mark.usefixtures("found")
def test_a_trial_that_diverges_is_recorded_and_loses(planted: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DEFAULTS["gpn"], "space", {"lr": [1e30, 1e30]})
    told: list[str] = []
    found = tune("gpn", planted, **{**SMALL, "trials": 2}, episodes=10, say=told.append)
    assert found["options"] == {"episodes": 10, "lr": 0.005}
    assert found["trials"][1]["accuracy"] is None
    assert "episode" in found["trials"][1]["failed"]
    assert [line.split()[1] for line in told] == ["1/2", "2/2"]
    assert told[1].endswith("diverged")
    with pytest.raises(FewnodeError, match=r"every trial failed.*episode"):
        tune("gpn", planted, **{**SMALL, "trials": 1}, episodes=10, lr=1e30)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_defaults_and_a_space_it_understands(method: str) -> None:
    known = inspect.signature(class_of(method)[0]).parameters
    usual = METHODS[method]
    assert set(usual) <= set(known)
    space = DEFAULTS[method]["space"]
    assert set(space) <= set(usual)
    for name, values in space.items():
        assert values["low"] < values["high"] if isinstance(values, dict) else len(values) > 1
        Estimator(method, **{name: values["low"] if isinstance(values, dict) else values[0]})
    for name, value in usual.items():
        preset = {**{key: p.default for key, p in known.items()}, **METHODS[method]}[name]
        assert (list(preset) if isinstance(preset, tuple) else preset) == value, f"{name} is {preset} in the code"


@pytest.mark.usefixtures("found")
@pytest.mark.parametrize("arguments", [{"trials": 0}, {"tasks": 0}, {"method": "gnp"}])
def test_wrong_arguments_are_refused(arguments: dict[str, Any], planted: Dataset) -> None:
    with pytest.raises(FewnodeError):
        tune(**{"method": "propagation", "data": planted, **arguments})


def test_without_optuna_that_is_said(planted: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(FewnodeError, match=r"a search needs optuna: pip install 'fewnode\[tune\]'"):
        tune(data=planted, **QUICK)


# --- the command --------------------------------------------------------------------------------------------------


@pytest.fixture(name="asked", scope="module")
def _asked(planted: Dataset, tmp_path_factory: pytest.TempPathFactory) -> tuple[object, ...]:
    directory = tmp_path_factory.mktemp("data") / "planted"
    save_dataset(planted, directory)
    return ("--data", directory, "--method", "sgc", "--episodes", 5, "--way", 3, "--shot", 3, "--tasks", 20)


def run(*arguments: object) -> Any:
    app = typer.Typer()
    app.command()(command)
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_the_command_prints_one_object_and_writes_the_file(
    asked: tuple[object, ...], found: dict[str, Any], tmp_path: Path
) -> None:
    out = tmp_path / "tuned.json"
    result = run(*asked, "--trials", 4, "--json", "--out", out)
    assert result.exit_code == 0
    printed = json.loads(result.stdout)
    assert {key: printed[key] for key in ("options", "accuracy", "trials")} == {
        key: found[key] for key in ("options", "accuracy", "trials")
    }
    assert json.loads(out.read_text())["options"] == found["options"]
    assert result.stderr.count("trial") == 4
    assert "choose another --out" in str(run(*asked, "--trials", 4, "--out", out).exception)
