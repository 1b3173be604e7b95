"""An embedding that was kept is that of the same model and network, or it is computed anew."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fewnode.dataset import Dataset
from fewnode.formats.directory import read_record, write_record
from fewnode.model import model_files
from fewnode.model.estimator import Estimator
from fewnode.model.model_files import KIND, keep, load_model, recall
from fewnode.vectors import as_arrays


@pytest.fixture(scope="module", params=["gpn-plus", "propagation"])
def run(
    request: pytest.FixtureRequest, planted: Dataset, fitted_plus: Estimator, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    out: Path = tmp_path_factory.mktemp("kept") / "run"
    (fitted_plus if request.param == "gpn-plus" else Estimator(request.param, 3, 3).fit(planted)).save(out)
    return out


@pytest.fixture(name="cache", autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "fewnode" / "embeddings"


def test_what_was_kept_is_what_is_computed(run: Path, planted: Dataset) -> None:
    first, second = load_model(run), load_model(run)
    assert not recall(first, planted), "nothing is kept yet"
    keep(first, planted)
    assert recall(second, planted)
    assert second.has_space(planted)
    assert not load_model(run).has_space(planted)
    ours, theirs = (as_arrays(model.space(planted).embedding) for model in (first, second))
    assert ours.keys() == theirs.keys()
    assert all(np.array_equal(theirs[name], array) for name, array in ours.items())
    support, y = np.arange(6), np.arange(6) % 3
    asked = [model.predict_proba(planted.graph, support, y, np.arange(6, 30)) for model in (first, second)]
    assert np.array_equal(*asked)


@pytest.mark.parametrize("harm", ["cut", "flip", "rows", "width", "type", "folder", "gone", "names"])
def test_what_is_not_whole_does_not_count(run: Path, planted: Dataset, cache: Path, harm: str) -> None:
    model = load_model(run)
    keep(model, planted)
    (place,) = cache.iterdir()
    path, own = place / "embedding.safetensors", {k: array.copy() for k, array in read_record(place, KIND)[1].items()}
    if harm in ("cut", "flip"):
        blob = path.read_bytes()
        path.write_bytes(blob[:-1] + (bytes([blob[-1] ^ 1]) if harm == "flip" else b""))
    elif harm in ("folder", "gone"):
        path.unlink()
        if harm == "folder":
            path.mkdir()
    else:
        z = own["z"]
        own["z"] = {"rows": z[:-1], "width": z[:, 0].copy(), "type": z.astype(np.float64)}.get(harm, z)
        write_record(place, KIND, {}, {"y": own["z"]} if harm == "names" else own)
    again = load_model(run)
    assert not recall(again, planted)
    assert np.array_equal(again.embedding(planted.graph), model.embedding(planted.graph))


def test_what_lies_beside_a_run_is_not_read(run: Path, planted: Dataset, cache: Path, tmp_path: Path) -> None:
    """A stranger's run may bring an embedding with it, with right checksums."""
    copy = Path(shutil.copytree(run, tmp_path / "copy"))
    keep(load_model(run), planted)
    (place,) = cache.iterdir()
    shutil.move(place, copy / place.name)
    for file in (copy / place.name).iterdir():
        shutil.copy(file, copy)
    assert not recall(load_model(copy), planted)


def test_what_was_not_used_for_longest_goes_first(
    planted: Dataset, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = [Estimator("propagation", 3, 3, seed=seed).fit(planted) for seed in range(3)]
    keep(models[0], planted)
    monkeypatch.setattr(model_files, "MAX_CACHE_BYTES", 2 * sum(f.stat().st_size for f in cache.rglob("*.*")) + 100)
    keep(models[1], planted)
    for age, place in enumerate(sorted(cache.iterdir(), key=lambda place: place.stat().st_mtime_ns, reverse=True), 1):
        os.utime(place, (time.time() - 100 * age,) * 2)
    assert recall(models[0].fresh(0).fit(planted), planted), "it is the one that was used last"
    keep(models[2], planted)
    assert [recall(model, planted) for model in models] == [True, False, True]


def test_another_network_or_model_has_its_own(run: Path, planted: Dataset) -> None:
    model = load_model(run)
    key = model_files.fingerprint(model, planted)
    assert model_files.fingerprint(load_model(run), planted) == key
    y = planted.y.copy()
    y[0] = -1
    assert model_files.fingerprint(model, replace(planted, y=y)) != key
    other = Estimator(model.method, 3, 3, seed=1).fit(planted)
    assert model_files.fingerprint(other, planted) != key


def test_without_room_nothing_is_kept_and_nothing_fails(
    run: Path, planted: Dataset, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(model_files, "write_record", full)
    keep(load_model(run), planted)
    assert not cache.exists()
