"""The model for a dataset that nobody trained for: kept for the next process, and believed only if it is one's own."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from fewnode import estimator
from fewnode.dataset import ClassSplit, Dataset
from fewnode.datasets import load
from fewnode.estimator import Estimator
from fewnode.predict import untrained as module
from fewnode.predict.untrained import FOLDER, is_kept, untrained
from fewnode.storage.io import save_dataset
from sizes import begun


@pytest.fixture(name="home")
def _home(worded: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    save_dataset(worded, tmp_path / "d")
    return tmp_path / "d"


@pytest.fixture(name="fits")
def _fits(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The datasets that a model was fitted for."""
    seen: list[str] = []
    fit = Estimator.fit

    def watched(self: Estimator, data: Dataset, *more: object) -> Estimator:
        seen.append(data.name)
        return fit(self, data, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(estimator.Estimator, "fit", watched)
    return seen


def answer(model: Estimator, data: Dataset) -> np.ndarray:
    return model.predict_proba(data, [0, 30, 60], ["a", "b", "c"], np.arange(100))


def test_it_is_fitted_once_and_answers_the_same_from_its_folder(home: Path, fits: list[str]) -> None:
    data = load(str(home))
    assert not is_kept(data)
    first = answer(untrained(data), data)
    assert is_kept(data)
    assert {path.name for path in (home / FOLDER).iterdir()} >= {"model.json", "model.safetensors"}
    again = load(str(home))
    model = untrained(again)
    assert model.has_embedding(again.graph), "nothing is computed again"
    assert np.array_equal(first, answer(model, again))
    assert len(fits) == 1
    assert [path.name for path in home.iterdir() if path.name.startswith(f"{FOLDER}.")] == [], "nothing is left beside"


def test_a_network_without_a_folder_is_kept_in_the_users_cache(
    worded: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fits: list[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert np.array_equal(*(answer(untrained(worded), worded) for _ in range(2)))
    assert len(fits) == 1
    assert [path.name for path in (tmp_path / "cache" / "fewnode").iterdir()] == [worded.sha256[:32]]


def test_another_networks_model_is_not_taken(home: Path, worded: Dataset, tmp_path: Path, fits: list[str]) -> None:
    """Base classes count, too: a dataset with others is another one."""
    untrained(load(str(home)))
    based = replace(worded, split=ClassSplit((0, 1), (2, 3), ()))
    save_dataset(based, tmp_path / "other")
    (home / FOLDER).rename(tmp_path / "other" / FOLDER)
    data = load(str(tmp_path / "other"))
    model = untrained(data)
    assert len(fits) == 2
    assert model.trained_["classes"]["train"] == ["mail", "vpn"]
    assert untrained(data).trained_["classes"]["train"] == ["mail", "vpn"]
    assert len(fits) == 2, "the right one is there now"


def test_another_users_model_is_not_believed(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fits: list[str]
) -> None:
    """The key that signs is another one."""
    data = load(str(home))
    right = answer(untrained(data), data)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "stranger"))
    assert np.array_equal(answer(untrained(load(str(home))), data), right)
    assert len(fits) == 2
    untrained(load(str(home)))
    assert len(fits) == 2, "it is this user's now"


@pytest.mark.parametrize("harm", ["weights", "embedding", "manifest", "gone", "a file", "version", "cut"])
def test_a_model_that_was_changed_is_made_again(home: Path, fits: list[str], harm: str) -> None:
    data = load(str(home))
    right = answer(untrained(data), data)
    folder = home / FOLDER
    if harm in ("weights", "embedding"):
        path = folder / {"weights": "model.safetensors", "embedding": "embedding.safetensors"}[harm]
        blob = bytearray(path.read_bytes())
        blob[-3] ^= 64
        path.write_bytes(bytes(blob))
    elif harm == "manifest":
        (folder / "model.json").write_text("{")
    elif harm == "cut":
        path = folder / "model.safetensors"
        path.write_bytes(path.read_bytes()[:100])
    elif harm == "version":
        meta = json.loads((folder / "model.json").read_text())
        meta["trained"]["versions"]["fewnode"] = "0.0.1"
        (folder / "model.json").write_text(json.dumps(meta))
    else:
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
        if harm == "a file":
            folder.write_text("not a folder")
    again = load(str(home))
    assert np.array_equal(answer(untrained(again), again), right)
    assert len(fits) == 2


@pytest.mark.skipif(os.name == "nt" or not hasattr(os, "geteuid"), reason="permissions of POSIX")
def test_a_folder_that_cannot_be_written_is_no_obstacle(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fits: list[str]
) -> None:
    monkeypatch.setattr(module.os, "access", lambda path, mode: False)
    data = load(str(home))
    right = answer(untrained(data), data)
    assert not (home / FOLDER).exists()
    assert np.array_equal(right, answer(untrained(load(str(home))), data))
    assert len(fits) == 1, "it is in the cache"
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))  # nor can the cache
    assert np.array_equal(right, answer(untrained(load(str(home))), data))


def test_two_processes_at_once_both_answer_and_leave_one_model(home: Path, tmp_path: Path) -> None:
    def write(to: Path) -> None:
        data = load(str(home))
        np.save(to, untrained(data).predict_proba(data, [0, 30], ["a", "b"], np.arange(100)))

    files = [tmp_path / "one.npy", tmp_path / "other.npy"]
    running = [begun(partial(write, to)) for to in files]
    assert [os.waitpid(process, 0)[1] for process in running] == [0, 0]
    assert np.array_equal(*(np.load(file).round(4) for file in files))
    data = load(str(home))
    assert is_kept(data)
    assert [path.name for path in home.iterdir() if path.name.startswith(FOLDER)] == [FOLDER]
