"""Datasets from and to what others use: SciPy, NetworkX, PyG and plain tables."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data, HeteroData, InMemoryDataset

from fewnode.dataset import ClassSplit, Dataset
from fewnode.errors import FewnodeError, UnusedInput
from fewnode.formats.convert import export_tables
from fewnode.graph import Graph
from fewnode.tables.read import read_tables
from graphs import planted, random_graph

SPLIT = ClassSplit((0,), (1,), (2,))


class One(InMemoryDataset):  # type: ignore[misc]
    """A PyG dataset of the given graphs."""

    def __init__(self, *graphs: Data) -> None:
        super().__init__(None)
        self.data, self.slices = self.collate(list(graphs))


def labelled(seed: int) -> Dataset:
    """A random graph with labels, some of them unknown, and names."""
    graph, rng = random_graph(seed), np.random.default_rng(seed)
    names = {
        "class_names": ("x", "y", "a z"),
        "node_names": tuple(f'n,"{i}' for i in range(graph.n)) if seed % 2 else None,
        "feature_names": tuple(f"f{j}" for j in range(graph.n_features)) if seed % 3 else None,
    }
    return Dataset(graph, rng.integers(-1, 3, graph.n), SPLIT, **names)  # type: ignore[arg-type]


# --- SciPy --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((sp.csr_array((2, 3)),), "2 x 3, expected a square one"),
        ((sp.csr_array((2, 2)), None, [0]), r"labels have shape \(1,\), expected one class for each of 2 nodes"),
        ((sp.csr_array((2, 2)), None, [[0, 1], [2, 0]]), "expected one class for each"),
        ((sp.csr_array((2, 2)), None, [0, 4_000_000_000]), "label of node 1 is 4000000000; class ids count from 0"),
        ((sp.csr_array((2, 2)), None, [0, -2]), "unknown labels are written -1"),
        ((sp.csr_array((2, 2)), np.eye(3)), "3 rows of attributes for 2 nodes"),
    ],
)
def test_matrices_that_do_not_fit_are_refused(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(FewnodeError, match=message):
        Dataset.from_scipy(*arguments, split=ClassSplit((), (), ()))


# --- NetworkX -----------------------------------------------------------------------------------------------------


def network() -> nx.Graph:
    g = nx.DiGraph()
    g.add_node("a", kind="bird", size=1, x=[1, 2])
    g.add_node("b", size=2.5, x=(3, 4))
    g.add_node(3, kind="fish", size=True, x=np.array([5, 6]))
    g.add_edges_from([("a", "b"), ("b", "a"), (3, "a"), (3, 3)])
    return g


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": "kinds"}, r"no node has 'kinds' \(did you mean 'kind'\?\)"),
        ({"label": "kind", "attributes": ["sise"]}, r"no node has 'sise' \(did you mean 'size'\?\)"),
        ({"label": "size", "attributes": ["kind"]}, "node 'a': 'kind' is 'bird', expected numbers"),
        ({"label": None, "attributes": ["y"]}, r"node 3: 'y' is None, expected 1 number\(s\)"),
        ({"label": None, "attributes": ["z"]}, r"node 'b': 'z' is \[1, 2\], expected 1 number\(s\)"),
    ],
)
def test_networks_without_what_was_asked_are_refused(options: dict[str, Any], message: str) -> None:
    g = network()
    nx.set_node_attributes(g, {"a": 1, "b": 2}, "y")
    nx.set_node_attributes(g, {"a": [1], "b": [1, 2], 3: [1]}, "z")
    with pytest.raises(FewnodeError, match=message):
        Dataset.from_networkx(g, **options)


# --- PyG ----------------------------------------------------------------------------------------------------------


def test_what_is_not_read_of_a_pyg_graph_is_named() -> None:
    graph = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 2]]), y=torch.tensor([0, 1, 1]), num_nodes=3)
    assert "unused" not in Dataset.from_pyg(graph, SPLIT, class_names=("x", "y", "z")).info
    graph.edge_attr, graph.pos = torch.ones(2, 4), torch.zeros(3, 2)
    graph.train_mask = torch.tensor([True, False, False])
    for source in (graph, One(graph)):
        with pytest.warns(UnusedInput, match="not used: edge_attr, pos, train_mask$") as told:
            data = Dataset.from_pyg(source, SPLIT, class_names=("x", "y", "z"))
        assert told[0].filename == __file__, "the line that is warned about is the caller's"
        assert data.info["unused"] == ["edge_attr", "pos", "train_mask"]
    for i in range(100):
        graph[f"field{i}"] = i
    with pytest.warns(UnusedInput, match="field16 and 83 more$"):
        Dataset.from_pyg(graph, SPLIT, class_names=("x", "y", "z"))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (One(*[Data(x=torch.eye(2), edge_index=torch.tensor([[0], [1]]))] * 2), "One holds 2 graphs, expected one"),
        (Data(x=torch.eye(2)), "Data has no edge_index"),
        (HeteroData(), "HeteroData has no nodes"),
        (Data(x=torch.eye(2), edge_index=torch.tensor([[0], [7]])), "edge 0: node 7 is out of range"),
        (Data(x=torch.eye(2), edge_index=torch.tensor([[0], [1]]), y=2 * torch.eye(2)), "expected one class for each"),
        (Data(x=torch.full((2, 2), torch.nan), edge_index=torch.tensor([[0], [1]])), "NaN or infinite"),
    ],
)
def test_what_is_no_network_is_refused(source: Any, message: str) -> None:
    with pytest.raises(FewnodeError, match=message):
        Dataset.from_pyg(source)


# --- tables out ---------------------------------------------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.sampled_from(["parquet", "csv"]))
def test_exported_tables_are_the_network(seed: int, kind: str) -> None:
    data = labelled(seed)
    with tempfile.TemporaryDirectory() as folder:
        paths = export_tables(data, Path(folder) / "out", kind)
        assert [path.name for path in paths] == [f"{n}.{kind}" for n in ("nodes", "edges", "classes", "attributes")]
        if data.graph.n_edges:
            back = read_tables(paths[0], paths[1], directed=data.graph.directed, split="1/0/0", min_nodes=99)
            np.testing.assert_array_equal(back.graph.adj.toarray(), data.graph.adj.toarray())
            labels = [None if c < 0 else data.class_names[c] for c in data.y]
            assert [None if c < 0 else back.class_names[c] for c in back.y] == labels
            assert back.node_names == (data.node_names or tuple(map(str, range(data.graph.n))))
        tables = [pq.read_table(path) if kind == "parquet" else pyarrow.csv.read_csv(path) for path in paths]
    classes, attributes = (table.to_pylist() for table in tables[2:])
    assert [(row["class"], row["part"]) for row in classes] == [("x", "train"), ("y", "valid"), ("a z", "test")]
    x = np.zeros(data.graph.x.shape, np.float32)
    names = {name: j for j, name in enumerate(data.feature_names or map(str, range(data.graph.n_features)))}
    for i, row in enumerate(attributes):
        if sp.issparse(data.graph.x):
            x[data.node(str(row["id"])), names[str(row["attribute"])]] = row["value"]
        else:
            x[i] = [row[name] for name in names]
    np.testing.assert_allclose(x, data.graph.x.toarray() if sp.issparse(data.graph.x) else data.graph.x, rtol=1e-6)


def test_an_export_overwrites_nothing(tmp_path: Path) -> None:
    export_tables(planted(), tmp_path)
    with pytest.raises(FewnodeError, match=r"nodes\.parquet is there already"):
        export_tables(planted(), tmp_path)
    with pytest.raises(FewnodeError, match="unknown format 'pickle', expected parquet or csv"):
        export_tables(planted(), tmp_path, "pickle")


def test_a_graph_without_labels_or_attributes_is_exported(tmp_path: Path) -> None:
    data = Dataset(Graph.from_edges([[0], [1]], 2), np.array([-1, -1]), ClassSplit((), (), ()))
    tables = [pq.read_table(path) for path in export_tables(data, tmp_path)]
    assert [table.num_rows for table in tables] == [2, 1, 0, 0]
