"""`fewnode data build` on small dumps in the published formats: what comes out, is passed over, or is refused."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fewnode.dataset import Dataset
from fewnode.formats.sources import load

Record = dict[str, Any]
Build = Callable[..., Dataset]
Refuse = Callable[..., str]
CLOTHING, ELECTRONICS = "meta_Clothing_Shoes_and_Jewelry.json", "meta_Electronics.json"
LEAST, MOST, YEARS = 100, 1000, 20


@pytest.fixture(name="build")
def _build(fewnode: Any, tmp_path: Path) -> Build:
    def build(name: str, raw: Path | None = None) -> Dataset:
        out = tmp_path / f"out{len(list(tmp_path.glob('out*')))}"
        done = fewnode("data", "build", name, "--raw", raw or tmp_path, "--out", out, "-q")
        assert (done.code, done.err) == (0, "")
        return load(out)

    return build


@pytest.fixture(name="refusal")
def _refusal(fewnode: Any, tmp_path: Path) -> Refuse:
    def refusal(name: str, raw: Path | None = None) -> str:
        done = fewnode("data", "build", name, "--raw", raw or tmp_path, "--out", tmp_path / "refused", "-q")
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
        assert not (tmp_path / "refused").exists()
        return str(done.err)

    return refusal


def neighbours(data: Dataset, name: str) -> set[str]:
    return {data.node_name(i) for i in data.graph.adj[[data.node(name)]].indices}


def same(one: Dataset, other: Dataset) -> bool:
    return (one.sha256, one.node_names, one.feature_names) == (other.sha256, other.node_names, other.feature_names)


# --- products -----------------------------------------------------------------------------------------------------


def product(asin: str, leaf: str = "Shoelaces", viewed: Sequence[str] = (), **fields: Any) -> Record:
    return {
        "asin": asin,
        "title": 'Pr45&quot; "Wht" Athletic Lace',
        "price": 5.35,
        "related": {"also_bought": ["B003LY5T9O", "ZZZ"], "also_viewed": list(viewed), "bought_together": []},
        "salesRank": {"Home &amp; Kitchen": 865765},
        "categories": [["Clothing, Shoes & Jewelry", "Women", leaf], ["Clothing, Shoes & Jewelry", "Sale"]],
        "description": f"white lace {leaf}",
    } | fields


def crowd(leaf: str, n: int = LEAST) -> list[Record]:
    """A class that can stay: a star around `leaf`-0."""
    return [product(f"{leaf}-{i}", leaf, [] if i == 0 else [f"{leaf}-0"]) for i in range(n)]


def write(
    path: Path, records: Sequence[Record], form: Callable[[Any], str] = repr, *lines: bytes, packed: bool = False
) -> None:
    blob = b"".join(line + b"\n" for line in (*(form(record).encode() for record in records), *lines))
    path.write_bytes(gzip.compress(blob) if packed else blob)


def test_products_become_nodes_links_edges_and_leaves_classes(tmp_path: Path, build: Build) -> None:
    laces, boots = crowd("Laces"), crowd("Boots")
    boots[3] |= {"related": {"also_viewed": ["Laces-7", "unknown", "Boots-3"]}, "description": "It's 6\" &amp; red red"}
    write(tmp_path / CLOTHING, [*laces, *boots])
    data = build("amazon-clothing")
    assert data.name == "amazon-clothing"
    assert data.class_names == ("Boots", "Laces")
    assert data.graph.n == 2 * LEAST
    assert neighbours(data, "Boots-3") == {"Laces-7"}
    assert neighbours(data, "Laces-7") == {"Laces-0", "Boots-3"}
    assert data.class_names[data.y[data.node("Boots-3")]] == "Boots"
    assert data.feature_names == ("boots", "laces")  # `white` and `lace` are in more than half
    assert data.graph.x[[data.node("Boots-5")]].toarray().tolist() == [[1, 0]]
    assert data.info["expected"] == {
        "nodes": 24919,
        "edges": 91680,
        "attributes": 9034,
        "classes": 77,
        "split": [40, 17, 20],
    }
    assert data.info["difference"]["nodes"] == 200 - 24919
    assert data.info["difference"]["split"] == [1 - 40, -17, 1 - 20]
    assert (data.info["records"], data.info["skipped"]) == (200, {})


def test_small_and_large_classes_and_lonely_products_go_until_nothing_changes(
    tmp_path: Path, build: Build, refusal: Refuse
) -> None:
    small, large = crowd("Small", LEAST - 1), crowd("Large", MOST + 1)
    domino, last = crowd("Domino"), crowd("Last", LEAST + 1)
    domino[1]["related"] = {"also_viewed": ["Small-1"]}  # loses its one link, and so its class a hundredth node
    last[1]["related"] = {"also_viewed": ["Domino-5"]}  # loses its link, but its class is large enough
    last[7] |= {"categories": [["Clothing", ""]]}
    write(tmp_path / CLOTHING, [*small, *large, *domino, *last, product("Last-101", "Last", ["Last-0"])])
    data = build("amazon-clothing")
    assert (data.class_names, data.graph.n) == (("Last",), LEAST)
    assert "Last-1" not in data.node_id
    write(tmp_path / CLOTHING, small)
    assert "99 records, but no class has 100 to 1000 linked nodes" in refusal("amazon-clothing")


def test_the_same_products_give_the_same_network_in_every_form(tmp_path: Path, build: Build) -> None:
    records = [*crowd("Laces"), *crowd("Boots")]
    records[5] |= {
        "title": "'related': {'also_viewed': ['Laces-9']}",
        "description": "naïve \\/ 'quoted' \"é\"\n\t日本",
    }
    write(tmp_path / "plain", records)
    plain = build("amazon-clothing", tmp_path / "plain")
    (tmp_path / "folder").mkdir()
    for name, form, packed in ((f"{CLOTHING}.gz", repr, True), (CLOTHING, json.dumps, False)):
        write(tmp_path / "folder" / name, records, form, packed=packed)
        assert same(build("amazon-clothing"), plain)


BROKEN = {
    "cut": repr(product("X"))[:200].encode(),
    "NUL": repr(product("X")).encode().replace(b"Athletic", b"Ath\0etic"),
    "invalid UTF-8": repr(product("X")).encode().replace(b"ZZZ", b"Z\xe9"),
    "nested": repr(product("X"))[:-1].encode() + b", 'deep': " + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "minus": b"{'asin': " + b"-" * 100_000 + b"1}",
    "duplicate": repr(product("Laces-3", "Other", ["Boots-2"])).encode(),
    "no id": repr({**product("X"), "asin": None}).encode(),
    "NaN": repr(product("X", price=float("nan"))).encode(),
    "number for text": repr({**product("X"), "asin": 12}).encode(),
    "number for a category": repr({**product("X"), "categories": [["Clothing", 7]]}).encode(),
    "text for an object": repr({**product("X"), "related": "none"}).encode(),
    "numbers for links": repr({**product("X"), "related": {"also_viewed": [1]}}).encode(),
    "list for text": repr({**product("X"), "description": ["a", "b"]}).encode(),
    "half of a pair": json.dumps(product("X\ud800")).encode(),
    "empty": b"",
    "garbage": repr(product("X")).encode() + b";",
    "large number": repr(product("X"))[:-1].encode() + b", 'n': " + b"9" * 9999 + b"}",
    "long name": repr(product("X" * 5000)).encode(),
    "code": b"{'asin': __import__('os').getcwd()}",
    "no object": b"['asin']",
    "no object in JSON": b'"asin"',
}


def test_broken_lines_are_counted_and_change_nothing(tmp_path: Path, build: Build, refusal: Refuse) -> None:
    records = [*crowd("Laces", MOST), *crowd("Boots", MOST), *crowd("Shirts", LEAST)]
    write(tmp_path / "clean", records)
    write(tmp_path / "broken", records, repr, *BROKEN.values())
    clean, data = build("amazon-clothing", tmp_path / "clean"), build("amazon-clothing", tmp_path / "broken")
    assert same(clean, data)
    assert sum(data.info["skipped"].values()) == len(BROKEN)
    assert data.info["skipped"]["duplicate id"] == 1
    write(tmp_path / "worse", records[: 19 * LEAST], repr, *BROKEN.values())
    said = refusal("amazon-clothing", tmp_path / "worse")
    assert f"worse: {len(BROKEN)} of 1,921 lines cannot be used, more than 1%; the first: line 1901: neither" in said


def test_what_is_no_dump_is_refused_with_its_name(tmp_path: Path, refusal: Refuse) -> None:
    assert f"neither {ELECTRONICS} nor {ELECTRONICS}.gz is in it" in refusal("amazon-electronics")
    packed = gzip.compress(b"\n".join(repr(record).encode() for record in crowd("Laces")))
    for blob in (packed[:-1], packed[: len(packed) // 2], packed + b"more"):
        (tmp_path / f"{CLOTHING}.gz").write_bytes(blob)
        assert f"{CLOTHING}.gz: gzip data is cut or damaged after" in refusal("amazon-clothing")
    for bomb in (bytes(70 << 20), b"\n" * (70 << 20)):
        (tmp_path / f"{CLOTHING}.gz").write_bytes(gzip.compress(bomb, 1))
        said = refusal("amazon-clothing")
        assert f"{CLOTHING}.gz: " in said
        assert "inflates to over 100 times its size, refused" in said or "cannot be used" in said
    with (tmp_path / CLOTHING).open("wb") as sparse:
        sparse.truncate(1 << 30)
    assert "line 1: longer than 16 MB" in refusal("amazon-clothing")


# --- papers -------------------------------------------------------------------------------------------------------


def paper(number: str, venue: str = "KDD", year: int = 1990, cites: tuple[str, ...] = (), **fields: Any) -> Record:
    return {
        "id": number,
        "title": 'On it\'s "graphs"',
        "venue": {"raw": venue, "id": "106296714"},
        "year": year,
        "references": list(cites),
        "indexed_abstract": {"IndexLength": 3, "InvertedIndex": {"Graphs": [0, 2], venue: [1]}},
        "fos": [{"name": "Computer science", "w": 0.4}],
    } | fields


def venue(name: str, n: int = LEAST, years: int = YEARS) -> list[Record]:
    """A star around paper `name`-0, whose first and last paper are `years` apart."""
    first = paper(f"{name}-0", name, 1990 + years)
    return [first, *(paper(f"{name}-{i}", name, 1990, (f"{name}-0",)) for i in range(1, n))]


def test_papers_become_nodes_references_edges_and_venues_classes(tmp_path: Path, build: Build) -> None:
    kdd, www = venue("KDD"), venue("WWW")
    www[5]["references"] = ["KDD-2", "elsewhere"]
    for record in kdd[:3]:
        record["indexed_abstract"] = {"IndexLength": 4, "InvertedIndex": {"Deep,": [0, 3], "nets": [1], "deep": [2]}}
    kdd[4]["venue"] = {"name": "KDD"}
    young, small, large = venue("Young", years=YEARS - 1), venue("Small", LEAST - 1), venue("Large", MOST + 1)
    old = [*venue("Old", years=0), paper("1970", "Old", 1970, indexed_abstract=None)]  # no node, and yet of the venue
    records = [*kdd, *www, *young, *small, *large, *old]
    lack: list[Record] = [{"venue": None}, {"venue": {"raw": ""}}, {"indexed_abstract": {}}, {"references": None}]
    records += [paper(f"lacks {i}") | fields for i, fields in enumerate(lack)]
    write(tmp_path / "dblp_papers_v11.txt", records, json.dumps)
    data = build("dblp")
    assert (data.class_names, data.graph.n, data.graph.n_edges) == (("KDD", "Old", "WWW"), 300, 297)
    assert neighbours(data, "WWW-5") == {"KDD-2"}
    assert data.feature_names == ("deep", "kdd", "nets", "old", "www")  # `graphs` is in more than half
    assert data.graph.x[[data.node("KDD-1")]].toarray().tolist() == [[3, 0, 1, 0, 0]]
    assert (data.info["expected"]["nodes"], data.info["skipped"]) == (40672, {})


# --- posts --------------------------------------------------------------------------------------------------------

N = 41 * 12
IDS = [f"t3_{i:x}" for i in range(N)]
ROWS = {name: (7 * i) % N for i, name in enumerate(IDS)}  # the files are in different orders
FEATURES = np.random.default_rng(0).normal(3, 50, (N, 602))


def graph(links: Any = None, **fields: Any) -> Record:
    """A ring, as networkx 1 writes it: ends are places in the list of nodes."""
    ring = [{"source": i, "target": (i + 1) % N, "test_removed": False} for i in range(N)]
    return {
        "directed": False,
        "graph": {"name": "disjoint_union( , )", "extra": [1, {"a": None}]},
        "nodes": [{"id": name, "val": False, "test": i % 9 == 0, "feature": [0.5]} for i, name in enumerate(IDS)],
        "links": ring if links is None else links,
        "multigraph": False,
    } | fields


WHOLE = json.dumps(graph())


def archive(folder: Path, graph_text: str = WHOLE, **files: Any) -> None:
    (folder / "reddit-G.json").write_text(graph_text)
    maps = {"id_map": ROWS, "class_map": {name: i % 41 for i, name in enumerate(IDS)}} | files
    for name in ("id_map", "class_map"):
        (folder / f"reddit-{name}.json").write_text(json.dumps(maps[name]))
    np.save(folder / "reddit-feats.npy", files.get("feats", FEATURES))


def test_posts_become_nodes_links_edges_and_communities_classes(tmp_path: Path, build: Build) -> None:
    features, classes = FEATURES.copy(), {name: i % 41 for i, name in enumerate(IDS) if i}
    features[:, 4] = 5
    archive(tmp_path, feats=features, class_map=classes)
    data = build("reddit")
    assert (data.graph.n, data.graph.n_edges, data.graph.n_features) == (N, N, 602)
    place = IDS.index("t3_1f")
    row = data.node("t3_1f")
    assert row == ROWS["t3_1f"]
    assert neighbours(data, "t3_1f") == {IDS[place - 1], IDS[place + 1]}
    assert data.class_names[data.y[row]] == str(place % 41)
    assert data.y[data.node(IDS[0])] == -1
    assert [len(part) for part in (data.split.train, data.split.valid, data.split.test)] == [16, 10, 15]
    expected = (features - features.mean(axis=0)) / np.where(features.std(axis=0) > 0, features.std(axis=0), 1)
    np.testing.assert_allclose(data.graph.x, expected, atol=1e-5)
    named = [{"target": IDS[(i + 1) % N], "source": IDS[i]} for i in range(N)]
    text = json.dumps({"links": named, "nodes": graph()["nodes"]}, indent=1)
    (tmp_path / "reddit-G.json").unlink()
    (tmp_path / "reddit-G.json.gz").write_bytes(gzip.compress(text.encode()))
    assert same(build("reddit"), data)


def test_links_to_nowhere_are_counted_up_to_one_percent(tmp_path: Path, build: Build, refusal: Refuse) -> None:
    ring = graph()["links"]
    bad = [{"source": 0, "target": end} for end in (N, 4_000_000_000, -1, 10**30, None, 1.5, True, "nobody", [1])]
    for some in (bad[:3], bad[3:6], bad[6:]):
        archive(tmp_path, json.dumps(graph([*ring, *some])))
        data = build("reddit")
        assert (data.info["skipped"], data.graph.n_edges) == ({"no such node": 3}, N)
    archive(tmp_path, json.dumps(graph([*bad, *ring])))
    assert "9 of 501 links cannot be used, more than 1%; the first: link 1: no such node; link 2" in refusal("reddit")


@pytest.mark.parametrize(
    "text",
    [
        WHOLE[:-1],
        WHOLE[:9000],
        WHOLE.replace('"links": [', '"links": [,'),
        WHOLE.replace('"links": [', '"links": [5, '),
        WHOLE.replace('"links"', '"edges"'),
        WHOLE.replace('"nodes"', '"points"'),
        WHOLE.replace('"links": [', '"links": {'),
        "[1, 2]",
        "",
        '{"a": ' + "[" * 100_000,
        '{"nodes": null, "links": 3}',
    ],
)
def test_a_graph_that_is_cut_or_no_graph_is_refused(tmp_path: Path, refusal: Refuse, text: str) -> None:
    archive(tmp_path, text)
    assert "reddit-G.json: no" in refusal("reddit")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"id_map": {**ROWS, IDS[0]: 1}}, "are not 0 to 491, each once"),
        ({"id_map": {}}, "the rows of 0 nodes"),
        ({"id_map": {**ROWS, IDS[0]: 4_000_000_000}}, "id_map.json: t3_0: Input should be less than"),
        ({"id_map": {**ROWS, IDS[0]: -1}}, "id_map.json: t3_0: Input should be greater than"),
        ({"id_map": [1]}, "expected an object of numbers from 0"),
        ({"class_map": {IDS[0]: [0, 1, 1]}}, "class_map.json: t3_0: Input should be a valid integer"),
        ({"feats": FEATURES[1:]}, "float64 (491, 602), expected numbers, a row for each of 492 nodes"),
        ({"feats": FEATURES.ravel()}, "expected numbers, a row for each"),
        ({"feats": np.where(np.arange(N)[:, None] == 3, np.nan, FEATURES)}, "row 3 holds NaN or infinity"),
        ({"feats": np.full((N, 2), {}, dtype=object)}, "not a readable .npy file"),
    ],
)
def test_files_that_do_not_fit_are_refused(tmp_path: Path, refusal: Refuse, files: Record, message: str) -> None:
    archive(tmp_path, **files)
    assert message in refusal("reddit")
