"""The model for a dataset that nobody trained for: kept in the user's cache for the next process."""

from __future__ import annotations

import os
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from fewnode._system.kept import Kept
from fewnode.dataset import Dataset
from fewnode.formats.directory import save_dataset
from fewnode.formats.sources import load
from fewnode.model import recognise
from fewnode.model.estimator import Estimator
from fewnode.model.recognise import is_kept, untrained
from sizes import begun


@pytest.fixture(name="cache")
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(recognise, "MODELS", Kept(0))  # as in a process for each question
    return tmp_path / "cache" / "fewnode"


@pytest.fixture(name="home")
def _home(worded: Dataset, tmp_path: Path, cache: Path) -> Path:
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

    monkeypatch.setattr(Estimator, "fit", watched)
    return seen


def answer(model: Estimator, data: Dataset) -> np.ndarray:
    return model.predict_proba(data, [0, 30, 60], ["a", "b", "c"], np.arange(100))


def test_it_is_fitted_once_and_answers_the_same_from_the_cache(home: Path, cache: Path, fits: list[str]) -> None:
    before = sorted(home.rglob("*"))
    data = load(str(home))
    assert not is_kept(data)
    first = answer(untrained(data), data)
    assert is_kept(data)
    assert sorted(home.rglob("*")) == before, "nothing is written beside a dataset"
    again = load(str(home))
    model = untrained(again)
    assert model.has_space(again), "nothing is computed again"
    assert np.array_equal(first, answer(model, again))
    assert len(fits) == 1
    assert len(list((cache / "models").iterdir())) == 1, "nothing is left beside"


def test_what_a_stranger_puts_beside_a_dataset_is_not_read(home: Path, cache: Path, fits: list[str]) -> None:
    """A whole cache of theirs, and runs under every name that it has there."""
    data = load(str(home))
    untrained(data)
    (kept,) = (cache / "models").iterdir()
    for name in (".gpn-plus", "fewnode", ".cache", kept.name):
        shutil.copytree(kept, home / name)
    shutil.rmtree(cache)
    again = load(str(home))
    assert not is_kept(again)
    untrained(again)
    assert len(fits) == 2


@pytest.mark.parametrize("harm", ["weights", "embedding", "manifest", "gone", "a file", "cut"])
def test_what_was_damaged_is_made_again(home: Path, cache: Path, fits: list[str], harm: str) -> None:
    data = load(str(home))
    right = answer(untrained(data), data)
    (folder,), (embedding,) = (cache / "models").iterdir(), (cache / "embeddings").iterdir()
    path = embedding / "embedding.safetensors" if harm == "embedding" else folder / "model.safetensors"
    if harm in ("weights", "embedding"):
        blob = bytearray(path.read_bytes())
        blob[-3] ^= 64
        path.write_bytes(bytes(blob))
    elif harm == "manifest":
        (folder / "model.json").write_text("{")
    elif harm == "cut":
        path.write_bytes(path.read_bytes()[:100])
    else:
        shutil.rmtree(folder)
        if harm == "a file":
            folder.write_text("not a folder")
    again = load(str(home))
    assert np.array_equal(answer(untrained(again), again), right)
    assert len(fits) == (1 if harm == "embedding" else 2)


@pytest.mark.skipif(os.name == "nt" or not hasattr(os, "geteuid"), reason="permissions of POSIX")
def test_a_folder_that_cannot_be_written_is_no_obstacle(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fits: list[str]
) -> None:
    home.chmod(0o555)
    data = load(str(home))
    right = answer(untrained(data), data)
    assert np.array_equal(right, answer(untrained(load(str(home))), data))
    assert len(fits) == 1
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))  # nor can the cache
    assert np.array_equal(right, answer(untrained(load(str(home))), data))


def test_two_processes_at_once_both_answer_and_leave_one_model(home: Path, cache: Path, tmp_path: Path) -> None:
    def write(to: Path) -> None:
        data = load(str(home))
        np.save(to, untrained(data).predict_proba(data, [0, 30], ["a", "b"], np.arange(100)))

    files = [tmp_path / "one.npy", tmp_path / "other.npy"]
    running = [begun(partial(write, to)) for to in files]
    assert [os.waitpid(process, 0)[1] for process in running] == [0, 0]
    assert np.array_equal(*(np.load(file).round(4) for file in files))
    data = load(str(home))
    assert is_kept(data)
    assert len(list((cache / "models").iterdir())) == 1
