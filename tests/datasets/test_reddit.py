"""Reddit: the files of the GraphSAGE archive in, the network out, and no file is trusted or held as a whole."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fewnode.datasets import lines, reddit
from fewnode.datasets.reddit import build_reddit
from fewnode.errors import FewnodeError

N = 41 * 12
IDS = [f"t3_{i:x}" for i in range(N)]
ROWS = {name: (7 * i) % N for i, name in enumerate(IDS)}  # the files are in different orders
FEATURES = np.random.default_rng(0).normal(3, 50, (N, 602))


def graph(links: Any = None, **fields: Any) -> dict[str, Any]:
    """A ring, as networkx 1 writes it: ends are places in the list of nodes."""
    ring = [{"source": i, "target": (i + 1) % N, "test_removed": False} for i in range(N)]
    return {
        "directed": False,
        "graph": {"name": "disjoint_union( , )", "extra": [1, {"a": None}]},
        "nodes": [{"id": name, "val": False, "test": i % 9 == 0, "feature": [0.5]} for i, name in enumerate(IDS)],
        "links": ring if links is None else links,
        "multigraph": False,
    } | fields


def write(folder: Path, graph_text: str, **files: Any) -> Path:
    (folder / "reddit-G.json").write_text(graph_text)
    maps = {"id_map": ROWS, "class_map": {name: i % 41 for i, name in enumerate(IDS)}} | files
    for name in ("id_map", "class_map"):
        (folder / f"reddit-{name}.json").write_text(json.dumps(maps[name]))
    np.save(folder / "reddit-feats.npy", files.get("feats", FEATURES))
    return folder


def test_posts_become_nodes_links_edges_and_communities_classes(tmp_path: Path) -> None:
    data = build_reddit(write(tmp_path, json.dumps(graph())))
    assert (data.graph.n, data.graph.n_edges, data.graph.n_features) == (N, N, 602)
    place = IDS.index("t3_1f")
    row = data.node("t3_1f")
    assert row == ROWS["t3_1f"]
    assert {data.node_name(i) for i in data.graph.adj[[row]].indices} == {IDS[place - 1], IDS[place + 1]}
    assert data.class_names[data.y[row]] == str(place % 41)
    assert [len(part) for part in (data.split.train, data.split.valid, data.split.test)] == [16, 10, 15]
    assert data.info["difference"]["classes"] == 0
    assert data.info["difference"]["nodes"] == N - 232965
    expected = (FEATURES - FEATURES.mean(axis=0)) / FEATURES.std(axis=0)
    np.testing.assert_allclose(data.graph.x, expected, atol=1e-5)


@pytest.mark.parametrize("chunk", [7, 64, 1000])
def test_the_graph_may_be_cut_into_any_pieces_and_be_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    whole = build_reddit(write(tmp_path, json.dumps(graph())))
    monkeypatch.setattr(lines, "CHUNK", chunk)
    path = tmp_path / "reddit-G.json"
    (tmp_path / "reddit-G.json.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    assert build_reddit(tmp_path).sha256 == whole.sha256


def test_nodes_may_come_last_and_links_may_name_ids(tmp_path: Path) -> None:
    by_place = build_reddit(write(tmp_path, json.dumps(graph())))
    named = [{"target": IDS[(i + 1) % N], "source": IDS[i]} for i in range(N)]
    parts = graph(named)
    text = json.dumps({"links": parts["links"], "nodes": parts["nodes"]}, indent=1)
    assert build_reddit(write(tmp_path, text)).sha256 == by_place.sha256
    assert build_reddit(tmp_path / "reddit-G.json").sha256 == by_place.sha256


def test_a_post_without_a_class_is_unknown_and_a_constant_column_stays_finite(tmp_path: Path) -> None:
    features = FEATURES.copy()
    features[:, 4] = 5
    classes = {name: i % 41 for i, name in enumerate(IDS) if i}
    data = build_reddit(write(tmp_path, json.dumps(graph()), class_map=classes, feats=features))
    assert data.y[data.node(IDS[0])] == -1
    assert not data.graph.x[:, 4].any()


@pytest.mark.parametrize("end", [N, 4_000_000_000, -1, 10**30, None, 1.5, True, "nobody", [1]])
def test_links_to_nowhere_are_counted_up_to_one_percent(tmp_path: Path, end: Any) -> None:
    ring = graph()["links"]
    bad = {"source": 0, "target": end}
    data = build_reddit(write(tmp_path, json.dumps(graph([*ring, bad, bad]))))
    assert data.info["skipped"] == {"no such node": 2}
    assert data.graph.n_edges == N
    with pytest.raises(FewnodeError, match=r"5 of 497 links cannot be used.*: link 1: no such node; link 2: no such"):
        build_reddit(write(tmp_path, json.dumps(graph([bad] * 5 + ring))))


WHOLE = json.dumps(graph())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (WHOLE[:-1], "expected , or }, found ''"),
        (WHOLE[:9000], "cut short, or not JSON"),
        (WHOLE.replace('"links": [', '"links": [,'), "cut short, or not JSON"),
        (WHOLE.replace('"links": [', '"links": [5, '), "expected an object"),
        (WHOLE.replace('"links"', '"edges"'), "no 'links' in it"),
        (WHOLE.replace('"links": [', '"links": {'), "expected"),
        ("[1, 2]", r"expected {, found '\['"),
        ("", "expected {, found ''"),
        ("{5", "expected :"),
        ("{null: 1}", "no 'links' in it"),
        ('{"a": ' + "[" * 100_000, "nested too deep"),
    ],
)
def test_a_graph_that_is_cut_or_no_graph_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FewnodeError, match=rf"reddit-G\.json: .*{message}"):
        build_reddit(write(tmp_path, text))


def test_a_network_may_have_no_links_and_a_map_has_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert build_reddit(write(tmp_path, json.dumps(graph([])))).graph.n_edges == 0
    monkeypatch.setattr(reddit, "MAX_MAP", 1000)
    with pytest.raises(FewnodeError, match=r"_map\.json: larger than"):
        build_reddit(tmp_path)


def test_an_element_that_does_not_end_is_not_collected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reddit, "MAX_ELEMENT", 10_000)
    monkeypatch.setattr(lines, "CHUNK", 1000)
    with pytest.raises(FewnodeError, match="in one element"):
        build_reddit(write(tmp_path, '{"nodes": [{"id": "' + "a" * 50_000))


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"id_map": {**ROWS, IDS[0]: 1}}, "are not 0 to 491, each once"),
        ({"id_map": {**ROWS, IDS[0]: 4_000_000_000}}, "'t3_0' is 4000000000, expected a number from 0"),
        ({"id_map": {**ROWS, IDS[0]: -1}}, "expected a number from 0"),
        ({"id_map": [1]}, "not a JSON object"),
        ({"class_map": {IDS[0]: [0, 1, 1]}}, "'t3_0' is .0, 1, 1., expected a number"),
        ({"feats": FEATURES[1:]}, r"float64 \(491, 602\), expected numbers, a row for each of 492 nodes"),
        ({"feats": FEATURES.ravel()}, "expected numbers, a row for each"),
        ({"feats": np.where(np.arange(N)[:, None] == 3, np.nan, FEATURES)}, "row 3 holds NaN or infinity"),
        ({"feats": np.full((N, 2), 0xFFF6 << 48, np.uint64).view(np.float64)}, "row 0 holds NaN or infinity"),
        ({"feats": np.full((N, 2), {}, dtype=object)}, r"object \(492, 2\), expected numbers"),
    ],
)
def test_files_that_do_not_fit_are_refused(tmp_path: Path, files: dict[str, Any], message: str) -> None:
    with pytest.raises(FewnodeError, match=message):
        build_reddit(write(tmp_path, WHOLE, **files))


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY\x01\x00\x10\x00{'descr': '<f8'}", b"PK\x03\x04", b"\x93NUMPY"])
def test_a_broken_attribute_file_is_refused(tmp_path: Path, content: bytes) -> None:
    write(tmp_path, WHOLE)
    (tmp_path / "reddit-feats.npy").write_bytes(content)
    with pytest.raises(FewnodeError, match=r"reddit-feats\.npy: not a readable \.npy file"):
        build_reddit(tmp_path)


def test_attributes_that_claim_more_than_the_file_has_allocate_nothing(tmp_path: Path) -> None:
    write(tmp_path, WHOLE)
    blob = bytearray((tmp_path / "reddit-feats.npy").read_bytes())
    at = blob.index(b"(492, 602)")
    blob[at : at + 34] = b"(4000000000, 4000000000), }       "
    (tmp_path / "reddit-feats.npy").write_bytes(blob)
    with pytest.raises(FewnodeError, match="cut short, or not the 4000000000 x 4000000000 numbers that it claims"):
        build_reddit(tmp_path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    write(tmp_path, WHOLE)
    (tmp_path / "reddit-id_map.json").unlink()
    with pytest.raises(FewnodeError, match=r"neither reddit-id_map\.json nor"):
        build_reddit(tmp_path)
