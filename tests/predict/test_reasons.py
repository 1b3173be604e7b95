"""Why a node is in a class: on a network small enough to know all of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from fewnode import Class, Estimator, FewnodeError, Graph, Relation
from fewnode.dataset import ClassSplit, Dataset
from fewnode.graph import Block
from fewnode.model.recognise import untrained
from fewnode.recognition.classes import Given
from fewnode.review.reasons import ClassReasons, SharedWord, Step

WORDS = ("mail", "smtp", "tunnel", "common")


def small() -> Dataset:
    """a and b are linked by both kinds, b - c - d is a way by `uses`, e is alone."""
    x = np.array([[1, 1, 0, 1], [1, 1, 0, 1], [1, 0, 0, 1], [0, 0, 1, 1], [0, 0, 1, 0]], np.float32)
    uses, likes = np.zeros((5, 5)), np.zeros((5, 5))
    for i, j in ((1, 2), (2, 3)):
        uses[i, j] = uses[j, i] = 1
    likes[0, 1] = likes[1, 0] = 1
    graph = Graph.from_relations(
        [Relation("uses", sp.csr_array(uses)), Relation("likes", sp.csr_array(likes))], sp.csr_array(x)
    )
    empty = ClassSplit((), (), ())
    return Dataset(graph, np.array([0, 0, 0, 1, 1]), empty, node_names=tuple("abcde"), feature_names=WORDS)


@pytest.fixture(scope="module")
def reasons() -> ClassReasons:
    data = small()
    model = Estimator("gpn-plus").fit(data)
    return ClassReasons(model.question(data, Given.of(data, {"mail": Class([0], [4])})), "mail")


def test_a_neighbour_of_an_example(reasons: ClassReasons) -> None:
    found = reasons.of([1])[0]
    assert found.words[:2] in ((SharedWord("smtp", 1), SharedWord("mail", 1)), (SharedWord("mail", 1), found.words[1]))
    assert found.path == (Step("a", "likes"),)
    assert found.nearest_example is not None
    assert found.nearest_example.node == "a"
    assert found.nearest_counter is not None
    assert found.nearest_counter.node == "e"
    assert found.nearest_counter.similarity < found.nearest_example.similarity
    assert {vote.view for vote in found.views} <= {"attributes", "structure"}
    assert all(-1 <= vote.vote <= 1 for vote in found.views)


def test_ways_have_at_most_three_edges_and_do_not_come_back(reasons: ClassReasons) -> None:
    ways = {found.node: found.path for found in reasons.of([2, 3, 4])}
    assert ways["c"] == (Step("b", "uses"), Step("a", "likes"))
    assert ways["d"] == (Step("c", "uses"), Step("b", "uses"), Step("a", "likes"))
    assert ways["e"] is None


def test_no_two_rows_have_the_same_sentence_and_an_example_does_not_explain_itself(reasons: ClassReasons) -> None:
    found = reasons.of([0, 1, 2, 3])
    assert len({each.sentence for each in found}) == 4
    assert found[0].nearest_example is None
    assert found[0].words == ()
    told = found[1].to_json()
    assert told["class"] == "mail"
    assert told["sentence"] == found[1].sentence


def test_answers_explain_themselves(worded: Dataset) -> None:
    asked = untrained(worded).ask(worded, {"mail": Class([0, 1], no=[80]), "vpn": [30, 33]})
    found = asked.judge(["n2", "n31", "n90"], explain=True)
    assert found.because is not None
    assert [bool(text) for text in found.because] == [label != "none of these" for label in found.labels]
    assert asked.why("n2").sentence == found.because[0]
    assert asked.why("n2", "vpn").label == "vpn"
    header, first = found.to_csv().splitlines()[:2]
    assert header.endswith(",because")
    assert "most like" in first
    with pytest.raises(FewnodeError, match="no class 'ham'"):
        asked.why("n2", "ham")


def test_an_amount_is_not_shared_by_being_there_but_a_category_is() -> None:
    data = small()
    x = np.column_stack([data.graph.x.toarray(), [0.5, -1.2, 0.3, 0.0, 0.4], [1, 1, 0, 0, 1]]).astype(np.float32)
    blocks = (Block("words", 0, 4), Block("numbers", 4, 6))
    graph = replace(data.graph, x=sp.csr_array(x), blocks=blocks)
    data = replace(data, graph=graph, feature_names=(*WORDS, "size (number)", "country=FR"))
    question = Estimator("gpn-plus").fit(data).question(data, Given.of(data, {"mail": [0]}))
    shared = {each.word for each in ClassReasons(question, "mail").of([1])[0].words}
    assert "country=FR" in shared
    assert "size (number)" not in shared
