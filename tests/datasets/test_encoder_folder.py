"""Encoders in a folder: what they make of texts, that they are known again, and that a stranger's folder is data."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from encoders import TABLE, TOKENS, static_folder, write_tokenizer
from fewnode._system.files import cache_directory
from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.formats.directory import load_dataset, save_dataset
from fewnode.recognition.description import describe
from fewnode.tables import encoder as encoders_of_ours
from fewnode.tables.encoder import Encoder
from fewnode.tables.extend import extend
from fewnode.tables.read import read_tables

TEXTS = ["send the mail", "mail", "VPN unheard-of", "", "unheard"]


def mean(*tokens: str) -> Any:
    return np.mean([TABLE[TOKENS.index(token)] for token in tokens], axis=0)


# --- a folder as such: no library is needed -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({}, "no encoder that can be read; expected model.safetensors and tokenizer.json of model2vec"),
        ({"pytorch_model.bin": b"", "tokenizer.json": b"{}"}, "no encoder that can be read"),
        ({"modules.json": b"[]", "pytorch_model.bin": b""}, "weights in .bin files can run code"),
        ({"tokenizer.json": b"{}", "model.safetensors": b"12345678"}, "cannot be read as an encoder"),
        ({f"{i}.json": b"" for i in range(101)}, "101 files, expected at most 100; this is no encoder"),
    ],
)
def test_folders_that_are_no_encoder(files: dict[str, bytes], problem: str, tmp_path: Path) -> None:
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(FewnodeError) as caught:
        Encoder.of(tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert problem in str(caught.value)


def test_weights_beyond_the_limit_are_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    static_folder(tmp_path)
    monkeypatch.setattr(encoders_of_ours, "MAX_WEIGHTS", 100)
    with pytest.raises(FewnodeError, match="too large for what it is"):
        Encoder.of(tmp_path)


def test_a_library_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "model2vec", None)
    with pytest.raises(FewnodeError) as caught:
        Encoder.of(static_folder(tmp_path))
    assert str(caught.value) == "this encoder needs model2vec: pip install 'fewnode[text]'"


@pytest.mark.parametrize(
    ("modules", "problem"),
    [
        ([{"type": "os.system", "path": ""}], "a module of type 'os.system'"),
        (
            [{"type": "sentence_transformers.util.load", "path": ""}],
            "a module of type 'sentence_transformers.util.load'",
        ),
        ([{"type": "sentence_transformers.models.Pooling", "path": "../x"}], "which is outside of the folder"),
        ([{"type": "sentence_transformers.models.Pooling", "path": "/x"}], "which is outside of the folder"),
        ([7], "expected a list of modules"),
        ({}, "expected a list of modules"),
    ],
)
def test_modules_of_a_stranger_do_not_run(modules: Any, problem: str, tmp_path: Path) -> None:
    folder = static_folder(tmp_path)
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(FewnodeError) as caught:
        Encoder.of(folder)
    assert problem in str(caught.value)


# --- model2vec ----------------------------------------------------------------------------------------------------


def test_model2vec_is_the_mean_of_known_tokens(tmp_path: Path) -> None:
    pytest.importorskip("model2vec")
    found = Encoder.of(static_folder(tmp_path / "tiny")).vectors(TEXTS)
    expected = [mean("send", "the", "mail"), mean("mail"), mean("vpn"), np.full(4, np.nan), np.zeros(4)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    unit = Encoder.of(static_folder(tmp_path / "unit", normalize=True)).vectors(TEXTS)
    np.testing.assert_allclose(np.linalg.norm(unit[:3], axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(unit[0], expected[0] / np.linalg.norm(expected[0]), rtol=1e-5)


def test_model2vec_with_weights_and_a_mapping(tmp_path: Path) -> None:
    pytest.importorskip("model2vec")
    mapping, weights = np.arange(len(TOKENS))[::-1].copy(), np.full(len(TOKENS), 2, np.float32)
    found = Encoder.of(static_folder(tmp_path, mapping=mapping, weights=weights)).vectors(["mail"])
    np.testing.assert_allclose(found[0], 2 * TABLE[::-1][TOKENS.index("mail")])


def test_a_tokenizer_that_is_none(tmp_path: Path) -> None:
    pytest.importorskip("model2vec")
    for i, text in enumerate(("", "{}", "[" * 9999, '{"version": "1.0", "model": {"type": "Nothing"}}')):
        folder = static_folder(tmp_path / str(i))
        (folder / "tokenizer.json").write_text(text)
        with pytest.raises(FewnodeError, match="cannot be read as an encoder"):
            Encoder.of(folder)


# --- with a dataset -----------------------------------------------------------------------------------------------


def read(folder: Path) -> Dataset:
    nodes = {"id": ["a", "b", "c"], "about": ["send mail", "the vpn", "filter mail"]}
    return read_tables(
        nodes, {"s": ["a"], "t": ["b"]}, text="about", min_count=1, max_share=1, encoder=folder, name="net"
    )


def test_a_dataset_finds_its_encoder_again_and_refuses_another(tmp_path: Path) -> None:
    pytest.importorskip("model2vec")
    folder = static_folder(tmp_path / "tiny")
    save_dataset(read(folder), tmp_path / "d")
    data = load_dataset(tmp_path / "d")
    columns = slice(data.graph.blocks[1].start, data.graph.blocks[1].stop)
    new = {"id": ["d"], "about": ["filter mail"]}
    expected = data.graph.x.toarray()[2, columns]
    for x in (extend(data, new).graph.x, describe(data, "filter mail").x):
        np.testing.assert_allclose(x.toarray()[-1, columns], expected, rtol=1e-5)
    moved = folder.rename(tmp_path / "moved")
    with pytest.raises(FewnodeError, match=r"texts of net went through tiny, which cannot be opened: .*no such folder"):
        extend(data, new)
    assert extend(data, new, encoder=moved).graph.n == 4
    other = static_folder(tmp_path / "tiny", embeddings=TABLE + 1)
    for encoder in (None, other):
        with pytest.raises(FewnodeError, match=r"another (encoder|one)"):
            describe(data, "mail", encoder=encoder)


def test_what_was_encoded_is_remembered_and_a_damaged_memory_is_not_believed(tmp_path: Path) -> None:
    pytest.importorskip("model2vec")
    encoder = Encoder.of(static_folder(tmp_path, embeddings=TABLE * 3))
    texts = [*TEXTS, *(f"send {i} the mail {i}" for i in range(100))]
    expected = encoder.vectors(texts)
    told: list[Any] = []
    np.testing.assert_array_equal(encoder.vectors(texts, lambda *count: told.append(count)), expected)
    assert told == []  # nothing was encoded
    [path] = cache_directory("vectors").glob("*.npy")
    for blob in (b"", b"no array", path.read_bytes()[:-1]):
        path.write_bytes(blob)
        np.testing.assert_array_equal(encoder.vectors(texts), expected)


def test_a_tokenizer_alone_is_no_encoder(tmp_path: Path) -> None:
    write_tokenizer(tmp_path)
    with pytest.raises(FewnodeError, match="no encoder that can be read"):
        Encoder.of(tmp_path)
