"""Amazon's dumps: SNAP's format in, the network of the paper's appendix out, broken lines counted and passed over."""

import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datasets.test_dump import changed_after_a_pass
from fewnode.dataset import Dataset
from fewnode.datasets import BUILDERS, amazon, dump, literal
from fewnode.datasets.amazon import build_amazon_clothing, build_amazon_electronics
from fewnode.datasets.dump import MAX_CLASS, MIN_CLASS
from fewnode.datasets.literal import BadLineError
from fewnode.errors import FewnodeError

Record = dict[str, Any]
NAME = "meta_Clothing_Shoes_and_Jewelry.json"


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


def crowd(leaf: str, n: int = MIN_CLASS) -> list[Record]:
    """A class that can stay: a star around `leaf`-0."""
    return [product(f"{leaf}-{i}", leaf, [] if i == 0 else [f"{leaf}-0"]) for i in range(n)]


def write(path: Path, records: Sequence[Record], form: Callable[[Record], str] = repr, pack: Any = bytes) -> Path:
    path.write_bytes(pack("".join(f"{form(record)}\n" for record in records).encode()))
    return path


def neighbours(data: Dataset, name: str) -> set[str]:
    return {data.node_name(i) for i in data.graph.adj[[data.node(name)]].indices}


def same(one: Dataset, other: Dataset) -> bool:
    return (one.sha256, one.node_names, one.feature_names) == (other.sha256, other.node_names, other.feature_names)


def test_products_become_nodes_links_edges_and_leaves_classes(tmp_path: Path) -> None:
    laces, boots = crowd("Laces"), crowd("Boots")
    boots[3] |= {"related": {"also_viewed": ["Laces-7", "unknown", "Boots-3"]}, "description": "It's 6\" &amp; red red"}
    data = build_amazon_clothing(write(tmp_path / NAME, [*laces, *boots]))
    assert data.name == "amazon-clothing"
    assert data.class_names == ("Boots", "Laces")
    assert data.graph.n == 2 * MIN_CLASS
    assert neighbours(data, "Boots-3") == {"Laces-7"}
    assert neighbours(data, "Laces-7") == {"Laces-0", "Boots-3"}
    assert data.class_names[data.y[data.node("Boots-3")]] == "Boots"
    assert data.feature_names is not None
    assert "amp" not in data.feature_names
    words = dict(zip(data.feature_names, data.graph.x[[data.node("Boots-5")]].toarray()[0], strict=True))
    assert words == {"boots": 1, "laces": 0}  # `white` and `lace` are in more than half


def test_electronics_are_linked_by_what_is_bought_together(tmp_path: Path) -> None:
    def bought(record: Record) -> Record:
        return record | {"related": {"also_viewed": ["TVs-50"], "bought_together": record["related"]["also_viewed"]}}

    data = build_amazon_electronics(write(tmp_path / "meta_Electronics.json", [bought(r) for r in crowd("TVs")]))
    assert neighbours(data, "TVs-9") == {"TVs-0"}
    assert data.info["expected"]["split"] == [90, 37, 40]


def test_the_result_says_how_far_it_is_from_the_paper(tmp_path: Path) -> None:
    info = build_amazon_clothing(write(tmp_path / NAME, [*crowd("Laces"), *crowd("Boots")])).info
    assert info["expected"] == {
        "nodes": 24919,
        "edges": 91680,
        "attributes": 9034,
        "classes": 77,
        "split": [40, 17, 20],
    }
    assert info["difference"] == {
        "nodes": 200 - 24919,
        "edges": 198 - 91680,
        "attributes": 2 - 9034,
        "classes": -75,
        "split": [1 - 40, -17, 1 - 20],
    }
    assert info["records"] == 200
    assert info["skipped"] == {}
    json.dumps(info)


def test_classes_too_small_or_too_large_and_products_without_a_link_go_until_nothing_changes(tmp_path: Path) -> None:
    small, large = crowd("Small", MIN_CLASS - 1), crowd("Large", MAX_CLASS + 1)
    domino = crowd("Domino")
    domino[1]["related"] = {"also_viewed": ["Small-1"]}  # loses its one link, and so its class a hundredth node
    last = crowd("Last", MIN_CLASS + 1)
    last[1]["related"] = {"also_viewed": ["Domino-5"]}  # loses its link, but its class is large enough
    data = build_amazon_clothing(write(tmp_path / NAME, [*small, *large, *domino, *last]))
    assert data.class_names == ("Last",)
    assert data.graph.n == MIN_CLASS
    assert "Last-1" not in data.node_id
    with pytest.raises(FewnodeError, match="99 records, but no class has 100 to 1000 linked nodes"):
        build_amazon_clothing(write(tmp_path / NAME, small))
    with pytest.raises(FewnodeError, match="0 records, but no class"):
        build_amazon_clothing(write(tmp_path / NAME, []))


@pytest.mark.parametrize(
    "fields",
    [{"description": None}, {"description": "  "}, {"categories": None}, {"categories": []}, {"categories": [[]]}],
)
def test_a_product_without_description_or_category_is_no_node(tmp_path: Path, fields: Record) -> None:
    records = [*crowd("Laces", MIN_CLASS + 1), *crowd("Boots")]
    records[1] |= fields
    data = build_amazon_clothing(write(tmp_path / NAME, records))
    assert data.graph.n == 2 * MIN_CLASS
    assert "Laces-1" not in data.node_id
    assert data.info["skipped"] == {}


@pytest.mark.parametrize(("form", "suffix", "pack"), [(repr, ".gz", gzip.compress), (json.dumps, "", bytes)])
def test_the_same_products_give_the_same_network_in_every_form(
    tmp_path: Path, form: Callable[[Record], str], suffix: str, pack: Any
) -> None:
    records = [*crowd("Laces"), *crowd("Boots")]
    plain = build_amazon_clothing(write(tmp_path / "plain", records))
    (tmp_path / "folder").mkdir()
    write(tmp_path / "folder" / f"{NAME}{suffix}", records, form, pack)
    assert same(build_amazon_clothing(tmp_path / "folder"), plain)


def test_duplicates_count_towards_the_upper_limit_however_the_file_is_packed(tmp_path: Path) -> None:
    full, over = crowd("Full", MAX_CLASS), crowd("Over", MAX_CLASS - 1)
    records = [*over, over[0], over[1], *full]
    plain = build_amazon_clothing(write(tmp_path / "plain", records))
    assert plain.class_names == ("Full",)
    assert plain.info["skipped"] == {"duplicate id": 2}
    assert same(build_amazon_clothing(write(tmp_path / "packed", records, pack=gzip.compress)), plain)


def test_links_that_a_description_quotes_are_text(tmp_path: Path) -> None:
    records = crowd("Laces")
    quoted = "'related': {'also_viewed': ['Laces-5', 'Laces-6']}"
    for i, text in enumerate((f"zebra {quoted}", f'it\'s {quoted} "zebra"', f"{quoted} zebra"), start=1):
        fields = product(f"Laces-{i}", "Laces", ["Laces-9"], description=text)
        records[i] = {"description": text} | fields  # before the field that looks like it
    data = build_amazon_clothing(write(tmp_path / NAME, records))
    assert [neighbours(data, f"Laces-{i}") for i in (1, 2, 3)] == [{"Laces-9"}] * 3
    assert data.feature_names is not None
    assert {"zebra", "viewed"} <= set(data.feature_names)


LOOK_ALIKES = [
    "'related': {'a': ['b']}",
    '"related": {}',
    "'description': 'x'",
    '"description": "y"',
    "{'related': -1}",
]
SNIPPETS = st.lists(st.sampled_from([*LOOK_ALIKES, *"'\"\\}é \n", "word", ", ", "-1"]), max_size=4).map("".join)


@given(SNIPPETS, SNIPPETS, SNIPPETS, st.sampled_from([repr, json.dumps]), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=200)
def test_cutting_fields_out_changes_nothing(
    title: str, text: str, link: str, form: Callable[[Record], str], rng: Random
) -> None:
    record = product("X", title=title, description=text, related={"also_viewed": [link, "Y"]})
    fields = list(record.items())
    rng.shuffle(fields)
    line = form(dict(fields)).encode()
    assert amazon._first_look(line) == ("X", "Shoelaces", bool(text.strip()), None)
    assert amazon._links("also_viewed")(line) == ("X", [link, "Y"])
    assert amazon._text(line) == (text if text.strip() else "")


@pytest.mark.parametrize("form", [repr, json.dumps])
def test_plain_links_and_descriptions_are_cut_out_before_a_line_is_parsed(
    form: Callable[[Record], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[Record] = []

    def parse(line: bytes) -> Record:
        parsed.append(literal.parse_record(line))
        return dict(parsed[-1])

    monkeypatch.setattr(amazon, "parse_record", parse)
    record = product("X", viewed=["Y"])
    line = form(record).encode()
    assert amazon._first_look(line) == ("X", "Shoelaces", True, None)
    assert parsed == [record | {"related": -1, "description": -1}]
    assert amazon._text(line) == "white lace Shoelaces"
    assert parsed[1:] == [record | {"related": -1}]
    first = form({"related": record["related"], "description": "it", "asin": "X"}).encode()[1:-1]
    cut = amazon._parse(b"{%b}" % first, "related", "description")
    assert cut == {"related": amazon._CUT_OUT, "description": amazon._CUT_OUT, "asin": "X"}
    again = form({"related": {}, "title": form({"related": {}})}).encode()  # one that is quoted later is no hindrance
    assert amazon._parse(again, "related")["related"] is amazon._CUT_OUT


@pytest.mark.parametrize(
    ("field", "text", "matched"),
    [
        ("related", "'related': {}", True),
        ("related", "'related': {'a': []}", True),
        ("related", "'related': {'also viewed': ['B1', 'B-2!'], 'b': ['C']}", True),
        ("related", "'related': {'a': ['B1',]}", False),
        ("related", "'related': {'a': ['B1' 'B2']}", False),
        ("related", "'related': {'a': ['é']}", False),
        ("related", "'related': {'a': ['\\\\']}", False),
        ("related", "'related': {'a': [1]}", False),
        ("related", "'related': {'a': 'b'}", False),
        ("related", "'related': {'a': ['b'], }", False),
        ("related", "'related': None", False),
        ("description", "'description': 'Two words, \\n\\'three\\''", True),
        ("description", "'description': ''", False),
        ("description", "'description': ' blank first'", False),
        ("description", "'description': 'a\\x41'", False),
        ("description", "'description': 'é'", False),
        ("description", "'description': 7", False),
    ],
)
@pytest.mark.parametrize("quote", ["'", '"'])
def test_what_is_odd_about_a_field_is_left_to_the_parser(field: str, text: str, matched: bool, quote: str) -> None:
    texts = {"'": amazon._SINGLE + b"|" + amazon._DOUBLE, '"': amazon._DOUBLE}[quote]
    patterns = amazon._patterns(quote.encode(), texts)
    assert patterns == amazon._CUTS[quote.encode()]
    assert list(patterns) == ["related", "description"]
    line = text.replace("'", quote).encode()
    key, pattern = patterns[field]
    assert line.startswith(key)
    found = pattern.match(line + b", more")
    assert (found is not None, found and found.end()) == (matched, len(line) if matched else None)


def test_text_in_double_quotes_may_be_in_a_python_literal() -> None:
    _, pattern = amazon._patterns(b"'", amazon._SINGLE + b"|" + amazon._DOUBLE)["description"]
    assert pattern.match(b"""'description': "it's", """)
    assert not amazon._patterns(b'"', amazon._DOUBLE)["description"][1].match(b""""description": 'its', """)


@pytest.mark.parametrize(
    ("categories", "label"),
    [
        ([["Clothing", "Women", "Boots"], ["Sale"]], "Boots"),
        ([["Boots"]], "Boots"),
        ([["Clothing", ""]], None),
        ([[]], None),
        ([], None),
        (None, None),
    ],
)
def test_the_class_is_the_last_name_of_the_first_path(categories: Any, label: str | None) -> None:
    assert amazon._first_look(repr(product("X", categories=categories)).encode()).label == label


@pytest.mark.parametrize("categories", ["Boots", ["Boots"], [["Boots", 7]], {0: ["Boots"]}])
def test_categories_of_the_wrong_type_are_refused(categories: Any) -> None:
    with pytest.raises(BadLineError) as caught:
        amazon._first_look(repr(product("X", categories=categories)).encode())
    assert str(caught.value) == "wrong type"


@pytest.mark.parametrize(
    ("builder", "name"),
    [(build_amazon_clothing, NAME), (build_amazon_electronics, "meta_Electronics.json")],
)
def test_the_dump_is_looked_for_under_its_name(tmp_path: Path, builder: Callable[[Path], Dataset], name: str) -> None:
    with pytest.raises(FewnodeError) as caught:
        builder(tmp_path)
    assert str(caught.value) == f"{tmp_path}: neither {name} nor {name}.gz is in it"


LONG = "[" * 1000 + "]" * 1000
BROKEN: dict[str, tuple[bytes, str]] = {
    "cut line": (repr(product("X"))[:200].encode(), "cut line"),
    "wrong quote": (repr(product("X")).replace("'title'", "'title").encode(), "wrong quote"),
    "NUL": (repr(product("X")).encode().replace(b"Athletic", b"Ath\0etic"), "NUL byte"),
    "NUL in a link": (repr(product("X")).encode().replace(b"ZZZ", b"Z\0Z"), "NUL byte"),
    "invalid UTF-8": (repr(product("X")).encode().replace(b"Athletic", b"Ath\xe9tic"), "not UTF-8"),
    "invalid UTF-8 in a link": (repr(product("X")).encode().replace(b"ZZZ", b"Z\xe9"), "not UTF-8"),
    "nested": (repr(product("X"))[:-1].encode() + f", 'deep': {LONG}}}".encode(), "nested too deep"),
    "duplicate": (repr(product("Laces-3", "Other", ["Boots-2"])).encode(), "duplicate id"),
    "no id": (repr({**product("X"), "asin": None}).encode(), "missing field"),
    "NaN": (repr(product("X", price=float("nan"))).encode(), "NaN or infinity"),
    "number for text": (repr({**product("X"), "asin": 12}).encode(), "wrong type"),
    "text for a list": (repr({**product("X"), "categories": "Laces"}).encode(), "wrong type"),
    "number for a category": (repr({**product("X"), "categories": [["Clothing", 7]]}).encode(), "wrong type"),
    "number for an object": (repr({**product("X"), "related": -1}).encode(), "wrong type"),
    "number for a description": (repr({**product("X"), "description": -1}).encode(), "wrong type"),
    "text for an object": (repr({**product("X"), "related": "none"}).encode(), "wrong type"),
    "numbers for links": (repr({**product("X"), "related": {"also_viewed": [1]}}).encode(), "wrong type"),
    "list for text": (repr({**product("X"), "description": ["a", "b"]}).encode(), "wrong type"),
    "empty": (b"", "empty line"),
    "garbage": (repr(product("X")).encode() + b";", "trailing garbage"),
    "byte-order mark": (b"\xef\xbb\xbf" + repr(product("X")).encode(), "byte-order mark"),
    "large number": (repr(product("X"))[:-1].encode() + b", 'n': " + b"9" * 9999 + b"}", "number too large"),
    "long name": (repr(product("X" * 5000)).encode(), "name too long"),
    "code": (b"{'asin': str(1)}", "neither JSON nor a Python literal"),
    "no object": (b"['asin']", "not a record"),
}


@pytest.mark.parametrize("damage", BROKEN)
def test_broken_lines_are_counted_by_kind_and_change_nothing(tmp_path: Path, damage: str) -> None:
    line, kind = BROKEN[damage]
    records = [*crowd("Laces"), *crowd("Boots")]
    clean = build_amazon_clothing(write(tmp_path / "clean", records))
    lines = (tmp_path / "clean").read_bytes().splitlines()
    (tmp_path / "broken").write_bytes(b"\n".join([*lines[:150], line, *lines[150:], line]))
    data = build_amazon_clothing(tmp_path / "broken")
    assert data.info["skipped"] == {kind: 2 if damage != "empty" else 1}  # nothing after the last line feed is no line
    assert same(data, clean)
    (tmp_path / "broken").write_bytes(b"\n".join([*lines[:150], line, line, line, line, *lines[150:]]))
    places = "; ".join(f"line {number}: {kind}" for number in (151, 152, 153))
    with pytest.raises(
        FewnodeError, match=f"broken: 4 of 204 lines cannot be used, more than 1%; the first: {places}$"
    ):
        build_amazon_clothing(tmp_path / "broken")


def test_a_line_that_is_too_long_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fewnode.datasets.lines.MAX_LINE", 3000)
    monkeypatch.setattr("fewnode.datasets.lines.CHUNK", 1000)
    records = [*crowd("Laces"), product("X", description="a" * 5000)]
    assert build_amazon_clothing(write(tmp_path / NAME, records)).info["skipped"] == {"longer than 16 MB": 1}


def test_a_dump_that_changes_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / NAME, crowd("Laces"))
    for content in (b"", b"{'asin'\n" * 200):
        write(path, crowd("Laces"))
        monkeypatch.setattr(dump, "stream_lines", changed_after_a_pass(content))
        with pytest.raises(FewnodeError, match="changed while it was read"):
            build_amazon_clothing(path)


def test_a_line_that_changed_after_it_was_chosen_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(*_: Any) -> Any:
        raise BadLineError("cut line")

    monkeypatch.setattr(amazon, "_text", damaged)
    with pytest.raises(FewnodeError, match="changed while it was read"):
        build_amazon_clothing(write(tmp_path / NAME, crowd("Laces")))


def test_a_literal_that_is_long_is_not_given_to_pythons_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(literal, "MAX_AST_BYTES", 10)
    assert literal._evaluate("{'a': 1}") == {"a": 1}
    with pytest.raises(BadLineError):
        literal._evaluate("{'a': 12345}")


def test_every_network_of_the_paper_has_a_builder() -> None:
    assert list(BUILDERS) == ["debian", "amazon-clothing", "amazon-electronics", "dblp", "reddit"]
