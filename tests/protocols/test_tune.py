"""The search of hyper-parameters: what it sees, what it finds again, what it writes."""

from __future__ import annotations

import inspect
import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from fewnode.cli.tune import tune as command
from fewnode.dataset import ClassSplit, Dataset
from fewnode.errors import FewnodeError
from fewnode.estimator import Estimator
from fewnode.methods.defaults import Range, options, space
from fewnode.methods.table import METHODS
from fewnode.protocols import tune as tuning
from fewnode.protocols.tune import Trial, Tuned, read_options, tune
from fewnode.storage.io import save_dataset

SMALL: dict[str, Any] = {"way": 3, "shot": 3, "trials": 4, "tasks": 20}
QUICK: dict[str, Any] = {"method": "sgc", **SMALL, "episodes": 5}
"""A method that is trained in no time: how the search goes is the same for all."""


@pytest.fixture(autouse=True)
def _random_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether or not optuna is installed here."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)


def without_seconds(found: Tuned) -> list[Trial]:
    return [replace(trial, seconds=0.0) for trial in found.trials]


@pytest.fixture(name="found", scope="module")
def _found(planted: Dataset) -> Tuned:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("importlib.util.find_spec", lambda name: None)
        return tune(data=planted, **QUICK)


def test_the_best_trial_is_found_and_the_first_has_the_defaults(found: Tuned) -> None:
    usual = options("sgc")
    assert found.trials[0].options == {name: usual[name] for name in space("sgc") if name != "episodes"}
    assert len(found.trials) == 4
    accuracies = [trial.accuracy for trial in found.trials]
    assert found.accuracy == max(accuracies)
    assert found.options == {"episodes": 5, **found.trials[accuracies.index(found.accuracy)].options}
    assert len({str(trial.options) for trial in found.trials}) > 2


def test_the_accuracy_is_that_of_a_model_with_these_options(found: Tuned, planted: Dataset) -> None:
    model = Estimator("sgc", 3, 3, **found.options).fit(planted)
    pool = tuning.EpisodeSampler(planted, "valid", 3, 3, seed=tuning.POOL_SEED).take(20)
    assert tuning.score(model, planted.graph, pool)["accuracy"].mean() == found.accuracy


def test_the_same_seed_finds_the_same(found: Tuned, planted: Dataset) -> None:
    assert without_seconds(tune(data=planted, **QUICK)) == without_seconds(found)
    assert without_seconds(tune(data=planted, **QUICK, seed=1)) != without_seconds(found)


@pytest.mark.parametrize("method", ["propagation", "gpn"])
def test_no_test_class_is_seen(method: str, planted: Dataset) -> None:
    sizes = {**SMALL, "trials": 2, "episodes": 10} if method == "gpn" else {**SMALL, "trials": 1}
    found = without_seconds(tune(method, planted, **sizes))
    tested = np.isin(planted.y, planted.split.test)
    y = planted.y.copy()
    y[tested] = np.random.default_rng(0).permutation(y[tested])
    assert without_seconds(tune(method, replace(planted, y=y), **sizes)) == found
    split = ClassSplit(planted.split.train, planted.split.valid, ())
    assert without_seconds(tune(method, replace(planted, y=np.where(tested, -1, y), split=split), **sizes)) == found


def test_a_trial_that_diverges_is_recorded_and_loses(planted: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning.Random, "ask", lambda self: {"lr": 1e30})
    monkeypatch.setattr(tuning, "space", lambda method: {"lr": [0.005]})
    told: list[tuple[int, Trial | None]] = []
    found = tune("gpn", planted, **{**SMALL, "trials": 2}, episodes=10, report=lambda d, b: told.append((len(d), b)))
    assert found.options == {"episodes": 10, "lr": 0.005}
    assert found.trials[1].accuracy is None
    assert "episode" in str(found.trials[1].failed)
    assert told == [(1, found.trials[0]), (2, found.trials[0])]


def test_if_every_trial_fails_that_is_said(planted: Dataset) -> None:
    with pytest.raises(FewnodeError, match=r"every trial failed.*episode"):
        tune("gpn", planted, **{**SMALL, "trials": 1}, episodes=10, lr=1e30)


def test_what_is_written_is_what_was_found(found: Tuned, tmp_path: Path) -> None:
    path = tmp_path / "tuned.toml"
    odd = replace(found, data={"name": 'a "name" \\ of\nlines \x7f é', "sha256": "0"})
    failed = replace(odd, trials=(*odd.trials, Trial({"hidden": [8, 4], "meta": True}, None, 1e-7, "diverged")))
    failed.write(path)
    read = tomllib.loads(path.read_text())
    expected = failed.to_json()
    for trial in [expected, *expected["trials"]]:
        for name in [name for name, value in trial.items() if value is None]:
            del trial[name]
    assert {**read, "trials": tuple(read["trials"])} == expected
    assert read_options(path) == ("sgc", found.options)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("text", ["method = ", "method = 3", "\x00", "[options]\nsteps = 2"])
def test_another_file_is_not_taken_for_one(text: str, tmp_path: Path) -> None:
    path = tmp_path / "tuned.toml"
    path.write_text(text)
    with pytest.raises(FewnodeError, match="not what fewnode tune writes"):
        read_options(path)


def test_a_range_is_even_on_the_logarithmic_scale() -> None:
    values = [Range(1e-4, 1e-2).at(share) for share in (0.0, 0.5, 1.0)]
    assert values == pytest.approx([1e-4, 1e-3, 1e-2])


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_defaults_and_a_space_it_understands(method: str) -> None:
    known = inspect.signature(METHODS[method][0]).parameters
    usual = options(method)
    assert set(usual) <= set(known)
    assert set(space(method)) <= set(usual)
    for name, values in space(method).items():
        assert values.low < values.high if isinstance(values, Range) else len(values) > 1
        Estimator(method, **{name: values.at(0.5) if isinstance(values, Range) else values[0]})
    for name, value in usual.items():
        preset = {**{key: p.default for key, p in known.items()}, **METHODS[method][1]}[name]
        assert (list(preset) if isinstance(preset, tuple) else preset) == value, f"{name} is {preset} in the code"


@pytest.mark.parametrize("arguments", [{"trials": 0}, {"tasks": 0}, {"method": "gnp"}])
def test_wrong_arguments_are_refused(arguments: dict[str, Any], planted: Dataset) -> None:
    with pytest.raises(FewnodeError):
        tune(**{"method": "propagation", "data": planted, **arguments})


def test_optuna_finds_the_same_again(planted: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("optuna")
    monkeypatch.undo()
    once, again = (tune(data=planted, **{**QUICK, "trials": 3}) for _ in range(2))
    assert once.search == "optuna"
    assert without_seconds(once) == without_seconds(again)


# --- the command --------------------------------------------------------------------------------------------------


ASKED = ("--method", "sgc", "--episodes", 5, "--way", 3, "--shot", 3, "--tasks", 20)


def run(*arguments: object) -> Any:
    app = typer.Typer()
    app.command()(command)
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(name="dataset_dir", scope="module")
def _dataset_dir(planted: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("data") / "planted"
    save_dataset(planted, directory)
    return directory


def test_the_command_prints_one_object_and_writes_the_file(dataset_dir: Path, found: Tuned, tmp_path: Path) -> None:
    out = tmp_path / "tuned.toml"
    asked = ("--data", dataset_dir, *ASKED, "--trials", 4)
    result = run(*asked, "--json", "--out", out)
    assert result.exit_code == 0
    printed = json.loads(result.stdout)
    assert printed["options"] == found.options == read_options(out)[1]
    assert printed["data"]["sha256"] == found.data["sha256"]
    assert result.stderr.count("best") == 4
    assert "0 s left" in result.stderr.splitlines()[-1]
    again = run(*asked, "--out", out)
    assert "choose another --out" in str(again.exception)


def test_the_command_says_what_it_found(dataset_dir: Path, found: Tuned) -> None:
    asked = ("--data", dataset_dir, *ASKED, "--trials", 1)
    result = run(*asked, "-q")
    assert result.stderr == ""
    assert found.trials[0].accuracy is not None
    assert f"validation accuracy {100 * found.trials[0].accuracy:.1f} %" in result.stdout
    assert "1 trials (random), 0 failed" in result.stdout
