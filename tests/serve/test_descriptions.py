"""Classes that a sentence stands for, alone or beside nodes: kept, restored, answered by, and honest about it."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import Any

import pytest

from fewnode.recognition.classes import Given
from fewnode.recognition.description import MAX_LENGTH
from service import InProcess


@pytest.fixture
def texts_service(start: Callable[[], InProcess]) -> InProcess:
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


def test_a_description_that_disagrees_is_said_to(texts_service: InProcess) -> None:
    put(texts_service, "game", support=[f"game-{i}" for i in range(5)], description="play chess on a board")
    wrong = put(texts_service, "mail", support=[f"mail-{i}" for i in range(5)], description="a serif typeface font")
    assert "its description disagrees with its nodes, so it counts little" in wrong["remarks"]
    assert not any("disagrees" in told for told in texts_service.ask("/api/classes/game").json["remarks"])


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, 'Value error, give "support", "description" or both'),
        ({"support": [], "description": None}, 'Value error, give "support", "description" or both'),
        ({"description": 7}, "description: Input should be a valid string"),
        ({"description": "x" * (MAX_LENGTH + 1)}, "description: String should have at most 10000 characters"),
        ({"description": "mail \x00"}, "description: Value error, a description must not hold control characters"),
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


def test_lines_and_tabs_and_any_script_may_be_in_it(start: Callable[[], InProcess]) -> None:
    text = "mail\n\tspam\r\nπραγματικά\u00a0\U0001f600 =1+1"
    put(start(), "a", description=text)
    service = start()
    assert service.ask("/api/classes/a").json["description"] == text
    table = list(csv.reader(io.StringIO(service.ask("/api/export/classes.csv").body.decode(), newline="")))
    assert table[0] == ["class", "description"]
    assert table[1][0] == "a"


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
        {"descriptions": {"a": "mail", "A": "mail"}},
        {"descriptions": {"a": "mail"}, "support": {"A": ["mail-1"]}},
        {"descriptions": {f"d{i}": "mail" for i in range(101)}, "support": {f"s{i}": ["mail-1"] for i in range(100)}},
        {"descriptions": {"a": "qqqq"}},
    ],
)
def test_descriptions_of_a_request_are_checked(texts_service: InProcess, body: dict[str, Any]) -> None:
    assert texts_service.ask("/api/classify", {"nodes": ["mail-1"], **body}).status == 422
