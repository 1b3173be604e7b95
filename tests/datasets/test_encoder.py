"""Text encoders, a function or a folder: what becomes of their vectors, now and later; a folder is data."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from encoders import TABLE, TOKENS, static_folder
from fewnode._system.files import cache_directory
from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.formats.directory import load_dataset, save_dataset
from fewnode.graph import Block
from fewnode.recognition.description import describe, opaque
from fewnode.review.reasons import shared_words
from fewnode.tables import encoder as encoders_of_ours
from fewnode.tables.encoder import Encoder
from fewnode.tables.extend import extend
from fewnode.tables.read import read_tables

NODES: dict[str, list[Any]] = {
    "id": ["a", "b", "c", "d"],
    "about": ["send mail", "filter mail", "vpn", None],
    "more": ["now", None, "net", None],
}
EDGES = {"s": ["a", "b", "c"], "t": ["b", "c", "d"]}


def letters(texts: list[str]) -> np.ndarray[Any, Any]:
    """How often each of eight letters is in a text: similar texts, similar vectors."""
    return np.array([[text.lower().count(letter) for letter in "aeilmnst"] for text in texts], float)


def backwards(texts: list[str]) -> np.ndarray[Any, Any]:
    return letters(texts)[:, ::-1]


def read(encoder: Any = letters, **options: Any) -> Dataset:
    roles = {"text": ["about", "more"], "min_count": 1, "max_share": 1}
    return read_tables(NODES, EDGES, encoder=encoder, name="net", **{**roles, **options})


@pytest.fixture(name="data")
def _data() -> Dataset:
    return read()


def encoded(data: Dataset, x: Any = None) -> np.ndarray[Any, Any]:
    """The columns that the encoder made."""
    (block,) = (block for block in data.graph.blocks if block.name == "encoded text")
    x = data.graph.x if x is None else x
    return (x.toarray() if sp.issparse(x) else np.asarray(x))[:, block.start : block.stop]


def test_words_and_vectors_stand_side_by_side(data: Dataset) -> None:
    assert data.graph.blocks == (
        Block("words", 0, 6, "words"),
        Block("vector", 6, 14, "encoded text"),
        Block("numbers", 14, 15, "missing"),
    )
    vectors = letters(["send mail\nnow", "filter mail", "vpn\nnet"])
    expected = (vectors - vectors.mean(axis=0)) / (vectors - vectors.mean(axis=0)).std()
    np.testing.assert_allclose(encoded(data), [*expected, np.zeros(8)], atol=1e-6)
    assert data.info["columns"]["encoded text"] == "vector"
    assert data.info["why"]["encoded text"] == "about, more through letters"


def test_new_nodes_go_through_the_same_encoder(data: Dataset, tmp_path: Path) -> None:
    save_dataset(data, tmp_path / "d")
    kept = load_dataset(tmp_path / "d")
    new = {"id": ["e"], "about": ["filter mail"], "more": [None]}
    more = extend(kept, new, encoder=letters)
    np.testing.assert_array_equal(encoded(more)[4], encoded(data)[1])
    np.testing.assert_array_equal(encoded(extend(kept, new, encoder=letters, alone=True))[0], encoded(data)[1])
    blank = extend(kept, {**new, "about": [" "]}, encoder=letters)
    assert not encoded(blank)[4].any()
    for encoder, problem in (
        (None, "texts of net went through the function letters; give it: encoder=letters"),
        (backwards, "texts of net went through the encoder letters"),
    ):
        with pytest.raises(FewnodeError) as caught:
            extend(kept, new, encoder=encoder)
        assert problem in str(caught.value)


def test_vectors_alone_can_be_described() -> None:
    data = read(min_count=4)
    assert [block.kind for block in data.graph.blocks] == ["vector", "numbers"]
    found = describe(data, "filter mail, 2 times", encoder=letters)
    assert (found.known, found.unknown, found.numbers) == ((), (), ())
    assert encoded(data, found.x).any()
    assert [opaque(data, name) for name in ("mail", "c17", "class 3")] == [False, True, False]
    assert shared_words(found, data, [0, 1]) == [((), ()), ((), ())]


def test_an_encoder_where_there_is_none() -> None:
    data = read(None)
    with pytest.raises(FewnodeError, match="texts of net went through no encoder, so a description cannot"):
        describe(data, "mail", encoder=letters)
    with pytest.raises(FewnodeError, match="texts of net went through no encoder, so those of new nodes cannot"):
        extend(data, {"id": ["e"], "about": ["x"], "more": [""]}, encoder=letters)
    with pytest.raises(FewnodeError, match="an encoder needs text, and no column is; name one: `text` COLUMN"):
        read_tables({"id": ["a", "b"], "size": [1, 2]}, {"s": ["a"], "t": ["b"]}, encoder=letters)
    with pytest.raises(FewnodeError, match="no text to encode in about"):
        read_tables({"id": ["a"], "about": [""]}, {"s": ["a"], "t": ["a"]}, text="about", encoder=letters)


@pytest.mark.parametrize(
    ("encoder", "problem"),
    [
        (lambda texts: [1.0] * len(texts), "made float64 (1,) of 1 texts, expected a row of numbers each"),
        (lambda texts: [["a"]] * len(texts), "made <U1 (1, 1) of 1 texts"),
        (lambda texts: np.zeros((len(texts), 0)), "made vectors of 0 numbers, expected 1 to 65,536"),
        (lambda texts: [[np.nan]] * len(texts), "made numbers that are not finite of 'The quick"),
        (lambda texts: [[1.0] * (1 + ("mail" in texts[0]))] * len(texts), "of 2 numbers, expected 1 as before"),
        (lambda texts: 1 / 0, "failed (ZeroDivisionError: division by zero)"),
        (7, "the encoder is a int, expected a function or a folder"),
        ("no/such/folder", "no/such/folder: no such folder; an encoder is a folder on this machine"),
    ],
)
def test_encoders_that_are_none(encoder: Any, problem: str) -> None:
    with pytest.raises(FewnodeError) as caught:
        read(encoder)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    "stored",
    [
        {},
        {"name": 7},
        {"probe": ["x"]},
        {"probe": [float("nan")]},
        {"path": 7},
        {"probe": [0.0] * 99},
        {"sha256": None},
    ],
)
def test_a_stored_encoder_of_a_stranger_is_checked(data: Dataset, stored: dict[str, Any]) -> None:
    held = Encoder.of(letters).stored.model_dump()
    with pytest.raises(FewnodeError, match="the stored encoder is not one that fewnode wrote"):
        Encoder.of_dataset({**held, **stored} if stored else {}, letters, "net")


# --- a folder -----------------------------------------------------------------------------------------------------

TEXTS = ["send the mail", "mail", "VPN unheard-of", "", "unheard"]


def mean(*tokens: str) -> Any:
    return np.mean([TABLE[TOKENS.index(token)] for token in tokens], axis=0)


# --- a folder as such: no library is needed -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({}, "no encoder that can be read; expected model.safetensors and tokenizer.json of model2vec"),
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


# --- with a dataset -----------------------------------------------------------------------------------------------


def read_folder(folder: Path) -> Dataset:
    nodes = {"id": ["a", "b", "c"], "about": ["send mail", "the vpn", "filter mail"]}
    return read_tables(
        nodes, {"s": ["a"], "t": ["b"]}, text="about", min_count=1, max_share=1, encoder=folder, name="net"
    )


def test_a_dataset_finds_its_encoder_again_and_refuses_another(tmp_path: Path) -> None:
    pytest.importorskip("model2vec")
    folder = static_folder(tmp_path / "tiny")
    save_dataset(read_folder(folder), tmp_path / "d")
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
    known = set(cache_directory("vectors").glob("*.npy"))
    expected = encoder.vectors(texts)
    told: list[Any] = []
    np.testing.assert_array_equal(encoder.vectors(texts, lambda *count: told.append(count)), expected)
    assert told == []  # nothing was encoded
    [path] = set(cache_directory("vectors").glob("*.npy")) - known
    for blob in (b"", b"no array", path.read_bytes()[:-1]):
        path.write_bytes(blob)
        np.testing.assert_array_equal(encoder.vectors(texts), expected)
