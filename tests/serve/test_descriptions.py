"""Classes that a sentence stands for, alone or beside nodes: kept, restored, answered by, and honest about it."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fewnode.dataset import Dataset
from fewnode.model.estimator import Estimator
from fewnode.recognition.classes import Class, Given
from fewnode.recognition.description import MAX_LENGTH
from service import InProcess, Local
from service_networks import texts


@pytest.fixture(scope="module")
def data() -> Dataset:
    return texts()


@pytest.fixture(scope="module")
def model(data: Dataset) -> Estimator:
    return Estimator("gpn-plus").fit(data)


Start = Callable[[], InProcess]


@pytest.fixture
def start(model: Estimator, data: Dataset, tmp_path: Path) -> Iterator[Start]:
    """The service, again and again on the same file."""
    started: list[InProcess] = []

    def again() -> InProcess:
        for old in started:
            old.close()
        started.append(InProcess(model, data, tmp_path / "state.sqlite"))
        return started[-1]

    yield again
    for old in started:
        old.close()


@pytest.fixture
def texts_service(start: Start) -> InProcess:
    return start()


def put(service: InProcess, name: str, status: int = 200, **body: Any) -> Any:
    answer = service.ask(f"/api/classes/{name}", body, "PUT")
    assert answer.status == status, answer.body
    return answer.json


def test_a_sentence_alone_is_a_class(texts_service: InProcess) -> None:
    found = put(texts_service, "letters", description="Sending mails, filtering spam")
    assert (found["description"], found["support"]) == ("Sending mails, filtering spam", [])
    assert found["description_beta"] == pytest.approx(1)
    assert len(found["position"]) == 2
    moving = {"version", "position"}  # the map is laid out meanwhile
    (listed,) = texts_service.ask("/api/classes").json["classes"]
    for told in (texts_service.ask("/api/classes/letters").json, listed):
        assert {k: v for k, v in told.items() if k not in moving} == {k: v for k, v in found.items() if k not in moving}
    answer = texts_service.ask("/api/classify", {"all": True, "limit": 5}).json
    assert len(answer["results"]) == 5
    assert all(each["node"].startswith("mail-") for each in answer["results"])
    trust = texts_service.ask("/api/trust").json["classes"]
    assert trust["letters"]["claimed"] == answer["counts"]["letters"]


def test_what_was_not_understood_is_told_every_time(start: Start) -> None:
    service = start()
    told = put(service, "post", description="mail of 1998, frobnicated")["remarks"]
    assert told[0].startswith("'frobnicated' is not a word of this network")
    assert told[1] == "numbers in a description are not used: 1998"
    assert service.ask("/api/classes/post").json["remarks"] == told
    service = start()
    assert service.ask("/api/classes").json["classes"][0]["remarks"] == told
    assert put(service, "post", support=["mail-1"])["remarks"] == []


def test_a_description_without_a_known_word_is_refused_with_near_ones(texts_service: InProcess) -> None:
    told = put(texts_service, "c17", 422, description="gnirps ches")["error"]
    assert told.startswith("class 'c17': no word of it (gnirps, ches) is in the vocabulary")
    assert "'chess'" in told
    assert put(texts_service, "c17", 422, description="")["error"].startswith("class 'c17': it has no description")
    assert texts_service.ask("/api/classes").json["classes"] == []


def test_an_empty_description_lets_the_name_speak(texts_service: InProcess) -> None:
    assert put(texts_service, "vpn", description="")["remarks"] == []
    nodes = ["vpn-0", "font-3"]
    found = texts_service.ask("/api/classify", {"nodes": nodes}).json["results"]
    assert found[0]["member"] > 4 * found[1]["member"]
    told = put(texts_service, "c17", support=["font-1"], description="")
    assert told["remarks"] == ["its name says nothing here, so only its nodes count"]
    assert told["description_beta"] is None


def test_a_description_that_disagrees_is_said_to(texts_service: InProcess) -> None:
    put(texts_service, "game", support=[f"game-{i}" for i in range(5)], description="play chess on a board")
    wrong = put(texts_service, "mail", support=[f"mail-{i}" for i in range(5)], description="a serif typeface font")
    assert "its description disagrees with its nodes, so it counts little" in wrong["remarks"]
    assert not any("disagrees" in told for told in texts_service.ask("/api/classes/game").json["remarks"])


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, 'Value error, give "support", "description" or both'),
        ({"support": []}, 'Value error, give "support", "description" or both'),
        ({"support": [], "description": None}, 'Value error, give "support", "description" or both'),
        ({"description": 7}, "description: Input should be a valid string"),
        ({"description": ["mail"]}, "description: Input should be a valid string"),
        ({"description": "x" * (MAX_LENGTH + 1)}, "description: String should have at most 10000 characters"),
        ({"description": "mail \x00"}, "description: Value error, a description must not hold control characters"),
        ({"description": "mail \x1b[2J"}, "description: Value error, a description must not hold control characters"),
    ],
)
def test_what_is_no_description_is_refused_before_it_is_read(
    texts_service: InProcess, monkeypatch: pytest.MonkeyPatch, body: dict[str, Any], said: str
) -> None:
    def read(*_: object) -> None:
        raise AssertionError("it was read")

    monkeypatch.setattr(Given, "of", read)
    assert put(texts_service, "a", 422, **body)["error"] == said
    assert texts_service.ask("/api/classes").json["classes"] == []


def test_lines_and_tabs_and_any_script_may_be_in_it(start: Start) -> None:
    text = "mail\n\tspam\r\nπραγματικά\u00a0\U0001f600 =1+1"
    put(start(), "a", description=text)
    service = start()
    assert service.ask("/api/classes/a").json["description"] == text
    table = list(csv.reader(io.StringIO(service.ask("/api/export/classes.csv").body.decode(), newline="")))
    assert table[0] == ["class", "description"]
    assert table[1][0] == "a"


def test_a_restart_and_changes_of_the_network_keep_it(start: Start) -> None:
    service = start()
    put(service, "mail", description="filter spam", support=["mail-1"])
    put(service, "vpn", description="encrypted tunnel")
    body = {"nodes": ["vpn-2", "mail-2"]}
    before, answer = service.ask("/api/classes").json, service.ask("/api/classify", body).json
    service = start()
    assert service.ask("/api/classes").json == before
    assert service.ask("/api/classify", body).json == answer
    new = {"nodes": [{"node": "new", "row": {"about": "tunnel encrypt peer"}, "edges": ["vpn-1"]}]}
    attached = service.ask("/api/nodes", new).json
    assert attached["results"][0]["class"] == "vpn"
    said = {each["name"]: each["description"] for each in service.ask("/api/classes").json["classes"]}
    assert said == {"mail": "filter spam", "vpn": "encrypted tunnel"}
    assert service.ask("/api/classes/vpn", method="DELETE").status == 200
    assert [each["name"] for each in start().ask("/api/classes").json["classes"]] == ["mail"]


def test_put_says_all_of_a_class(start: Start) -> None:
    """What is left out is gone; nothing of what was before counts."""
    service = start()
    both = put(service, "mail", description="filter spam", support=["mail-1"])
    assert both["description_beta"] + both["support"][0]["beta"] == pytest.approx(1)
    assert put(service, "mail", description="filter spam", support=["mail-1"])["version"] == both["version"]
    assert put(service, "mail", support=["mail-1"])["description"] is None
    assert put(start(), "mail", description="filter spam")["support"] == []


def test_answers_are_those_of_predict(texts_service: InProcess, model: Estimator, data: Dataset) -> None:
    given = {"mail": Class(["mail-1"], text="filter spam"), "vpn": "encrypted tunnel", "game": ["game-2"]}
    defined = Given.of(data, given)
    expected = model.question(data, defined).judge(range(data.graph.n), threshold=0.5)
    put(texts_service, "mail", support=["mail-1"], description="filter spam")
    put(texts_service, "vpn", description="encrypted tunnel")
    put(texts_service, "game", support=["game-2"])
    asked: dict[str, Any] = {"nodes": list(data.node_names or ())}
    found = texts_service.ask("/api/classify", asked).json
    assert [each["probabilities"] for each in found["results"]] == expected.probabilities.tolist()
    assert texts_service.ask("/api/export/labels.csv").body.decode() == expected.to_csv()
    inline = {"support": {"mail": ["mail-1"], "game": ["game-2"]}, "descriptions": {"mail": "filter spam"}}
    inline["descriptions"]["vpn"] = "encrypted tunnel"
    again = texts_service.ask("/api/classify", {**asked, **inline}).json
    assert again["results"] == found["results"]


def test_why_names_the_words_of_a_description(texts_service: InProcess) -> None:
    for name, said in {"mail": "filter spam", "game": "play chess"}.items():
        put(texts_service, name, description=said)
    words = {each["word"] for each in texts_service.ask("/api/nodes/game-1").json["words"]} & {"play", "chess", "game"}
    sentence = texts_service.ask("/api/why/game-1?class=game").json["sentence"]
    assert [word for word in words if word not in sentence] == []
    assert "like the description" in sentence


@pytest.mark.parametrize(
    "body",
    [
        {"descriptions": {}},
        {"descriptions": {"a": None}},
        {"descriptions": {"": "mail"}},
        {"descriptions": {"a": "x" * (MAX_LENGTH + 1)}},
        {"descriptions": {"a": "mail", "A": "mail"}},
        {"descriptions": {"a": "mail"}, "support": {"A": ["mail-1"]}},
        {"descriptions": {f"d{i}": "mail" for i in range(101)}, "support": {f"s{i}": ["mail-1"] for i in range(100)}},
        {"descriptions": {"a": "qqqq"}},
    ],
)
def test_descriptions_of_a_request_are_checked(texts_service: InProcess, body: dict[str, Any]) -> None:
    assert texts_service.ask("/api/classify", {"nodes": ["mail-1"], **body}).status == 422


def test_tables_go_back_into_predict(texts_service: InProcess, data: Dataset, tmp_path: Path) -> None:
    put(texts_service, "mail", support=["mail-1"], description="filter spam")
    put(texts_service, "vpn", description="")
    put(texts_service, "game", support=["game-2"])
    paths = [tmp_path / "support.csv", tmp_path / "classes.csv"]
    for path in paths:
        path.write_bytes(texts_service.ask(f"/api/export/{path.name}").body)
    given = Given.read(data, *paths)
    assert given.labels == ["mail", "game"]
    assert {name: said.text for name, said in given.descriptions.items()} == {"mail": "filter spam", "vpn": ""}


def test_a_method_that_cannot_read_descriptions_says_so(local: Local) -> None:
    about = local.ask("/api/model").json
    assert about["describes"] is False
    answer = local.ask("/api/classes/a", {"description": "mail"}, "PUT")
    assert answer.status == 422


def test_the_model_says_that_it_can(texts_service: InProcess) -> None:
    about = texts_service.ask("/api/model").json
    assert about["describes"] is True
    assert about["limits"]["description"] == MAX_LENGTH


def test_a_node_called_like_a_description_is_a_node(texts_service: InProcess) -> None:
    new = {"nodes": [{"node": "(description)", "row": {"about": "tunnel vpn peer"}, "edges": ["vpn-1"]}]}
    assert texts_service.ask("/api/nodes", new).status == 200
    put(texts_service, "vpn", support=["(description)"], description="encrypted tunnel")
    put(texts_service, "mail", support=["mail-1"])
    assert texts_service.ask("/api/classes/vpn").json["support"][0]["node"] == "(description)"
