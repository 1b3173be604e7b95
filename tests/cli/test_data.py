"""`fewnode data`: from a stranger's two tables to predictions about nodes that came later."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from encoders import static_folder
from fewnode.dataset import ClassSplit, Dataset
from fewnode.formats.directory import load_dataset

Fewnode = Callable[..., Any]
HEADER = ["package", "section", "summary", "description", "size", "maintainer"]
SECTIONS = [f"section{c:02d}" for c in range(9)]


def write(path: Path, rows: list[list[Any]]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Packages in nine sections that their words and links tell apart, and some more that come later."""
    folder, rng = tmp_path_factory.mktemp("tables"), np.random.default_rng(0)

    def words(c: int) -> str:
        return " ".join([*(f"topic{c}word{i}" for i in rng.integers(0, 5, 6)), f"common{rng.integers(0, 30)}"])

    rows = [
        [f"p{i}", SECTIONS[i % 9], words(i % 9), words(i % 9), 100 * (i % 9) + i % 7 if i % 11 else "", f"m{i}@x.org"]
        for i in range(198)
    ]
    links = [[f"p{i}", f"p{j}"] for i in range(198) for j in ((i + 9) % 180, (i + 18) % 180)]
    old = [link for link in links if all(int(end[1:]) < 180 for end in link)]
    write(folder / "nodes.csv", [HEADER, *rows[:180]])
    write(folder / "edges.csv", [["from", "to"], *old, ["p0", "p0"], old[0]])
    write(folder / "new.csv", [HEADER, *([*row[:1], "", *row[2:]] for row in rows[180:])])
    write(folder / "new_edges.csv", [["from", "to"], *(link for link in links if link not in old)])
    for part, names in (("train", SECTIONS[:3]), ("valid", SECTIONS[3:6]), ("test", SECTIONS[6:])):
        (folder / f"{part}.txt").write_text("\n".join(names))
    return folder


def roles() -> list[str]:
    return ["--id", "package", "--label", "section", "--text", "summary", "--text", "description", "--numeric", "size"]


def lists(folder: Path) -> list[object]:
    return [word for part in ("train", "valid", "test") for word in (f"--{part}-classes", folder / f"{part}.txt")]


def pair(folder: Path) -> list[object]:
    return ["--nodes", folder / "nodes.csv", "--edges", folder / "edges.csv"]


@pytest.fixture
def imported(fewnode: Fewnode, tables: Path, tmp_path: Path) -> Path:
    done = fewnode("data", "import", *pair(tables), *roles(), *lists(tables), "--out", tmp_path / "d", "-q")
    assert (done.code, done.out, done.err) == (0, "", "")
    return tmp_path / "d"


def test_two_tables_to_predictions_about_new_nodes(
    fewnode: Fewnode, tables: Path, imported: Path, tmp_path: Path
) -> None:
    run, later = tmp_path / "run", tmp_path / "d2"
    trained = fewnode("train", "--data", imported, "--way", 3, "--shot", 3, "--out", run, "-q")
    assert trained.code == 0
    new = ["--nodes", tables / "new.csv", "--edges", tables / "new_edges.csv"]
    extended = fewnode("data", "extend", imported, *new, "--out", later)
    assert extended.code == 0
    assert "new.csv: 18 nodes" in extended.err
    assert f"predict --run run --data {later}" in extended.err
    support = write(tmp_path / "s.csv", [["node", "class"], *([f"p{9 * k + c}", SECTIONS[c]] for k in range(3) for c in (6, 7, 8))])  # fmt: skip  # noqa: E501
    query = write(tmp_path / "q.csv", [["node"], *([f"p{i}"] for i in range(180, 198) if i % 9 > 5)])
    asked = fewnode("predict", "--run", run, "--data", later, "--support", support, "--query", query, "-q")
    assert asked.code == 0
    answers = {row["node"]: row["label"] for row in csv.DictReader(asked.out.splitlines())}
    assert answers == {f"p{i}": SECTIONS[i % 9] for i in range(180, 198) if i % 9 > 5}


def test_import_says_what_it_understood_before_it_writes(fewnode: Fewnode, tables: Path, tmp_path: Path) -> None:
    done = fewnode("data", "import", *pair(tables), "--id", "package", "--label", "section", "--out", tmp_path / "d")
    assert done.code == 0
    for line in [
        "nodes.csv: 180 nodes",
        "  id        package",
        "  label     section (all known)",
        "  text      ",
        "size 17: the mean and a flag",
        "maintainer (180 distinct values of 1.0 words; --text or",
        "edges.csv: 362 edges, from to to",
        "  dropped: 1 self-loops, 0 with an unknown end",
        "repeated edges, counted once: 1",
        "edge homophily    1.00",
        "valid classes     up to 2-way 10-shot, as many queries",
        "section00 (20)",
        f"written to {tmp_path / 'd'}; next: fewnode train",
    ]:
        assert line in done.err
    assert done.out == ""
    assert max(map(len, done.err.splitlines()[:-1])) <= 80
    assert done.err.count("\n") <= 31


def test_split_lists_and_vocabulary_options(fewnode: Fewnode, imported: Path, tables: Path, tmp_path: Path) -> None:
    data = load_dataset(imported)
    assert data.split == ClassSplit((0, 1, 2), (3, 4, 5), (6, 7, 8))
    (tmp_path / "stop.txt").write_text("Common1\ntopic0word0\n")
    words = ["--vocabulary", 10, "--min-count", 3, "--max-share", 0.9, "--stop-words", tmp_path / "stop.txt"]
    done = fewnode("data", "import", *pair(tables), *roles(), *words, "--directed", "--out", tmp_path / "e", "-q")
    assert done.code == 0
    other = load_dataset(tmp_path / "e")
    assert other.graph.n_features == 12  # ten words, size, and whether it is missing
    assert other.graph.directed
    assert "topic0word0" not in (other.feature_names or ())


def test_an_npz_keeps_its_split_unless_told_otherwise(fewnode: Fewnode, planted: Dataset, tmp_path: Path) -> None:
    split = {f"{part}_classes": np.array(planted.split.part(part)) for part in ("train", "valid", "test")}
    np.savez(tmp_path / "p.npz", edge_index=planted.graph.edge_index(), y=planted.y, **split)
    for options, expected in [((), planted.split), (("--split", "3,2,1"), None)]:
        out = tmp_path / f"d{len(options)}"
        done = fewnode("data", "import", tmp_path / "p.npz", "--out", out, *options, "-q")
        assert done.code == 0
        found = load_dataset(out).split
        assert (found == planted.split) == (expected is not None)
    assert list(map(len, (found.train, found.valid, found.test))) == [3, 2, 1]
    done = fewnode("data", "import", tmp_path / "p.npz", "--out", tmp_path / "other", "--seed", "3")
    assert done.code == 2
    assert "--seed: not used where" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give a file, or a table of nodes and one of edges: --nodes nodes.csv --edges edges.csv"),
        (("x.npz", "--label", "section"), "not used for x.npz, which is one file"),
        (("NPZ", "--no-label"), "p.npz: --no-label, but there are classes in it; leave that option out"),
        (("NPZ", "--stop-words", "none", "--min-nodes", "3"), "--stop-words: not used for"),
        (("PAIR", "--id", "package"), "which column holds the class? Name it with --label: section, summary"),
        (("PAIR", "--id", "package", "--label", "section", "--no-label"), "--no-label, but there are classes in it"),
        (("PAIR", "--id", "pakage"), "no column 'pakage' (did you mean 'package'?)"),
        (("PAIR", "ROLES", "--numeric", "maintainer"), "column 'maintainer': found 'm0@x.org', expected a number"),
        (("PAIR", "ROLES", "--split", "50/50"), "expected three shares such as 50/20/30"),
        (("PAIR", "ROLES", "--split", "40,17,20"), "split 40,17,20: only 9 classes have 10 nodes or more"),
        (("PAIR", "ROLES", "--test-classes", "x"), "x: no such file"),
        (("PAIR", "ROLES", "--unknown-ends", "keep"), "found 'keep', expected 'refuse' or 'drop'"),
        (("PAIR", "ROLES", "--stop-words", "german"), "german: no such file"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_one_line(
    fewnode: Fewnode, tables: Path, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    np.savez(tmp_path / "p.npz", edge_index=[[0], [1]], y=[0, 1])
    places = {"PAIR": pair(tables), "ROLES": roles(), "NODES": [tables / "nodes.csv"], "NPZ": [tmp_path / "p.npz"]}
    words = [word for argument in arguments for word in places.get(argument, [argument])]
    done = fewnode("data", "import", *words, "--out", tmp_path / "d")
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert len(done.err.splitlines()) == 1
    assert not (tmp_path / "d").exists()


def test_every_table_is_used_and_counted(fewnode: Fewnode, tables: Path, tmp_path: Path) -> None:
    """Of `--edges a --edges b` all are used, kinds or not; the names of kinds end where a file begins."""
    write(tmp_path / "a.csv", [["from", "to", "amount"], ["p0", "p1", 5]])
    write(tmp_path / "b:c.csv", [["from", "to"], ["p1", "p2"]])
    nodes = ["--nodes", tables / "nodes.csv", "--nodes", tables / "new.csv", *roles()]
    edges = ["--edges", f"pays:{tmp_path / 'a.csv'}", "--edges", tmp_path / "b:c.csv", "--edges", tables / "edges.csv"]
    done = fewnode("data", "import", *nodes, *edges, "--out", tmp_path / "d")
    assert done.code == 0
    for line in [
        "nodes.csv: 180 nodes",
        "new.csv: 18 nodes, the same columns",
        "a.csv: 1 edges of kind pays",
        "  not used: amount",
        "b:c.csv: 1 edges",
        "edges.csv: 362 edges",
        "d: 198 nodes, 362 undirected edges",
        "edges pays: 1 undirected",
    ]:
        assert line in done.err
    shown = fewnode("data", "info", tmp_path / "d")
    assert "a.csv: 1 edges of kind pays" in shown.out
    assert "edges pays: 1 undirected, same class" in shown.out
    told = fewnode("data", "info", tmp_path / "d", "--json").json["source"]
    assert [table["rows"] for table in told["edges"]] == [1, 1, 362]
    assert [each["name"] for each in told["relations"]] == ["pays", "edges"]


def test_tables_as_a_spreadsheet_writes_them(fewnode: Fewnode, tmp_path: Path) -> None:
    """Semicolons, decimal commas, Latin-1, no header, and words for what is missing."""
    rows = [f"k{i};{'grün' if i % 2 else 'NA'};{i},5;{'leer' if i % 5 == 0 else i}" for i in range(40)]
    (tmp_path / "n.csv").write_bytes("\n".join(rows).encode("latin-1"))
    (tmp_path / "e.csv").write_text("k1;k2\nk2;k3\n")
    written = ["--separator", ";", "--decimal", ",", "--encoding", "latin-1"]
    said = [*written, "--missing", "leer", "--no-header", "--no-node-header"]
    more = ["--nodes", tmp_path / "n.csv", "--edges", tmp_path / "e.csv", "--label", "column 2"]
    done = fewnode("data", "import", *more, *said, "--out", tmp_path / "d")
    assert done.code == 0
    for line in [
        "column 2 (20 unknown: 20 'NA'; --missing '' makes classes of the words)",
        "column 3, column 4 (numbers)",
        "column 4 8 (8 'leer'): the mean and a flag",
    ]:
        assert line in " ".join(done.err.split())
    data = load_dataset(tmp_path / "d")
    assert (data.class_names, data.graph.n_edges, data.graph.n) == (("grün",), 2, 40)
    (tmp_path / "m.csv").write_bytes("m1;grün;3,5;leer".encode("latin-1"))
    new = ["--nodes", tmp_path / "m.csv", "--encoding", "latin-1", "--no-node-header", "--separator", ";"]
    assert fewnode("data", "extend", tmp_path / "d", *new, "--out", tmp_path / "d2", "-q").code == 0
    assert load_dataset(tmp_path / "d2").graph.x[40].tolist() == [data.graph.x[3, 0], 0, 1]
    keep = fewnode("data", "import", *more, *said[:6], "--missing", "", *said[8:], "--out", tmp_path / "d3", "-q")
    assert keep.code == 0
    assert load_dataset(tmp_path / "d3").class_names == ("NA", "grün")


def test_texts_through_an_encoder(fewnode: Fewnode, tables: Path, tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    folder = static_folder(tmp_path / "tiny")
    start = ["data", "import", "--nodes", tables / "nodes.csv", "--edges", tables / "edges.csv", *roles()]
    shown = fewnode(*start, "--encoder", folder, "--out", tmp_path / "d").err
    assert "180 of 180 texts encoded" in shown
    assert "summary, description through tiny" in " ".join(shown.split())
    new = ["data", "extend", tmp_path / "d", "--nodes", tables / "new.csv", "--out", tmp_path / "e"]
    assert "of 18 texts encoded" not in fewnode(*new, "-q").err
    static_folder(folder, normalize=True)
    refused = fewnode(*new[:-1], tmp_path / "f").err
    assert "texts of d went through the encoder tiny" in refused


def test_a_dataset_is_never_overwritten(fewnode: Fewnode, imported: Path, tables: Path) -> None:
    before = (imported / "dataset.json").read_bytes()
    for command in (
        ["import", *pair(tables), *roles()],
        ["extend", imported, "--nodes", tables / "new.csv"],
        ["build", "dblp", "--raw", tables],
    ):
        done = fewnode("data", *command, "--out", imported)
        assert done.code == 2
        assert "there is a dataset already" in done.err
    assert (imported / "dataset.json").read_bytes() == before


# --- weights, kinds, directions, several classes -----------------------------------------------------------


@pytest.fixture(name="shop")
def _shop(tmp_path: Path) -> Path:
    """Users, items and what joins them, as a shop has it."""
    users = [["id", "label", "age"], *([f"u{i}", "AB"[i % 2], 20 + i] for i in range(24))]
    write(tmp_path / "users.csv", users)
    write(tmp_path / "items.csv", [["id", "price"], *([f"i{i}", 3 * i] for i in range(6))])
    header = ["source", "target", "amount", "kind", "day"]
    rows = [[f"u{i}", f"i{i % 6}", i + 1, ["buys", "views"][i % 3 == 0], f"2024-01-{i + 1:02}"] for i in range(24)]
    write(tmp_path / "edges.csv", [header, *rows])
    return tmp_path


def shop_import(folder: Path, *more: object) -> list[object]:
    nodes = ["--nodes", f"user:{folder / 'users.csv'}", "--nodes", f"item:{folder / 'items.csv'}"]
    return ["data", "import", *nodes, "--edges", folder / "edges.csv", *more, "--out", folder / "d"]


def test_what_edges_say_is_used_and_told(fewnode: Fewnode, shop: Path) -> None:
    more = ["--weight", "amount", "--relation", "kind"]
    done = fewnode(*shop_import(shop, *more, "--directed", "buys"))
    assert done.code == 0, done.err
    for words in [
        "weight amount, relation kind",
        "not used: day",
        "dropped: 0 self-loops, 0 with an unknown end",
        "edges buys: 16 directed, same class",
        "weights 2 to 24",
        "kinds of nodes    user (24), item (6)",
    ]:
        assert words in done.err
    facts = fewnode("data", "info", shop / "d", "--json").json
    assert [(each["name"], each["edges"], each["directed"]) for each in facts["relations"]] == [
        ("views", 8, False),
        ("buys", 16, True),
    ]
    assert facts["kinds"] == {"user": 24, "item": 6}
    write(shop / "new.csv", [["id", "label", "age"], ["u99", "A", 50]])
    write(shop / "links.csv", [["source", "target", "amount", "kind", "day"], ["u99", "i1", 7, "buys", "2024-01-20"]])
    grown = ["data", "extend", shop / "d", "--nodes", f"user:{shop / 'new.csv'}", "--edges", shop / "links.csv"]
    done = fewnode(*grown, "--out", shop / "d2")
    assert done.code == 0, done.err
    assert [r.n_edges for r in load_dataset(shop / "d2").graph.relations] == [8, 17]
    write(shop / "links.csv", [["source", "target", "amount", "kind", "day"], ["u99", "i1", 7, "steals", "2024-01-20"]])
    done = fewnode(*grown, "--out", shop / "d3")
    assert (done.code, "unknown relation 'steals'" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--weight", "kind"), "edges.csv: data row 1, column 'kind': found 'views', expected a number"),
        (("--weight", "amuont"), "no column 'amuont' (did you mean 'amount'?)"),
        (("--relation", "kind", "--directed", "buy"), "unknown relation 'buy' (did you mean 'buys'?)"),
        (("--label-separator", "A"), "'A' has an empty part"),
        (("--labels", "nowhere.csv"), "nowhere.csv: no such file"),
        (("--hierarchy", "nowhere.csv"), "expected a mark such as | or /"),
        (("--directed", "--relation", "kind", "--directed", "buys"), "--directed: give it alone, for all edges"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_edges_is_one_line(
    fewnode: Fewnode, shop: Path, given: tuple[str, ...], message: str
) -> None:
    done = fewnode(*shop_import(shop, *given))
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert done.err.count("\n") == 1
    assert not (shop / "d").exists()


def test_files_of_graphs_are_imported(fewnode: Fewnode, tmp_path: Path) -> None:
    node = "".join(f'<node id="n{i}"><data key="k">{"AB"[i % 2]}</data></node>' for i in range(4))
    edge = "".join(f'<edge source="n{i}" target="n{i + 1}"><data key="w">{i + 1}</data></edge>' for i in range(3))
    keys = '<key id="k" for="node" attr.name="sort"/><key id="w" for="edge" attr.name="amount"/>'
    path = tmp_path / "net.graphml"
    path.write_text(f'<graphml>{keys}<graph edgedefault="undirected">{node}{edge}</graph></graphml>')
    done = fewnode("data", "import", path, "--label", "sort", "--weight", "amount", "--out", tmp_path / "d")
    assert done.code == 0, done.err
    data = load_dataset(tmp_path / "d")
    assert (data.class_names, data.graph.weighted, data.graph.directed) == (("A", "B"), True, False)
    done = fewnode("data", "import", path, "--label", "sort", "--directed", "--out", tmp_path / "e")
    assert load_dataset(tmp_path / "e").graph.directed
    done = fewnode("data", "import", "--directed", path, "--label", "sort", "--nodes", path, "--out", tmp_path / "f")
    assert done.code == 2


def test_a_file_where_a_directory_is_to_be_is_an_argument_that_is_wrong(fewnode: Fewnode, tables: Path) -> None:
    for out in (tables / "nodes.csv", tables / "nodes.csv" / "deeper"):
        done = fewnode("data", "import", *pair(tables), *roles(), "--out", out)
        assert (done.code, "nodes.csv: a file, where a directory is to be written" in done.err) == (2, True)
