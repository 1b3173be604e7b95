"""A function as a text encoder: what becomes of its vectors, now and for nodes that come later."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.formats.directory import load_dataset, save_dataset
from fewnode.graph import Block
from fewnode.recognition.description import describe, opaque
from fewnode.review.reasons import shared_words
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
        (lambda texts: [[1.0]] * (len(texts) + 1), "made float64 (2, 1) of 1 texts"),
        (lambda texts: [["a"]] * len(texts), "made <U1 (1, 1) of 1 texts"),
        (lambda texts: np.zeros((len(texts), 0)), "made vectors of 0 numbers, expected 1 to 65,536"),
        (lambda texts: [[np.nan]] * len(texts), "made numbers that are not finite of 'The quick"),
        (lambda texts: [[1e300]] * len(texts), "made numbers that are not finite"),
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


def test_an_encoding_that_does_not_fit_its_blocks(data: Dataset) -> None:
    other = replace(data, graph=replace(data.graph, blocks=data.graph.blocks[:1]))
    with pytest.raises(FewnodeError, match="net: the stored encoding of its columns is not one that fewnode wrote"):
        describe(other, "mail", encoder=letters)


def test_an_error_of_ours_in_an_encoder_is_told_as_it_is() -> None:
    def refuses(texts: list[str]) -> Any:
        raise FewnodeError("no")

    with pytest.raises(FewnodeError, match=r"^no$"):
        read(refuses)


def test_a_name_that_says_nothing_is_no_text(data: Dataset) -> None:
    alone = read(min_count=4)
    with pytest.raises(FewnodeError, match="class 'c17': it has no description"):
        describe(alone, "", "c17", encoder=letters)


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
