"""Nodes by name, by words, by an attribute, and near another node."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from fewnode.model.estimator import Estimator
from service import InProcess
from service_networks import of_tables, texts


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    data = texts()
    found = InProcess(Estimator("gpn-plus").fit(data), data, tmp_path_factory.mktemp("search") / "state.sqlite")
    yield found
    found.close()


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    network = of_tables()
    found = InProcess(network.model, network.data, tmp_path_factory.mktemp("tables") / "state.sqlite")
    yield found
    found.close()


def search(service: InProcess, status: int = 200, **query: Any) -> Any:
    answer = service.ask("/api/search?" + urlencode({"limit": 1000, **query}))
    assert answer.status == status, answer.body
    return answer.json["nodes"] if status == 200 else answer.json["error"]


def has(service: InProcess, node: str, *words: str) -> bool:
    own = {each["word"] for each in service.ask(f"/api/nodes/{node}").json["words"]}
    return own >= set(words)


def test_words_are_found_in_any_form_and_all_of_them(service: InProcess) -> None:
    found = search(service, search="Filtering spam", **{"in": "text"})
    assert found
    assert all(has(service, each["node"], "filter", "spam") for each in found)
    assert {each["matched"] for each in found} == {"text"}
    assert sorted(found[0]["words"]) == ["filter", "spam"]
    every = {each["node"] for each in search(service)}
    assert {each["node"] for each in found} == {node for node in every if has(service, node, "filter", "spam")}


def test_a_word_that_is_begun_is_found(service: InProcess) -> None:
    found = search(service, search="typef", **{"in": "text"})
    assert found
    assert all(has(service, each["node"], "typeface") for each in found)
    assert search(service, search="zzz", **{"in": "all"}) == []


def test_the_nearest_nodes_are_of_the_same_topic(service: InProcess) -> None:
    found = search(service, near="vpn-3", limit=5)
    assert {each["node"].split("-")[0] for each in found} == {"vpn"}
    assert [each["similarity"] for each in found] == sorted((each["similarity"] for each in found), reverse=True)
    assert "vpn-3" not in {each["node"] for each in found}
    both = search(service, near="vpn-3", search="spam", **{"in": "text"})
    assert all(has(service, each["node"], "spam") for each in both)
    assert "did you mean" in search(service, 422, near="vpn3")


@pytest.mark.parametrize(
    ("attribute", "value", "nodes"),
    [
        ("country", "FR", "0369"),
        ("country", "", "0123456789"),
        ("balance", "3", "3"),
        ("balance", ">7", "89"),
        ("balance", "<= 1", "01"),
        ("balance", "2..4", "234"),
        ("balance", "7.5..", "89"),
        ("balance", "..0", "0"),
        ("balance", "", "0123456789"),
        ("bank", "", "05"),
        ("country=FR", "", "0369"),
    ],
)
def test_nodes_by_an_attribute(tables: InProcess, attribute: str, value: str, nodes: str) -> None:
    found = search(tables, attribute=attribute, value=value)
    assert sorted(each["node"] for each in found) == [f"A{i}" for i in nodes]
    assert {each["matched"] for each in found} == {"attribute"}


@pytest.mark.parametrize(
    ("attribute", "value", "told"),
    [
        ("colour", "", "there is no attribute 'colour'"),
        ("country", "ZZ", "column 'country' has no value 'ZZ'"),
        ("balance", "much", "is no number; write 12, >12, <=12 or 10..20"),
        ("about", "bank", "column 'about' is text; search for its words"),
    ],
)
def test_an_attribute_that_is_not_there_gets_a_sentence(
    tables: InProcess, attribute: str, value: str, told: str
) -> None:
    assert told in search(tables, 422, attribute=attribute, value=value)


def test_attributes_are_listed_with_what_they_are(tables: InProcess) -> None:
    found = tables.ask("/api/attributes?limit=3").json
    assert [(each["name"], each["kind"], each["nodes"]) for each in found["attributes"]] == [
        ("about", "text", 10),
        ("balance", "number", 10),
        ("country", "category", 10),
    ]
    only = tables.ask("/api/attributes?search=BAN").json["attributes"]
    assert only == [{"name": "bank", "nodes": 2, "kind": "word"}]
    assert tables.ask("/api/attributes?limit=1001").status == 422


def test_a_node_that_came_is_found_at_once(tables: InProcess, tmp_path: Path) -> None:
    tables.ask("/api/nodes", {"nodes": [{"node": "zebra", "row": {"about": "mill farm", "balance": 77}}]})
    assert [each["node"] for each in search(tables, search="zeb")] == ["zebra"]
    assert [each["node"] for each in search(tables, attribute="balance", value="77")] == ["zebra"]
    assert "zebra" in [each["node"] for each in search(tables, search="mill farm", **{"in": "text"})]
    tables.ask("/api/undo", {})
    assert search(tables, search="zeb") == []


def test_a_name_is_found_however_its_accents_are_put_together(tables: InProcess) -> None:
    given = {"nodes": [{"node": "caf\u00e9", "row": {}}, {"node": "re\u0301seau", "row": {}}]}
    assert tables.ask("/api/nodes", given).status == 200
    assert [each["node"] for each in search(tables, search="CAFE\u0301")] == ["caf\u00e9"]
    assert [each["node"] for each in search(tables, search="r\u00e9seau")] == ["re\u0301seau"]
    assert tables.ask("/api/undo", {}).status == 200
