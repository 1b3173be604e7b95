"""An embedding that was kept is that of the same model and network, or it is computed anew."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from fewnode.dataset import Dataset
from fewnode.estimator import Estimator, load_model
from fewnode.predict import embedding_cache
from fewnode.predict.embedding_cache import keep, recall
from fewnode.storage.io import read_record, write_record


@pytest.fixture(scope="module", params=["gpn-plus", "propagation"])
def run(
    request: pytest.FixtureRequest, planted: Dataset, fitted_plus: Estimator, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    out: Path = tmp_path_factory.mktemp("kept") / "run"
    (fitted_plus if request.param == "gpn-plus" else Estimator(request.param, 3, 3).fit(planted)).save(out)
    return out


def test_what_was_kept_is_what_is_computed(run: Path, planted: Dataset, tmp_path: Path) -> None:
    first, second = load_model(run), load_model(run)
    assert not recall(tmp_path, first, planted), "nothing is kept yet"
    keep(tmp_path, first, planted)
    assert recall(tmp_path, second, planted)
    assert second.has_embedding(planted.graph)
    assert not load_model(run).has_embedding(planted.graph)
    for ours, theirs in zip(first.embedded(planted.graph), second.embedded(planted.graph), strict=True):
        assert torch.equal(ours, theirs)
    support, y = np.arange(6), np.arange(6) % 3
    asked = [model.predict_proba(planted.graph, support, y, np.arange(6, 30)) for model in (first, second)]
    assert np.array_equal(*asked)


@pytest.mark.parametrize(
    "harm", ["cut", "flip", "signature", "rows", "width", "infinite", "type", "folder", "gone", "names"]
)
def test_what_is_not_whole_does_not_count(run: Path, planted: Dataset, tmp_path: Path, harm: str) -> None:
    model = load_model(run)
    keep(tmp_path, model, planted)
    meta, arrays = read_record(tmp_path, embedding_cache.KIND)
    path, own = tmp_path / "embedding.safetensors", {name: array.copy() for name, array in arrays.items()}
    blob, signature = path.read_bytes(), meta["signature"]
    if harm in ("cut", "flip"):
        path.write_bytes(blob[:-1] + (bytes([blob[-1] ^ 1]) if harm == "flip" else b""))
    elif harm in ("folder", "gone"):
        path.unlink()
        if harm == "folder":
            path.mkdir()
    else:
        z = own["z"]
        z[0, 0] = np.inf if harm == "infinite" else z[0, 0]
        own["z"] = {"rows": z[:-1], "width": z[:, 0].copy(), "type": z.astype(np.float64)}.get(harm, z)
        own = {"y": own["z"]} if harm == "names" else own
        write_record(tmp_path, embedding_cache.KIND, {"signature": 64 * "0" if harm == "signature" else signature}, own)
    again = load_model(run)
    assert not recall(tmp_path, again, planted)
    assert torch.equal(again.embedding(planted.graph), model.embedding(planted.graph))


@pytest.mark.parametrize("forge", ["classes", "not a number", "narrow", "importance"])
def test_a_strangers_embedding_changes_no_answer(
    run: Path, planted: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forge: str
) -> None:
    """With the right key of model and network, and right checksums: everybody can compute those."""
    model, support, y = load_model(run), np.arange(6), np.arange(6) % 3
    right = model.predict_proba(planted.graph, support, y, np.arange(6, 60))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "stranger"))
    keep(tmp_path, model, planted)
    meta, arrays = read_record(tmp_path, embedding_cache.KIND)
    own = {name: array.copy() for name, array in arrays.items()}
    if forge == "classes":
        own["z"] = own["z"][::-1].copy()
    elif forge == "narrow":
        own["z"] = own["z"][:, :1].copy()
    else:
        own["importance" if forge == "importance" else "z"][:] = np.nan
    write_record(tmp_path, embedding_cache.KIND, meta, own)
    for home in ("user", "stranger"):
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / home))
        again = load_model(run)
        assert not recall(tmp_path, again, planted)
        assert np.array_equal(again.predict_proba(planted.graph, support, y, np.arange(6, 60)), right)


@pytest.mark.parametrize("method", ["gpn-plus", "propagation"])
def test_what_training_kept_is_found_by_the_next_process(
    planted: Dataset, fitted_plus: Estimator, tmp_path: Path, method: str
) -> None:
    model = fitted_plus if method == "gpn-plus" else Estimator(method, 3, 3, seed=2).fit(planted)
    model.save(tmp_path)
    keep(tmp_path, model, planted)
    loaded = load_model(tmp_path)
    assert recall(tmp_path, loaded, planted)
    assert torch.equal(loaded.embedding(planted.graph), model.embedding(planted.graph))


def test_another_network_model_or_number_of_threads_has_its_own(run: Path, planted: Dataset) -> None:
    model = load_model(run)
    key = embedding_cache.fingerprint(model, planted)
    assert embedding_cache.fingerprint(load_model(run), planted) == key
    y = planted.y.copy()
    y[0] = -1
    assert embedding_cache.fingerprint(model, replace(planted, y=y)) != key
    other = Estimator(model.method, 3, 3, seed=1).fit(planted)
    assert embedding_cache.fingerprint(other, planted) != key
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(before + 1)
        assert embedding_cache.fingerprint(model, planted) != key
    finally:
        torch.set_num_threads(before)


def test_without_room_nothing_is_kept_and_nothing_fails(
    run: Path, planted: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(embedding_cache, "write_record", full)
    keep(tmp_path, load_model(run), planted)
    assert list(tmp_path.iterdir()) == []


def test_a_quick_one_is_not_kept(planted: Dataset, tmp_path: Path) -> None:
    model = Estimator("gpn", 3, 3, episodes=2).fit(planted)
    keep(tmp_path, model, planted)
    assert list(tmp_path.iterdir()) == []
    assert not recall(tmp_path, model, planted)
