"""What a method may see, as docs/leaks.md says it. Shuffled labels are in test_conformance.py."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from fewnode.dataset import Dataset
from fewnode.graph import Graph
from fewnode.method import Embeds, Transductive
from fewnode.methods.table import METHODS, build_method
from graphs import fitted_method
from leaks import may_see

NEAR = [name for name, row in may_see().items() if row.test_nodes == "near"]


def test_the_page_has_a_row_for_every_method() -> None:
    assert set(may_see()) == set(METHODS)


def test_words_of_the_page_are_those_that_it_explains() -> None:
    for row in may_see().values():
        assert {row.training, row.validation} <= {"yes", "no", "stop", "calibration"}
        assert row.test_nodes in ("all", "all (edges)", "near")


@pytest.mark.parametrize("name", METHODS)
def test_who_has_a_transductive_mode(name: str) -> None:
    has = isinstance(build_method(name, 0, {}), Transductive | Embeds)
    assert may_see()[name].transductive == ("yes" if has else "no")


def apart(data: Dataset) -> Dataset:
    """No edge between a node of a test class and any other."""
    tested = np.isin(data.y, data.split.test)
    arcs = data.graph.adj.tocoo()
    kept = tested[arcs.row] == tested[arcs.col]
    adj = sp.csr_array((arcs.data[kept], (arcs.row[kept], arcs.col[kept])), shape=arcs.shape)
    return replace(data, graph=Graph(adj, data.graph.x))


@pytest.mark.parametrize("name", NEAR)
def test_test_nodes_that_are_near_no_base_class_leave_no_trace(name: str, planted: Dataset) -> None:
    """Their attributes are other ones, and the weights have the same bits."""
    data = apart(planted)
    tested = np.flatnonzero(np.isin(data.y, data.split.test))
    x = data.graph.x.toarray()
    x[tested] = 3 * x[np.random.default_rng(0).permutation(tested)]
    other = replace(data, graph=Graph(data.graph.adj, sp.csr_array(x)))
    one, two = (weights(name, each) for each in (data, other))
    assert one.keys() == two.keys()
    assert all(np.array_equal(one[key], two[key]) for key in one)


def weights(name: str, data: Dataset) -> dict[str, Any]:
    found: dict[str, Any] = fitted_method(build_method(name, 1, {"episodes": 5}), data, 3, 2).state()
    return found
