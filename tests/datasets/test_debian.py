"""The embedded network: apt's indices in, the stated graph out, and the packed file gives it back."""

import gzip
import json
import lzma
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import lz4.frame
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from fewnode._system.files import atomic_write
from fewnode.adjacency import Relation
from fewnode.class_labels import UNKNOWN
from fewnode.dataset import ClassSplit, Dataset
from fewnode.errors import FewnodeError
from fewnode.formats import debian
from fewnode.formats.debian import MIN_CLASS, build_debian, load_debian, unpack
from fewnode.graph import Graph, Ints

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".lz4": lz4.frame.compress,
}
SUITE = "mirror.example_debian_dists_sid_main_"


def stanza(name: str, section: str = "games", **fields: str) -> str:
    """A stanza of Packages; `Pre_Depends` is written for Pre-Depends."""
    given = {"Package": name, "Version": "1", "Section": section, "Description": "thing to play"} | fields
    return "".join(f"{key.replace('_', '-')}: {value}\n" for key, value in given.items()) + "\n"


def crowd(section: str, n: int = MIN_CLASS) -> str:
    """A class just large enough to stay: a star around `section`-0."""
    star = [stanza(f"{section}-{i}", section, Depends=f"{section}-0") for i in range(1, n)]
    return stanza(f"{section}-0", section) + "".join(star)


def write(folder: Path, packages: str, translation: str | None = None, packing: str = "", suite: str = SUITE) -> Path:
    folder.mkdir(exist_ok=True)
    for kind, text in (("binary-amd64_Packages", packages), ("i18n_Translation-en", translation)):
        if text is not None:
            (folder / f"{suite}{kind}{packing}").write_bytes(COMPRESS[packing](text.encode()))
    return folder


def neighbours(data: Dataset, name: str) -> set[str]:
    row = data.graph.adj[[data.node(name)]]
    return {data.node_name(i) for i in row.indices}


def assert_same(one: Dataset, other: Dataset) -> None:
    assert one.sha256 == other.sha256
    for what in ("split", "class_names", "node_names", "feature_names", "name", "info"):
        assert getattr(one, what) == getattr(other, what)


# --- from stanzas to a graph ---


def test_the_packing_of_the_indices_makes_no_difference(tmp_path: Path) -> None:
    translation = "Package: games-1\nDescription-en: thing with a wizard\n\nPackage: games-2\nDescription-en: wizard\n"
    folders = [write(tmp_path / f"in{p}", crowd("games"), translation, p) for p in COMPRESS]
    first, *others = map(build_debian, folders)
    assert first.feature_names == ("wizard",)
    for other in others:
        assert_same(first, other)


@pytest.mark.parametrize("relation", ["Depends", "Pre-Depends", "Recommends", "Suggests"])
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("games-1", {"games-1"}),
        ("games-1 (>= 2:1.0~rc1), games-2(<<3)", {"games-1", "games-2"}),
        ("games-1 | games-2 (= 1) | absent, games-3", {"games-1", "games-2", "games-3"}),
        ("games-1:any, games-2:native (>= 1) | games-3 [amd64 !i386] <!nocheck>", {"games-1", "games-2", "games-3"}),
        ("games-1,\n games-2,\n\tgames-3", {"games-1", "games-2", "games-3"}),
        ("games-1, games-1 (>= 1), new, new-not", {"games-1"}),
    ],
)
def test_relations(tmp_path: Path, relation: str, value: str, expected: set[str]) -> None:
    new = stanza("new", **{relation: value})
    data = build_debian(write(tmp_path, crowd("games") + new))
    assert neighbours(data, "new") == expected
    assert not data.graph.directed


def test_a_provided_name_stands_for_its_only_provider(tmp_path: Path) -> None:
    text = (
        crowd("games")
        + stanza("chess", Depends="games-0", Provides="engine (= 1), board, games-5")
        + stanza("go", Depends="games-0", Provides="board")
        + stanza("table", Depends="games-0, engine, board, games-5")
    )
    assert neighbours(build_debian(write(tmp_path, text)), "table") == {"games-0", "chess", "games-5"}


def test_small_classes_and_lone_packages_go_until_none_is_left(tmp_path: Path) -> None:
    """`net` is kept at 30 by a package that hangs on a class of 29; `tail` hangs on `net`, `lone` on nothing."""
    text = (
        crowd("games")
        + crowd("net", MIN_CLASS - 1)
        + stanza("edge", "net", Depends="shells-0")
        + crowd("shells", MIN_CLASS - 1)
        + stanza("tail", Depends="net-0")
        + stanza("lone", Depends="lone, absent")
    )
    data = build_debian(write(tmp_path, text))
    assert data.class_names == ("games",)
    assert set(data.node_names or ()) == {f"games-{i}" for i in range(MIN_CLASS)}


def test_the_highest_version_counts_whatever_the_file_order(tmp_path: Path) -> None:
    old, new = (stanza("new", Version=v, Depends=d) for v, d in (("9.0-1", "games-1"), ("10.0~rc1", "games-2")))
    for i, texts in enumerate([(old, new), (new, old)]):
        for suite, text in zip(("m_dists_a_", "m_dists_b_"), texts, strict=True):
            write(tmp_path / str(i), crowd("games") + text, suite=suite)
        assert neighbours(build_debian(tmp_path / str(i)), "new") == {"games-2"}


def test_file_order_and_hash_seed_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    provides = "".join(stanza(f"p{i}", Provides=f"virtual{i % 7}", Depends="virtual3, virtual5") for i in range(11))
    for suite in ("m_dists_a_", "m_dists_b_", "flat_"):
        write(tmp_path, crowd("games") + crowd("net") + provides, "Package: p1\nDescription-en: owl\n", suite=suite)
    code = f"from fewnode.formats.debian import *; print(build_debian(Path({str(tmp_path)!r})).sha256)"
    seen = {
        subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout.strip()
        for seed in ("1", "2")
    }
    glob = Path.glob

    def backwards(folder: Path, pattern: str) -> Iterator[Path]:
        return iter(sorted(glob(folder, pattern), reverse=True))

    monkeypatch.setattr(Path, "glob", backwards)
    assert seen == {build_debian(tmp_path).sha256.encode()}


def test_info_says_what_it_was_made_of_but_not_which_mirror(tmp_path: Path) -> None:
    text = "\n\n" + crowd("games") + "Package: nameless\n\nSection: games\n\nno field at all\n\n"
    (write(tmp_path, text) / "mirror.example_flat_Packages").write_bytes(b"Package: \xff\n")
    info = build_debian(tmp_path).info
    assert [label for label, _ in info["indices"]] == ["Packages", "sid_main_binary-amd64_Packages"]
    assert (info["packages"], info["stanzas_skipped"]) == (MIN_CLASS, 4)
    assert "mirror" not in json.dumps(info)


# --- what users get wrong ---


@pytest.mark.parametrize("packing", [".gz", ".xz", ".lz4"])
@pytest.mark.parametrize("keep", [0.05, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("kind", ["binary-amd64_Packages", "i18n_Translation-en"])
def test_a_truncated_index_is_named(tmp_path: Path, packing: str, keep: float, kind: str) -> None:
    translation = "".join(f"Package: p{i}\nDescription-en: {i**9}\n\n" for i in range(500))
    path = write(tmp_path, crowd("games"), translation, packing) / f"{SUITE}{kind}{packing}"
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * keep)])
    with pytest.raises(FewnodeError, match=rf"{kind}{packing}: line \d+: cannot be read further: .*\Z"):
        build_debian(tmp_path)


def test_a_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "\n".join(["x" * 99] * 999), packing=".xz")
    monkeypatch.setattr(debian, "MAX_BYTES", 5000)
    with pytest.raises(FewnodeError, match="line 51: too much data"):
        build_debian(tmp_path)
    monkeypatch.setattr(debian, "MAX_LINE", 50)
    with pytest.raises(FewnodeError, match="line 1: too much data"):
        build_debian(tmp_path)


def test_missing_indices_say_how_to_get_them(tmp_path: Path) -> None:
    (tmp_path / "Packages").mkdir()
    (tmp_path / "InRelease").touch()
    for folder in (tmp_path, tmp_path / "absent"):
        with pytest.raises(FewnodeError, match=r"no file ending in Packages .*apt-get .*Languages=en update"):
            build_debian(folder)


# --- the packed file ---


def pack(data: Dataset) -> bytes:
    """The dataset as one .xz stream: a line of JSON with the texts and the arrays' types, then the arrays.

    Made for an undirected graph with counts as attributes, and for directed relations without weights, if there are
    some; anything else would not come back and is refused.
    """
    upper, x = sp.csr_array(sp.triu(data.graph.adj, 1)), sp.csr_array(data.graph.x)
    parts = (np.diff(upper.indptr), upper.indices, np.diff(x.indptr), x.indices, x.data, data.y - UNKNOWN)
    whole = [part.astype(np.int64) for part in (*parts, _codes(upper, data.graph.relations))]
    arrays = [part.astype(np.min_scalar_type(part.max(initial=0)).newbyteorder("<")) for part in whole]
    header = {
        "arrays": [[array.dtype.str, array.size] for array in arrays],
        "split": [data.split.train, data.split.valid, data.split.test],
        "classes": data.class_names,
        "names": [data.node_names, data.feature_names],
        "n_features": data.graph.n_features,
        "relations": [relation.name for relation in data.graph.relations],
        "name": data.name,
        "info": data.info,
    }
    plain = b"\n".join([json.dumps(header).encode(), b"".join(array.tobytes() for array in arrays)])
    # most arrays are of two-byte numbers: lp and pb tell LZMA so
    packed = lzma.compress(plain, filters=[{"id": lzma.FILTER_LZMA2, "preset": 9, "lc": 3, "lp": 1, "pb": 1}])
    if unpack(packed).sha256 != data.sha256:
        raise FewnodeError(f"dataset {data.name!r} cannot be packed: not undirected, or attributes that are no counts")
    return packed


def _codes(upper: sp.csr_array, relations: Sequence[Relation]) -> Ints:
    """Which relations each edge is of: a bit for each that leads to the node of the higher number, then the others."""
    row = np.repeat(np.arange(upper.shape[0]), np.diff(upper.indptr))
    codes = np.zeros(upper.nnz, np.int64)
    for bit, relation in enumerate(relations):
        for way, (target, source) in enumerate(((upper.indices, row), (row, upper.indices))):
            there = np.asarray(relation.adj[target, source]) > 0
            codes |= there.astype(np.int64) << (bit + way * len(relations))
    return codes


@st.composite
def datasets(draw: st.DrawFn) -> Dataset:
    """Small random networks, some nodes without a label, with counts of one to five bytes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, d, k = draw(st.integers(1, 40)), draw(st.integers(0, 9)), draw(st.integers(1, 6))
    x = sp.random_array((n, d), density=0.3, rng=rng, format="csr", dtype=np.float32)
    x.data = np.ceil(x.data * draw(st.sampled_from([2, 300, 70_000, 2.0**35]))).astype(np.float32)
    y = rng.integers(-1, k, n)
    return Dataset(
        Graph.from_edges(rng.integers(0, n, (2, draw(st.integers(0, 90)))), n, x),
        y,
        ClassSplit.random(y, seed=1, min_nodes=1),
        tuple(f"ç{c}" for c in range(k)),
        draw(st.sampled_from([None, tuple(f"node\n{i}" for i in range(n))])),
        draw(st.sampled_from([None, tuple(f"ß{j}" for j in range(d))])),
        draw(st.text(max_size=3)),
        {"a": [1, "ü", None]},
    )


@settings(max_examples=40, deadline=None)
@given(datasets())
def test_what_is_packed_comes_back(data: Dataset) -> None:
    assert_same(unpack(pack(data)), data)


def test_a_damaged_file_is_an_error_in_a_line() -> None:
    with pytest.raises(FewnodeError, match="damaged"):
        unpack(b"not xz")


def test_the_embedded_network_is_as_stated() -> None:
    data = load_debian()
    assert load_debian() is data
    assert data.name == "debian"
    assert (data.graph.n, data.graph.n_edges, len(data.class_names), data.graph.n_features) == (61646, 315039, 54, 8000)
    assert not data.graph.directed
    assert data.graph.degree.min() > 0
    assert data.class_sizes.min() >= MIN_CLASS
    assert data.y.min() == 0
    assert data.split == ClassSplit.random(data.y, seed=0)
    assert tuple(map(len, (data.split.train, data.split.valid, data.split.test))) == (27, 11, 16)
    assert data.node_names == tuple(sorted(data.node_id))
    assert data.feature_names == tuple(sorted(set(data.feature_names or ())))
    assert data.class_names == tuple(sorted(data.class_names))


def test_fields_are_directed_relations(tmp_path: Path) -> None:
    new = stanza("new", Depends="games-1", Pre_Depends="games-2", Recommends="games-3", Suggests="games-1, games-4")
    data = build_debian(write(tmp_path, crowd("games") + new))
    found = {
        relation.name: {data.node_name(i) for i in relation.adj.tocsc()[:, [data.node("new")]].tocoo().coords[0]}
        for relation in data.graph.relations
    }
    assert found == {"Depends": {"games-1", "games-2"}, "Recommends": {"games-3"}, "Suggests": {"games-1", "games-4"}}
    assert all(relation.directed and not relation.weighted for relation in data.graph.relations)
    assert_same(unpack(pack(data)), data)


def test_the_relations_of_the_embedded_network() -> None:
    """All edges are of one, and without them the network is the one that published figures are of."""
    data = load_debian()
    assert [(r.name, r.n_edges, r.directed) for r in data.graph.relations] == [
        ("Depends", 267_391, True),
        ("Recommends", 29_066, True),
        ("Suggests", 23_361, True),
    ]
    every = Graph.from_relations(data.graph.relations, directed=False).adj
    assert np.array_equal(every.indices, data.graph.adj.indices)
    plain = Dataset(Graph(data.graph.adj, data.graph.x), data.y, data.split, data.class_names)
    assert plain.sha256 == "6e0dc43bf76c75ef06bb8ce5848fb758550dc8227084b11116cc7e2fca934149"
    numpy, python = data.node("python3-numpy"), data.node("python3")
    assert data.graph.relations[0].adj[python, numpy] == 1  # numpy depends on python
    assert data.graph.relations[0].adj[numpy, python] == 0


if __name__ == "__main__":
    with atomic_write(Path(str(debian.__file__)).with_name("debian.xz")) as file:
        file.write(pack(build_debian(Path(sys.argv[1]))))
