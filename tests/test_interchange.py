"""Weights, kinds of edges and of nodes, and several classes a node: in from other libraries and out again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data, HeteroData, InMemoryDataset

from fewnode.dataset import ClassSplit, Dataset
from fewnode.errors import FewnodeError, UnusedInput
from fewnode.formats.directory import load_dataset, save_dataset
from fewnode.formats.npz import read_dataset_npz
from fewnode.graph import Graph
from fewnode.relations import EdgeRows, read_relations
from graphs import random_graph, weighted_graph

EDGES, WEIGHT = [[0, 1, 2, 0], [1, 2, 3, 3]], [1.0, 2.0, 3.0, 2.0]
SPLIT = ClassSplit((0,), (1,), (2,))


def typed_graph(seed: int) -> Graph:
    """Two or three kinds, some directed, one of them another the other way round, with weights or without."""
    rng = np.random.default_rng(seed)
    plain = random_graph(seed)
    n, e = plain.n, 3 * plain.n
    edges, kind = rng.integers(0, n, (2, e)), np.sort(rng.integers(0, 2, e))
    own = edges[:, kind == 0]
    edges = np.concatenate([edges, own[::-1]], axis=1) if seed % 2 else edges
    kind = np.concatenate([kind, np.full(edges.shape[1] - e, 2)])
    weight = rng.lognormal(0, 1, e)
    weight = np.concatenate([weight, weight[: edges.shape[1] - e]]) if seed % 3 else None
    directed: Any = (True, False, {"pays", "paid by"})[seed % 4 % 3]
    rows = EdgeRows(edges, weight, kind, ("pays", "owns", "paid by"))
    return read_relations(rows, n, plain.x, directed=directed)[0]


def several(graph: Graph, seed: int) -> Dataset:
    """A dataset with everything: kinds of nodes, and nodes in none, one or several of four classes."""
    rng = np.random.default_rng(seed)
    labels = sp.csr_array(rng.random((graph.n, 4)) < 0.4)
    y = np.where(np.diff(labels.indptr) == 1, labels.toarray().argmax(axis=1), -1)
    kind, names = rng.integers(0, 2, graph.n), ("user", "item")
    return Dataset(graph, y, ClassSplit((0,), (1,), (2, 3)), tuple("abcd"), labels=labels, kind=kind, kind_names=names)


def same(one: Dataset, other: Dataset) -> None:
    assert len(one.graph.relations) == len(other.graph.relations)
    for ours, theirs in zip(one.graph.relations, other.graph.relations, strict=True):
        assert (ours.name, ours.directed) == (theirs.name, theirs.directed)
        np.testing.assert_array_equal(ours.adj.toarray(), theirs.adj.toarray())
    np.testing.assert_array_equal(one.graph.adj.toarray(), other.graph.adj.toarray())
    np.testing.assert_array_equal(one.labels.toarray(), other.labels.toarray())
    np.testing.assert_array_equal(one.kind, other.kind)
    assert (one.kind_names, one.class_names, one.split) == (other.kind_names, other.class_names, other.split)
    np.testing.assert_array_equal(one.y, other.y)


@pytest.mark.parametrize("drawn", [weighted_graph, typed_graph])
def test_a_directory_and_pyg_give_back_what_they_were_given(drawn: Callable[[int], Graph], tmp_path: Path) -> None:
    for seed in range(24):
        data = several(drawn(seed), seed)
        save_dataset(data, tmp_path / str(seed))
        back = load_dataset(tmp_path / str(seed))
        assert back.sha256 == data.sha256
        same(back, data)
        same(Dataset.from_pyg(data.to_pyg()), data)
        assert Dataset.from_pyg(data.to_pyg(sparse=sp.issparse(data.graph.x))).sha256 == data.sha256


def test_the_identity_covers_weights_kinds_and_classes() -> None:
    data = several(typed_graph(1), 1)
    found = {data.sha256}
    for change in (
        {"labels": None},
        {"kind": 1 - data.kind},
        {"kind_names": ("user", "shop")},
        {"graph": Graph(data.graph.adj, data.graph.x, relations=data.graph.relations[:1])},
        {"graph": typed_graph(5)} if typed_graph(5).n == data.graph.n else {"y": np.full(data.graph.n, -1)},
    ):
        fields = {"graph": data.graph, "y": data.y, "split": data.split, "class_names": data.class_names}
        fields |= {"labels": data.labels, "kind": data.kind, "kind_names": data.kind_names, **change}
        found.add(Dataset(**fields).sha256)
    assert len(found) == 6


@pytest.mark.parametrize("forge", ["negative", "shape", "kind", "label"])
def test_a_strangers_directory_is_refused(forge: str, tmp_path: Path) -> None:
    from fewnode.formats.directory import read_record, write_record

    save_dataset(several(typed_graph(2), 2), tmp_path / "d")
    meta, arrays = read_record(tmp_path / "d", "dataset")
    own = {name: array.copy() for name, array in arrays.items()}
    if forge == "negative":
        own["relation.0.data"][0] = -1
    elif forge == "shape":
        own["relation.1.indices"][0] = 1 << 20
    elif forge == "kind":
        own["kind"][0] = 7
    else:
        own["labels.indices"][0] = 9
    (tmp_path / "d" / "dataset.json").unlink()
    write_record(tmp_path / "d", "dataset", {k: v for k, v in meta.items() if k not in ("format", "sha256")}, own)
    with pytest.raises(FewnodeError, match="d: "):
        load_dataset(tmp_path / "d")


# --- npz ----------------------------------------------------------------------------------------------------------


def npz(path: Path, **more: Any) -> Path:
    np.savez(path, **{"edge_index": np.array(EDGES), "y": np.zeros(4, int), **more})
    return path


def test_an_npz_file_has_weights_and_kinds(tmp_path: Path) -> None:
    names, kinds = np.array(["pays", "owns"]), np.array([0, 0, 1, 1])
    path = npz(tmp_path / "a.npz", edge_weight=np.array(WEIGHT), edge_type=kinds, relation_names=names)
    data = read_dataset_npz(path, directed=["owns"])
    assert [(r.name, r.directed, r.n_edges) for r in data.graph.relations] == [("pays", False, 2), ("owns", True, 2)]
    assert [each["weights"]["max"] for each in data.info["relations"]] == [2, 3]
    assert data.graph.adj[0, 1] == pytest.approx(2 / 3)
    unnamed = read_dataset_npz(npz(tmp_path / "b.npz", edge_type=kinds))
    assert [r.name for r in unnamed.graph.relations] == ["0", "1"]
    assert read_dataset_npz(npz(tmp_path / "c.npz", edge_weight=np.ones(4))).graph.relations == ()


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"edge_weight": np.ones(3)}, r"a.npz: weights are float64 \(3,\), expected a number for each of 4 edges"),
        ({"edge_weight": np.array([1, 2, -3, 4])}, "a.npz: edge 2: its weight is -3.0, expected a number from 0 on"),
        ({"edge_weight": np.array([1, 2, np.nan, 4])}, "edge 2: its weight is nan"),
        ({"edge_weight": np.array(list("abcd"))}, "weights are <U1"),
        ({"edge_type": np.ones(4)}, "kinds of edges are float64"),
        ({"edge_type": np.array([0, 1, 2, 0]), "relation_names": np.array(["a", "b"])}, "edge 2: its kind is 2, but"),
        ({"edge_type": np.array([0, -1, 0, 0])}, "edge 1: its kind is -1"),
        ({"edge_type": np.array([0, 1 << 40, 0, 0])}, "edge 1: its kind is 1099511627776"),
        ({"relation_names": np.array(["a", "b"])}, "no kind of each edge"),
    ],
)
def test_bad_weights_and_kinds_in_an_npz_file(arrays: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(FewnodeError, match=message):
        read_dataset_npz(npz(tmp_path / "a.npz", **arrays))


# --- PyG ----------------------------------------------------------------------------------------------------------


def test_pyg_weights_and_types() -> None:
    plain = Data(x=torch.eye(4), edge_index=torch.tensor(EDGES))
    expected = Dataset.from_scipy(sp.coo_array((WEIGHT, EDGES), (4, 4))).graph.adj.toarray()
    for field in ({"edge_weight": torch.tensor(WEIGHT)}, {"edge_attr": torch.tensor(WEIGHT)[:, None]}):
        data = Dataset.from_pyg(Data(**plain.to_dict(), **field))
        np.testing.assert_array_equal(data.graph.adj.toarray(), expected)
        assert "unused" not in data.info
    kinds = Dataset.from_pyg(Data(**plain.to_dict(), edge_type=torch.tensor([0, 1, 1, 0])))
    assert [(r.name, r.n_edges) for r in kinds.graph.relations] == [("0", 2), ("1", 2)]


def test_a_matrix_of_labels_is_several_classes_a_node() -> None:
    y = torch.tensor([[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0]])
    data = Dataset.from_pyg(Data(x=torch.eye(4), edge_index=torch.tensor(EDGES), y=y.float()))
    assert data.y.tolist() == [0, -1, -1, 2]
    assert data.class_sizes.tolist() == [2, 1, 1, 0]
    assert data.members(0).tolist() == [0, 1]
    assert data.labelled_mask.tolist() == [True, True, False, True]


def hetero() -> HeteroData:
    data = HeteroData()
    data["user"].x, data["item"].x = torch.ones(3, 2), torch.full((2, 1), 5.0)
    data["item"].y = torch.tensor([1, 0])
    data["user", "buys", "item"].edge_index = torch.tensor([[0, 1, 2], [0, 0, 1]])
    data["user", "buys", "item"].edge_attr = torch.tensor([[1.0], [2.0], [3.0]])
    data["item", "rev_buys", "user"].edge_index = torch.tensor([[0, 0, 1], [0, 1, 2]])
    data["item", "rev_buys", "user"].edge_attr = torch.tensor([[1.0], [2.0], [3.0]])
    data["user", "knows", "user"].edge_index = torch.tensor([[0], [1]])
    return data


def test_types_of_nodes_and_edges() -> None:
    data = Dataset.from_pyg(hetero())
    assert (data.kind_names, data.kind.tolist()) == (("user", "item"), [0, 0, 0, 1, 1])
    assert data.y.tolist() == [-1, -1, -1, 1, 0]
    assert data.claimable_mask.tolist() == [False, False, False, True, True]
    assert [(r.name, r.n_edges) for r in data.graph.relations] == [("buys", 3), ("rev_buys", 3), ("knows", 1)]
    x = data.graph.x.toarray()
    assert x.tolist() == [[1, 1, 0, 1, 0]] * 3 + [[0, 0, 5, 0, 1]] * 2
    assert data.graph.adj[3, 1] == pytest.approx(data.graph.adj[3, 0] * 2)
    more = hetero()
    more["user"].name, more["user", "knows", "user"].since = list("abc"), torch.ones(1)
    with pytest.warns(UnusedInput, match=r"knows\.since, user\.name"):
        Dataset.from_pyg(more)


# --- NetworkX -----------------------------------------------------------------------------------------------------


def network() -> nx.MultiDiGraph:
    g = nx.MultiDiGraph()
    g.add_edge("a", "b", weight=1, sort="pays")
    g.add_edge("a", "b", weight=2, sort="pays")
    g.add_edge("b", "c", weight=3, sort="owns")
    return g


def test_networkx_weights_and_kinds() -> None:
    data = Dataset.from_networkx(network(), None, relation="sort", directed=["pays", "owns"])
    assert [(r.name, r.directed, r.n_edges) for r in data.graph.relations] == [("pays", True, 1), ("owns", True, 1)]
    assert "unused" not in data.info
    with pytest.warns(UnusedInput, match="not used: edge attribute 'sort'"):
        data = Dataset.from_networkx(network(), None, directed=True)
    assert data.graph.adj[1, 0] == data.graph.adj[2, 1] == 1  # 1 + 2 and 3
    keyed = nx.MultiGraph()
    keyed.add_edges_from([("a", "b", "pays"), ("a", "b", "owns"), ("b", "c", "owns")])
    assert [r.name for r in Dataset.from_networkx(keyed, None).graph.relations] == ["pays", "owns"]


def test_to_networkx_and_back(planted: Dataset) -> None:
    g = planted.to_networkx(attributes=True)
    assert type(g) is nx.Graph
    back = Dataset.from_networkx(g, attributes=["x"])
    assert (back.graph.adj != planted.graph.adj).nnz == 0
    assert np.array_equal(back.graph.x, planted.graph.x.toarray())
    assert [back.class_names[c] for c in back.y] == [planted.class_names[c] for c in planted.y]
    assert back.node_names == planted.node_names
    kinds = Dataset.from_networkx(network(), None, relation="sort", directed=["pays"])
    g = kinds.to_networkx()
    assert type(g) is nx.MultiDiGraph
    again = Dataset.from_networkx(g, None, directed=["pays"])
    assert [(r.name, r.directed) for r in again.graph.relations] == [("pays", True), ("owns", False)]
    for ours, theirs in zip(again.graph.relations, kinds.graph.relations, strict=True):
        assert np.allclose(ours.adj.toarray(), theirs.adj.toarray())


def test_nodes_of_networkx_may_be_in_several_classes() -> None:
    g = nx.path_graph(4)
    nx.set_node_attributes(g, {0: ["x", "y"], 1: "x", 2: {"z"}}, "label")
    data = Dataset.from_networkx(g)
    assert (data.class_names, data.y.tolist()) == (("x", "y", "z"), [-1, 0, 2, -1])
    assert data.class_sizes.tolist() == [2, 1, 1]
    assert dict(data.to_networkx().nodes(data="label")) == {"0": ["x", "y"], "1": ["x"], "2": ["z"], "3": None}


@pytest.mark.parametrize(
    ("edge", "options", "message"),
    [
        ({"weight": -1}, {}, "edge 'a' - 'z': its 'weight' is -1, expected a number from 0 on"),
        ({"weight": "heavy"}, {}, "edge 'a' - 'z': its 'weight' is 'heavy', expected a number"),
        ({}, {}, "edge 'a' - 'z': its 'weight' is None, expected a number"),
        ({"weight": float("inf")}, {}, "its 'weight' is inf"),
        ({"weight": 1}, {"relation": "sort"}, "edge 'a' - 'z' has no 'sort', expected the kind of edge it is"),
        ({"weight": 1}, {"relation": "sorts"}, r"no edge has 'sorts' \(did you mean 'sort'\?\)"),
    ],
)
def test_bad_edges_of_networkx(edge: dict[str, Any], options: dict[str, Any], message: str) -> None:
    g = network()
    g.add_edge("a", "z", **edge)
    with pytest.raises(FewnodeError, match=message):
        Dataset.from_networkx(g, None, directed=True, **options)


# --- what is not read, and what is refused ----------------------------------------------------------------------


class One(InMemoryDataset):  # type: ignore[misc]
    """A PyG dataset of the given graphs."""

    def __init__(self, *graphs: Data) -> None:
        super().__init__(None)
        self.data, self.slices = self.collate(list(graphs))


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


def birds() -> nx.DiGraph:
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
    g = birds()
    nx.set_node_attributes(g, {"a": 1, "b": 2}, "y")
    nx.set_node_attributes(g, {"a": [1], "b": [1, 2], 3: [1]}, "z")
    with pytest.raises(FewnodeError, match=message):
        Dataset.from_networkx(g, **options)


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
