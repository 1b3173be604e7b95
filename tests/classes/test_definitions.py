"""Classes as people give them: nodes, a sentence or both; what cannot be used is named, what makes no sense refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.recognition.classes import Class, Given


def test_nodes_a_sentence_or_both(worded: Dataset) -> None:
    found = Given.of(
        worded,
        {
            "mail": ["n0", "n1"],
            "vpn": "an encrypted tunnel",
            "games": Class(yes=[50], text="play and score"),
            "music": Class(text=""),
        },
    )
    assert found.support.tolist() == [0, 1, 50]
    assert found.labels == ["mail", "mail", "games"]
    assert list(found.descriptions) == ["vpn", "games", "music"]
    assert [match.matched for match in found.descriptions["music"].known] == ["music"], "the name speaks"
    assert found.descriptions["vpn"].x.shape == (1, worded.graph.n_features)
    assert found.remarks == ()


def test_a_description_that_is_the_name_of_a_node_is_told(worded: Dataset) -> None:
    """Who means the node writes a list."""
    data = replace(worded, node_names=("tunnel", *(worded.node_names or ())[1:]))
    assert Given.of(data, {"vpn": "tunnel"}).remarks == (
        "class 'vpn': 'tunnel' is its description; ['tunnel'] is that node",
    )


def test_what_is_not_used_is_named(worded: Dataset) -> None:
    found = Given.of(
        worded, {"mail": "send 100 mails by pigeon", "c17": Class([9], text=""), "vpn": Class([30], text="a tunnel")}
    )
    assert any("'pigeon' is not a word of this network" in remark for remark in found.remarks)
    assert "class 'mail': numbers in a description are not used: 100" in found.remarks
    assert "class 'c17': its name says nothing here, so only its nodes count" in found.remarks
    assert list(found.descriptions) == ["mail", "vpn"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "no class is given, expected at least one with nodes or a description"),
        (["n1"], "classes are a list, expected a dict of names and what each stands for"),
        ({"mail": []}, "class 'mail' has no node and no description; give one of them"),
        ({"mail": None}, "class 'mail' is a NoneType, expected a list of row numbers, node names"),
        ({"mail": Class([1], text=3)}, "class 'mail': its description is 3, expected text"),
        ({"mail": [100]}, "class 'mail': node 100 is out of range, expected 0 to 99"),
        ({3: [1]}, "a class is called 3, expected a name"),
        ({"zz": "quux xyzzy"}, "class 'zz': no word of it .* is in the vocabulary of worded; it has words such as"),
        ({"zz": "mauls"}, "the nearest that it has are 'mail'"),
        ({"zz": ""}, "class 'zz': it has no description, and its name has no word of this network"),
        ({"vpn": [1], "VPN": [2]}, "classes 'vpn' and 'VPN' differ only in case, Unicode form or invisible characters"),
        ({"é": [1], "e\u0301": "mail"}, "differ only in case, Unicode form or invisible characters; give them as one"),
        ({"mail": 10_001 * "a"}, "a text of 10,001 characters, expected at most 10,000"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(worded: Dataset, given: Any, message: str) -> None:
    with pytest.raises(FewnodeError, match=message):
        Given.of(worded, given)


# --- tables ---------------------------------------------------------------------------------------------------------


def test_tables_of_nodes_and_of_descriptions(worded: Dataset, tmp_path: Path) -> None:
    support, classes = tmp_path / "support.csv", tmp_path / "classes.csv"
    support.write_text("node,class\nn0,mail\nn1,mail\nn30,vpn\n")
    classes.write_text("class,description\nvpn,an encrypted tunnel\nmusic,\n")
    both = Given.read(worded, support, classes)
    assert (both.support.tolist(), both.labels) == ([0, 1, 30], ["mail", "mail", "vpn"])
    assert list(both.descriptions) == ["vpn", "music"]
    assert Given.read(worded, support, None).descriptions == {}
    assert Given.read(worded, None, classes).support.size == 0
    again = Given.of(worded, {"mail": [0, 1], "vpn": Class([30], text="an encrypted tunnel"), "music": ""})
    assert again.support.tolist() == both.support.tolist()
    assert all((again.descriptions[name].x != both.descriptions[name].x).nnz == 0 for name in ("vpn", "music"))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("class,description\n", "no class in it"),
        ("class,description\nmail,a\nmail,b\n", "line 3: class 'mail' is on line 2 already"),
        ("class,description\n,send mail\n", "line 2: a description without a class"),
        ("klass,description\nmail,a\n", "klass"),
        ("class,description\nzz,xyzzy\n", "no word of it"),
        (f"class,description\nmail,{10_001 * 'a'}\n", "line 2: a description of 10,001 characters"),
    ],
)
def test_bad_tables_of_classes_are_refused_with_their_place(
    worded: Dataset, tmp_path: Path, table: str, message: str
) -> None:
    path = tmp_path / "classes.csv"
    path.write_text(table)
    with pytest.raises(FewnodeError, match=message):
        Given.read(worded, None, path)


def test_columns_that_are_not_read_are_named(worded: Dataset, tmp_path: Path) -> None:
    support, classes = tmp_path / "support.csv", tmp_path / "classes.csv"
    support.write_text("node,class,who\nn0,mail,me\n")
    classes.write_text("class,description,weight\nvpn,,2\n")
    told = Given.read(worded, support, classes).remarks
    assert f"{support}: not used: 'who'; read are node and class" in told
    assert f"{classes}: not used: 'weight'; read are class and description" in told
    support.write_text("node,class\nn0,mail\n")
    assert Given.read(worded, support, None).remarks == ()


@pytest.mark.parametrize(
    ("nodes", "sentences"),
    [
        ("node,class\nn1,vpn\nn2,VPN\n", None),
        ("node,class,answer\nn1,vpn,yes\nn2,Vpn,no\n", "class,description\nVpn,a tunnel\n"),
        ("node,class\nn1,vpn\n", "class,description\nVPN,a tunnel\n"),
        (None, "class,description\nvpn,a tunnel\nvpn\u200b,mail\n"),
    ],
)
def test_names_that_look_the_same_are_not_two_classes(
    worded: Dataset, tmp_path: Path, nodes: str | None, sentences: str | None
) -> None:
    tables: list[Path | None] = []
    for name, text in (("support.csv", nodes), ("classes.csv", sentences)):
        tables.append(tmp_path / name if text is not None else None)
        if text is not None:
            (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(FewnodeError, match=r"\.csv: classes 'vpn' .* differ only in case, .*; write them alike"):
        Given.read(worded, *tables)


def test_a_node_is_meant_as_it_is_written_else_without_spaces_around_it(worded: Dataset, tmp_path: Path) -> None:
    names = (" n1", *(worded.node_names or ())[1:])
    table = tmp_path / "support.csv"
    table.write_text('node,class\n" n1",mail\n n2,mail\nn1,vpn\n')
    found = Given.read(replace(worded, node_names=names), table, None)
    assert found.support.tolist() == [0, 2, 1], "the first was taken for the other one"
