"""`fewnode.recognise`: a network and what one looks for, nothing else."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import fewnode
from fewnode import Class, FewnodeError, recognise
from fewnode.dataset import ClassSplit, Dataset
from fewnode.graph import Graph
from fewnode.recognition.answers import DESCRIPTION
from graphs import TOPICS

NAMES = list(TOPICS)
NOBODY = ClassSplit((), (), ())


def right(found: fewnode.Answers, data: Dataset) -> float:
    labels = np.array(found.classes)[found.probabilities.argmax(axis=1)]
    return float(np.mean(labels == np.array(NAMES)[data.y]))


WAYS = {
    "nodes": {name: [25 * c, 25 * c + 1] for c, name in enumerate(NAMES)},
    "a name": dict.fromkeys(NAMES, ""),
    "a sentence": {name: f"what people {words} with" for name, words in TOPICS.items()},
    "both": {name: Class([25 * c], text=TOPICS[name]) for c, name in enumerate(NAMES)},
    "mixed": {"mail": [0, 1], "vpn": TOPICS["vpn"], "games": Class([50], text=""), "music": Class(["n75", "n76"])},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("transductive", [False, True])
@pytest.mark.filterwarnings("ignore::fewnode.UnusedInput")
def test_every_way_of_giving_classes_finds_them(worded: Dataset, way: str, transductive: bool) -> None:
    found = recognise(worded, WAYS[way], transductive=transductive)
    assert found.classes == sorted(NAMES)
    assert right(found, worded) > 0.85
    assert len(found.nodes) == worded.graph.n
    assert np.allclose(found.probabilities.sum(axis=1), found.member, atol=1e-5)


def test_why_names_descriptions_too(worded: Dataset) -> None:
    found = recognise(
        worded, {"mail": Class([0], text=TOPICS["mail"]), "vpn": TOPICS["vpn"]}, ["n9", "n30"], explain=True
    )
    assert found.support == [("n0", "mail"), (DESCRIPTION, "mail"), (DESCRIPTION, "vpn")]
    assert found.nearest[1][0] == DESCRIPTION
    assert found.why is not None
    assert found.why.beta[:2].sum() == pytest.approx(1)
    assert found.why.beta[2] == pytest.approx(1)
    assert found.support_csv().splitlines()[0] == "node,class,beta"
    assert found.to_json()["support"][2]["node"] == DESCRIPTION


def test_a_graph_alone_and_a_model_of_ones_own(worded: Dataset, planted: Dataset) -> None:
    assert recognise(worded.graph, {"a": [0, 1], "b": [30]}, [5, 40], closed_set=True).labels == ["a", "b"]
    own = fewnode.Estimator("propagation", way=3, shot=3).fit(planted)
    members = [np.flatnonzero(planted.y == c) for c in (10, 11)]
    found = recognise(planted, {"a": members[0][:2], "b": members[1][:2]}, members[0][5:7], model=own)
    assert found.probabilities.argmax(axis=1).tolist() == [0, 0]
    with pytest.raises(FewnodeError, match="propagation cannot read descriptions of classes; gpn-plus can"):
        recognise(worded, {"a": [0], "b": "a tunnel"}, model=fewnode.Estimator("propagation", 2, 1).fit(_based(worded)))


def _based(data: Dataset) -> Dataset:
    return replace(data, split=ClassSplit((0, 1), (2, 3), ()))


# --- bad input: answered, or refused in a sentence that helps ---------------------------------------------------------


@pytest.mark.parametrize("x", [np.ones((100, 4)), np.zeros((100, 4)), sp.csr_array((100, 4)), np.zeros((100, 0))])
def test_attributes_that_say_nothing_leave_it_to_the_edges(worded: Dataset, x: object) -> None:
    data = replace(worded, graph=Graph(worded.graph.adj, x), feature_names=None)
    found = recognise(data, {name: list(range(25 * c, 25 * c + 5)) for c, name in enumerate(NAMES)})
    assert right(found, worded) > 0.5
    alone = replace(data, graph=Graph.from_edges(np.zeros((2, 0), np.int64), 100, x))
    with pytest.raises(FewnodeError, match="give a table of edges, or columns that describe nodes"):
        recognise(alone, {"mail": [0], "vpn": [30]})


def test_a_node_of_which_nothing_is_known_is_named() -> None:
    y = np.repeat(range(4), 10)
    adj = (y[:, None] == y).astype(float)
    adj[-1] = adj[:, -1] = 0
    x = np.eye(4)[y]
    x[-2:] = 0
    data = fewnode.Dataset.from_scipy(adj, x, y)
    classes = {"a": [0, 1], "b": [30, 31]}
    with pytest.warns(fewnode.UnusedInput, match="1 node has neither an attribute nor an edge, .*: '39'"):
        fewnode.recognise(data, classes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fewnode.recognise(data, classes, query=[38, 2])
