"""`predict`, `suggest` and `evaluate` with --data alone: a dataset and a few labels or sentences, no training."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from fewnode.dataset import Dataset
from fewnode.formats.directory import save_dataset

SUPPORT = "node,class\nn0,mail\nn1,mail\nn30,vpn\nn31,vpn\n"
CLASSES = 'class,description\nmail,"send, receive and filter"\nvpn,\n'


@pytest.fixture(name="d")
def _d(worded: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    save_dataset(worded, tmp_path / "d")
    (tmp_path / "support.csv").write_text(SUPPORT)
    (tmp_path / "classes.csv").write_text(CLASSES)
    (tmp_path / "asked.csv").write_text("node\nn5\nn40\n")
    monkeypatch.chdir(tmp_path)
    return Path("d")


def rows(path: Path | str) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_the_second_time_nothing_is_computed_and_the_answer_is_the_same(fewnode, d: Path) -> None:
    asked = ("predict", "--data", d, "--support", "support.csv", "--all")
    first, second = fewnode(*asked), fewnode(*asked)
    assert not list(d.glob("*model*")), "nothing is written beside a dataset"
    assert first.out == second.out
    assert "reading it once" in first.err
    assert "reading it once" not in second.err


def test_a_dash_is_standard_output(fewnode, d: Path) -> None:
    for asked in (("predict", "--all"), ("suggest",)):
        command = (*asked, "--data", d, "--support", "support.csv")
        plain, dashed = fewnode(*command), fewnode(*command, "--out", "-")
        assert dashed.code == 0
        assert dashed.out == plain.out != ""
    assert not Path("-").exists()


def test_remarks_are_lines_and_quiet_silences_them(fewnode, d: Path) -> None:
    Path("classes.csv").write_text("class,description\nmail,send 100 wombats\nvpn,a tunnel\n")
    asked = ("predict", "--data", d, "--classes", "classes.csv", "--query", "asked.csv")
    told = fewnode(*asked)
    assert told.code == 0
    assert "class 'mail': 'wombats' is not a word of this network" in told.err
    assert "class 'mail': numbers in a description are not used: 100" in told.err
    assert fewnode(*asked, "--quiet").err == ""
    as_json = fewnode(*asked, "--json")
    assert [row["node"] for row in as_json.json["predictions"]] == ["n5", "n40"]


# --- what is refused ------------------------------------------------------------------------------------------------

ONE_LINE = [
    ((), "no class is given: --support names nodes of each, --classes describes them"),
    (("--support", "support.csv", "--method", "gpn"), "--method belongs to a run; without one, gpn-plus"),
    (("--support", "nowhere.csv"), "nowhere.csv: no such file"),
    (("--classes", "nowhere.csv"), "nowhere.csv: no such file"),
    (("--support", "node,class\nn0,mail\nnobody,mail\n"), "line 3: unknown node 'nobody'"),
    (("--support", "node,class\nn0,a\nn0,b\n"), "line 3: node 'n0' is in 'b', but in 'a' on line 2; a node may be"),
    (("--classes", "class,description\n"), "no class in it"),
    (("--classes", "class,description\nzz,xyzzy\n"), "xyzzy) is in the vocabulary"),
    (("--support", "support.csv", "--threshold", "2"), "the threshold is 2.0; a probability from 0 to 1"),
    (("--support", "support.csv", "--workers", "2", "--expected", "9"), "--expected: not used with --all in blocks"),
]


@pytest.mark.parametrize(("arguments", "message"), ONE_LINE)
def test_what_cannot_be_used_is_one_line_and_exit_2(fewnode, d: Path, arguments: tuple[str, ...], message: str) -> None:
    given = []
    for i, word in enumerate(arguments):
        if "\n" in word:
            Path(f"table{i}.csv").write_text(word)
            word = f"table{i}.csv"
        given.append(word)
    done = fewnode("predict", "--data", d, *given, "--all", "--out", "p.csv")
    assert done.code == 2
    assert message in done.err
    assert done.err.splitlines()[-1].startswith("fewnode: ")
    assert not Path("p.csv").exists()


def test_one_node_and_every_node_are_answered(fewnode, d: Path, worded: Dataset) -> None:
    Path("support.csv").write_text("node,class\nn0,mail\nn0,mail\n")
    done = fewnode("predict", "--data", d, "--support", "support.csv", "--all", "--out", "p.csv")
    assert done.code == 0
    assert rows("p.csv")[0]["label"] == "mail"
    lines = [f"n{i},{worded.class_names[c]}\n" for i, c in enumerate(worded.y)]
    Path("support.csv").write_text("node,class\n" + "".join(lines))
    assert fewnode("predict", "--data", d, "--support", "support.csv", "--all", "--out", "all.csv").code == 0
    assert [row["label"] for row in rows("all.csv")] == [worded.class_names[c] for c in worded.y]
    done = fewnode("suggest", "--data", d, "--support", "support.csv")
    assert done.code == 2
    assert "there is no node left to suggest" in done.err


def test_options_of_blocks_are_refused_where_there_are_none(fewnode, d: Path) -> None:
    more = ("--resume", "--workers", 2, "--backend", "ray", "--address", "host:1")
    done = fewnode("predict", "--data", d, "--support", "support.csv", "--query", "asked.csv", *more)
    assert (done.code, "--resume, --backend, --address, --workers: not used without --all" in done.err) == (2, True)


# --- from tables without classes ------------------------------------------------------------------------------------


def test_evaluate_all_classes(fewnode, d: Path) -> None:
    asked = ("evaluate", "--data", d, "--protocol", "all-classes", "--method", "gpn-plus", "--shot", 3, "--draws", 4)
    done = fewnode(*asked, "--json")
    assert done.code == 0, done.err
    found = done.json
    assert found["accuracy"]["mean"] > 0.8
    assert (found["protocol"], found["shot"], found["draws"], found["way"]) == ("all-classes", 3, 4, 4)
    assert found["method"] == "gpn-plus"
    assert 0 <= found["ece"] <= 1
    together = fewnode(*asked, "--json", "--transductive").json
    assert together["transductive"] is True
    assert together["accuracy"]["mean"] > 0.8


@pytest.mark.parametrize(
    "asked",
    [
        ("predict", "--all", "--out", "support.csv"),
        ("predict", "--all", "--explain", "--out", "mine.csv"),
        ("predict", "--query", "asked.csv", "--out", "./asked.csv"),
        ("suggest", "--out", "support.csv"),
    ],
)
def test_a_table_that_is_read_is_not_written_over(fewnode, d: Path, asked: tuple[str, ...]) -> None:
    """It may be the only copy of what somebody has labelled."""
    support = "mine.support.csv" if "mine.csv" in asked else "support.csv"
    Path(support).write_text(SUPPORT)
    done = fewnode(asked[0], "--data", d, "--support", support, *asked[1:])
    assert (done.code, "would be written over; choose another --out" in done.err) == (2, True)
    assert (Path(support).read_text(), Path("asked.csv").read_text()) == (SUPPORT, "node\nn5\nn40\n")


def test_columns_of_a_query_that_are_not_read_are_named(fewnode, d: Path) -> None:
    Path("asked.csv").write_text("node;price;text\nn5;3;x\n")
    for command in ("predict", "suggest"):
        done = fewnode(command, "--data", d, "--support", "support.csv", "--query", "asked.csv")
        assert (done.code, "asked.csv: not used: 'price', 'text'; read is node" in done.err) == (0, True)


def test_the_likeliest_are_labelled_whatever_the_threshold(fewnode, d: Path) -> None:
    Path("one.csv").write_text("node,class\nn0,mail\n")
    asked = ("predict", "--data", d, "--all", "--out", "p.csv")
    assert fewnode(*asked, "--support", "one.csv", "--top", 5).code == 0
    ranked = sorted(rows("p.csv"), key=lambda row: -float(row["mail"]))
    assert [row["label"] for row in ranked] == ["mail"] * 6 + ["none of these"] * (len(ranked) - 6), "n0, and five"
    both = [fewnode(*asked, "--support=support.csv", "--top=5", o) for o in ("--closed-set", "--threshold=0.4")]
    assert all(done.code == 2 and "leave out --top" in done.err for done in both)
