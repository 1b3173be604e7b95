"""What people answer is kept by the service, teaches it, and can be taken back; lists and files say the same."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

from fewnode.dataset import Dataset
from fewnode.model.estimator import Estimator
from service import Answer, InProcess
from service_networks import of_tables

Start = Callable[[], InProcess]


@pytest.fixture
def service(start: Start) -> InProcess:
    """With two classes."""
    found = start()
    for name in ("mail", "vpn"):
        body = {"support": [f"{name}-0", f"{name}-8"], "by": "Bob"}
        assert found.ask(f"/api/classes/{name}", body, "PUT").status == 200
    return found


def say(service: InProcess, *answers: tuple[str, str, str | None], **more: Any) -> Answer:
    given = [{"node": node, "class": name, "verdict": verdict} for node, name, verdict in answers]
    return service.ask("/api/answers", {"answers": given, **more})


def claims(service: InProcess, **body: Any) -> Any:
    answer = service.ask("/api/claims?" + urlencode({"limit": 1000, **body}, doseq=True))
    assert answer.status == 200, answer.body
    return answer.json


def by_node(service: InProcess, **body: Any) -> dict[str, Any]:
    return {row["node"]: row for row in claims(service, **body)["rows"]}


# --- answers ---


def test_yes_and_no_are_kept_and_teach(service: InProcess, start: Start) -> None:
    before = by_node(service, threshold=0.0)
    answer = say(service, ("mail-1", "mail", "yes"), ("mail-2", "mail", "no"), by="Ann")
    assert answer.status == 200
    assert (answer.json["undo"], answer.json["redo"]) == (True, False)
    mail = answer.json["classes"][0]
    assert [each["node"] for each in mail["support"]] == ["mail-0", "mail-8", "mail-1"]
    assert (mail["rejected"], mail["answers"]) == (["mail-2"], 2)
    after = by_node(service, threshold=0.0)
    assert after["mail-1"]["verdict"] == "yes"
    assert after["mail-1"]["by"] == "Ann"
    assert after["mail-2"]["class"] != "mail"
    assert before["mail-2"]["class"] == "mail"
    again = start()
    assert [each["answers"] for each in again.ask("/api/classes").json["classes"]] == [2, 0]
    assert by_node(again, threshold=0.0)["mail-1"]["when"] == after["mail-1"]["when"]


def test_where_nothing_tells_how_many_there_are_claims_are_a_guess(start: Start) -> None:
    service = start()
    service.ask("/api/classes/mail", {"support": ["mail-0"]}, "PUT")
    asked = service.ask("/api/classify", {"all": True}).json["note"], service.ask("/api/trust").json["note"]
    assert asked[0] == asked[1] == service.ask("/api/trust?threshold=0.4").json["note"]
    assert "until then what is claimed is a guess" in asked[0]


def test_the_journal_says_who_when_and_what(service: InProcess) -> None:
    say(service, ("mail-1", "mail", "yes"), ("mail-2", "mail", "no"), by="Ann")
    service.ask("/api/undo", {"by": "Eve"})
    found = service.ask("/api/journal").json
    assert (found["total"], found["undo"], found["redo"]) == (3, True, True)
    told = [(entry["number"], entry["by"], entry["what"], entry["undone"]) for entry in found["entries"]]
    assert told[0] == (3, "Ann", "2 answers for mail: 1 yes, 1 no.", True)
    assert told[2] == (1, "Bob", "mail is given by 2 examples.", False)
    page = service.ask("/api/journal?limit=1&offset=2").json["entries"]
    assert [entry["number"] for entry in page] == [1]
    table = list(csv.DictReader(io.StringIO(service.ask("/api/export/journal.csv").body.decode())))
    assert [row["by"] for row in table] == ["Ann", "Bob", "Bob"]
    assert json.loads(service.ask("/api/export/journal.json").body)["entries"] == found["entries"]


# --- lists and files ---


def test_the_list_is_sorted_filtered_and_cut_into_pages(service: InProcess) -> None:
    rows = claims(service, threshold=0.0)["rows"]
    assert len(rows) == 48
    assert [row["probability"] for row in rows] == sorted((row["probability"] for row in rows), reverse=True)
    names = [row["node"] for row in claims(service, threshold=0.0, sort="node", descending=False)["rows"]]
    assert names == sorted(names)
    page = claims(service, threshold=0.0, sort="node", descending=False, offset=3, limit=2)
    assert ([row["node"] for row in page["rows"]], page["total"]) == (names[3:5], 48)
    only = claims(service, threshold=0.0, **{"class": "mail"}, unanswered=True, text="spam")["rows"]
    assert {row["class"] for row in only} == {"mail"}
    assert all(row["verdict"] is None for row in only)
    told = claims(service, threshold=0.0, attribute="spam", attributes=["spam"], sort="spam")["rows"]
    assert {row["attributes"]["spam"] for row in told} == {1.0}
    assert service.ask("/api/claims?class=nothing").status == 404
    assert service.ask("/api/claims?sort=colour").status == 422
    assert service.ask("/api/claims?attributes=about").status == 422


@pytest.mark.parametrize("how", [{"class": "mail", "threshold": "0.2"}, {"closed_set": "true"}])
def test_a_file_says_what_the_page_says_and_how_it_was_made(service: InProcess, how: dict[str, Any]) -> None:
    say(service, ("mail-1", "mail", "yes"), by="=Ann")
    listed, query = claims(service, **how, attributes=["spam"]), urlencode({**how, "attributes": "spam"})
    files = {kind: service.ask(f"/api/export/claims.{kind}?{query}").body for kind in ("csv", "json", "parquet")}
    found, rows = json.loads(files["json"]), pq.read_table(io.BytesIO(files["parquet"])).to_pylist()
    assert found["rows"] == [{name: value for name, value in row.items() if name != "group"} for row in listed["rows"]]
    assert [row["spam"] for row in rows] == [row["attributes"]["spam"] for row in listed["rows"]]
    assert (found["version"], found["model"].split(",")[0]) == (listed["version"], "gpn-plus")
    assert found["threshold"] == (None if "closed_set" in how else 0.2)
    table = csv.DictReader(io.StringIO(files["csv"].decode()))
    assert {row["by"] for row in table} == {"'=Ann", ""}, "no formula for a spreadsheet"


def test_new_nodes_are_listed_by_when_they_came(service: InProcess) -> None:
    row = {"about": "mail spam inbox"}
    service.ask("/api/nodes", {"nodes": [{"node": "late", "row": row, "edges": ["mail-0", "mail-3"]}]})
    for only in ({"attached": True}, {"since": "2020-01-01"}):
        assert by_node(service, threshold=0.0, **only).keys() == {"late"}
    assert claims(service, threshold=0.0, since="2999-01-01T00:00:00Z")["rows"] == []
    assert [row["node"] for row in service.ask("/api/claims?threshold=0&since=2020-01-01").json["rows"]] == ["late"]


def test_an_answer_that_is_sent_twice_counts_once(service: InProcess, start: Start) -> None:
    """Whoever got no reply sends it again, with the same id: also after a restart, and after it was undone."""
    first = say(service, ("mail-1", "mail", "yes"), id="0123-abcd").json
    again = say(service, ("mail-1", "mail", "yes"), id="0123-abcd").json
    assert (again["version"], service.ask("/api/journal").json["total"]) == (first["version"], 3)
    service = start()
    service.ask("/api/undo", {})
    say(service, ("mail-1", "mail", "yes"), id="0123-abcd")
    assert [each["node"] for each in service.ask("/api/classes/mail").json["support"]] == ["mail-0", "mail-8"]
    assert say(service, ("mail-1", "mail", "yes"), id="4567-abcd").status == 200
    assert say(service, ("mail-1", "mail", "yes"), id="no id").status == 422


def test_a_list_of_thousands_is_a_class(tmp_path: Path) -> None:
    """A random sample of them is compared with nodes, which is said; all of them are in the class."""
    y = np.repeat(range(2), 3_000)
    x = np.eye(2, dtype=np.float32)[y] + np.random.default_rng(0).random((6_000, 2), dtype=np.float32)
    data = Dataset.from_scipy(sp.csr_array((6_000, 6_000)), x, y)
    service = InProcess(Estimator("gpn-plus").fit(data), data, tmp_path / "state.sqlite")
    put = service.ask("/api/classes/many", {"support": [str(i) for i in range(2_500)]}, "PUT")
    assert put.status == 200, put.body
    assert put.json["remarks"] == ["of 2,500 examples a random sample of 1,000 is compared with nodes"]
    rows = service.ask("/api/claims?limit=1000&sort=probability").json
    assert rows["total"] >= 2_500
    asked = service.ask("/api/classify", {"nodes": [str(i) for i in range(2_500)]}).json["results"]
    assert {(each["class"], each["member"]) for each in asked} == {("many", 1.0)}
    service.close()


def test_the_likeliest_are_asked_about_if_that_is_wanted(service: InProcess) -> None:
    found = service.ask("/api/next", {"class": "mail", "count": 4, "order": "likeliest"}).json["questions"]
    listed = claims(service, **{"class": "mail"}, threshold=0.0, unanswered=True)["rows"]
    assert [each["node"] for each in found if each["purpose"] == "find"] == [
        row["node"] for row in listed[: len(found)]
    ]


def test_without_a_class_nothing_is_claimed(start: Start) -> None:
    service = start()
    assert (claims(service)["total"], claims(service)["rows"]) == (0, [])
    header, _, rest = service.ask("/api/map/claims.bin").body.partition(b"\n")
    assert (json.loads(header)["classes"], rest) == ([], bytes(48))


@pytest.mark.parametrize("header", ["", "node,class,colour\n", "\ufeffid;label;colour\n"])
def test_a_pasted_list_is_read_and_nothing_of_it_is_dropped_silently(service: InProcess, header: str) -> None:
    lines = ["mail-1,mail,red", "", "nobody,mail", "mail-1,mail", "vpn-3", '"vpn-4","a ""b""",x', "mail-2,\x07"]
    text = header + "\r\n".join(lines)
    found = service.ask("/api/lists", {"text": text.replace(",", ";") if ";" in header else text}).json
    assert found["nodes"] == [
        {"node": "mail-1", "class": "mail"},
        {"node": "vpn-3", "class": None},
        {"node": "vpn-4", "class": 'a "b"'},
    ]
    first = 1 if header else 0
    assert [each["line"] for each in found["unknown"]] == [3 + first, 7 + first]
    assert found["repeated"] == 1
    assert found["unused_columns"] == (["colour"] if header else ["column 3"])
    assert service.ask("/api/lists", {"text": ""}).status == 422
    for text, told in (("a\n" * 300_000, "more than 10,000 nodes"), ("," * 1_000_000, "more than 1000 columns")):
        answer = service.ask("/api/lists", {"text": text})
        assert answer.status == 422
        assert told in answer.json["error"]


# --- the map, and what a form needs ---


def test_the_map_as_numbers_is_the_map(service: InProcess) -> None:
    header, _, rest = service.ask("/api/map.bin").body.partition(b"\n")
    n = json.loads(header)["nodes"]
    x, y = np.frombuffer(rest, "<u2", 2 * n).reshape(2, n) / 65_535
    names = service.ask(f"/api/names?rows={','.join(map(str, range(n)))}").json["names"]
    place = service.ask(f"/api/nodes/{names[7]}").json["position"]
    assert [x[7], y[7]] == pytest.approx(place, abs=1e-4)
    assert 0 < x.min() <= x.max() < 1, "no node is drawn on the border"
    assert len(rest) == 5 * n
    header, _, claimed = service.ask("/api/map/claims.bin?threshold=0").body.partition(b"\n")
    rows = by_node(service, threshold=0.0)
    classes = [None, *json.loads(header)["classes"]]
    assert [classes[place] for place in claimed] == [rows[name]["class"] for name in names]
    assert service.ask("/api/names?rows=48").status == 404
    assert service.ask("/api/names?rows=x").status == 422


def test_a_form_has_the_columns_of_the_dataset(service: InProcess, tmp_path: Path) -> None:
    assert service.ask("/api/columns").json == {"columns": [{"name": "about", "kind": "text"}], "way": "row"}
    network = of_tables()
    other = InProcess(network.model, network.data, tmp_path / "other.sqlite")
    found = other.ask("/api/columns").json
    assert [(each["name"], each["kind"]) for each in found["columns"]] == [
        ("about", "text"),
        ("balance", "number"),
        ("country", "category"),
        ("kind", "label"),
    ]
    assert found["columns"][2]["values"] == ["1", "FR", "true"]
    other.close()


@pytest.mark.parametrize("kind", ["no words", "no edges", "vectors", "no attributes"])
def test_any_dataset_can_be_asked_about(tmp_path: Path, kind: str) -> None:
    """Without words, names, edges or attributes: everything works, or says why not."""
    rng, y = np.random.default_rng(0), np.repeat(range(4), 10)
    x: Any = np.eye(4, dtype=np.float32)[y] + rng.random((40, 4), dtype=np.float32) / 4
    x = {"no words": sp.csr_array(x), "vectors": x - 0.5, "no attributes": None}.get(kind, x)
    adj = np.zeros((40, 40)) if kind == "no edges" else (y[:, None] == y) & (rng.random((40, 40)) < 0.4)
    data = Dataset.from_scipy(sp.csr_array(adj), x, y)
    service = InProcess(Estimator("gpn-plus").fit(data), data, tmp_path / "state.sqlite")
    for name, node in (("ü/?#&%", "0"), ("'\"<b>", "10")):
        service.ask("/api/classes/" + name.replace("%", "%25").replace("?", "%3F").replace("#", "%23"),
                    {"support": [node]}, "PUT")  # fmt: skip
    assert [each["name"] for each in service.ask("/api/classes").json["classes"]] == ["ü/?#&%", "'\"<b>"]
    assert say(service, ("1", "ü/?#&%", "yes"), ("11", "ü/?#&%", "no")).status == 200
    assert claims(service, threshold=0.0)["total"] == 40
    for path in ("/api/search?near=3", "/api/search?search=3&in=all", "/api/attributes", "/api/columns",
                 "/api/map.bin", "/api/export/claims.parquet"):  # fmt: skip
        assert service.ask(path).status == 200, path
    told = service.ask("/api/search?search=x&in=text")
    assert (told.status, "no words" in told.json["error"]) == (422, True)
    assert service.ask("/api/next", {"count": 2}).status == 200
    service.close()


# --- doors that must agree ---


def test_answers_that_were_asked_for_tell_how_many_members_there_are(service: InProcess) -> None:
    """Accepting a list tells nothing of nodes that nobody chose, and takes nothing of what was asked away."""
    drawn = service.ask("/api/next", {"class": "mail", "count": 9}).json["questions"]
    assert {each["purpose"] for each in drawn} == {"find", "check"}
    right = {each["node"]: "yes" if each["node"].startswith("mail") else "no" for each in drawn}
    say(service, *((node, "mail", said) for node, said in right.items()))
    before = service.ask("/api/trust?class=mail").json["classes"]["mail"]
    assert (before["members"], before["asked"], before["enough"]) == (None, 0, False)
    say(service, *((node, "mail", None) for node in right))
    answers = [
        {**{k: each[k] for k in ("node", "class", "probability")}, "verdict": right[each["node"]]} for each in drawn
    ]
    assert service.ask("/api/answers", {"answers": answers}).status == 200
    told = service.ask("/api/trust?class=mail").json["classes"]["mail"]
    assert told["asked"] == 9
    for what in ("members", "precision", "recall"):
        assert told[what]["low"] <= told[what]["value"] <= told[what]["high"]
    assert told["members"]["low"] <= 12 <= told["members"]["high"]
    assert say(service, *((node, "mail", said) for node, said in right.items())).status == 200
    assert service.ask("/api/trust?class=mail").json["classes"]["mail"] == told


@pytest.mark.parametrize(
    "path",
    [
        "/api/why/mail-1?clas=vpn",
        "/api/export/labels.csv?treshold=0.9",
        "/api/journal?from=3",
        "/api/search?value=3",
        "/api/export/claims.csv?value=3",
        "/api/claims?since=0001-01-01T00:00:00%2B23:59",
        "/api/claims?since=yesterday",
    ],
)
def test_a_word_of_an_address_is_used_or_refused(service: InProcess, path: str) -> None:
    answer = service.ask(path)
    assert answer.status == 422, answer.body
    assert set(answer.json) == {"error", "hint"}


def test_counter_examples_of_the_own_export_do_not_come_back_as_examples(service: InProcess) -> None:
    say(service, ("vpn-1", "mail", "no"))
    text = service.ask("/api/export/support.csv").body.decode()
    found = service.ask("/api/lists", {"text": text}).json
    assert [each["node"] for each in found["nodes"]] == ["mail-0", "mail-8", "vpn-0", "vpn-8"]
    assert (found["said_no"], found["unused_columns"], found["unknown"]) == (1, [], [])
