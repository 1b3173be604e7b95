"""What a request may say: each limit at both sides, and what holds when nothing is said."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from fewnode.naming import plain
from fewnode.service.bodies import Attach, Body, Classify, GivenAnswers, NewNode, NextQuestion, PutClass


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (
            ["", " ", "\t", " a", "a ", "a\n", "\u3164", "\u2800\ufe0f"],
            "a name must not be blank, nor begin or end with a space",
        ),
        (["a\nb", "a\x00b", "a\u2028b", "a\u202eb"], "a name must not hold control characters"),
        ([".", ".."], "a name must not be . or .., which mean something in an address"),
    ],
)
def test_a_name_survives_a_table_and_an_address(names: list[str], said: str) -> None:
    for name in names:
        with pytest.raises(ValueError, match="name") as error:
            plain(name)
        assert str(error.value) == said


def many(count: int) -> list[str]:
    return [f"n{i}" for i in range(count)]


@pytest.mark.parametrize(
    ("body", "most", "least"),
    [
        (lambda n: PutClass(support=many(n)), 10_000, 1),
        (lambda n: PutClass(support=["x" * n]), 800, 1),
        (lambda n: PutClass(description="x" * n), 10_000, 0),
        (lambda n: Classify(all=True, descriptions=dict.fromkeys(many(n), "x")), 200, 1),
        (lambda n: Classify(nodes=many(n)), 10_000, 1),
        (lambda n: Classify(all=True, limit=n), 10_000, 1),
        (lambda n: Classify(all=True, support={name: ["x"] for name in many(n)}), 200, 1),
        (lambda n: Classify(all=True, support={"x" * n: ["x"]}), 200, 1),
        (lambda n: NextQuestion(count=n), 100, 1),
        (lambda n: NextQuestion(exclude=many(n)), 10_000, 0),
        (lambda n: GivenAnswers(answers=[{"node": "x", "class": "c", "verdict": "yes"}], id="x" * n), 64, 8),
        (lambda n: NewNode(node="x" * n), 200, 1),
        (lambda n: NewNode(node="x", attributes=dict.fromkeys(many(n), 1.0)), 1_000, 0),
        (lambda n: NewNode(node="x", row=dict.fromkeys(many(n), "cell")), 1_000, 0),
        (lambda n: NewNode(node="x", row={"x" * n: 1}), 800, 1),
        (lambda n: NewNode(node="x", row={"x": [1.0] * n}), 10_000, 0),
        (lambda n: NewNode(node="x", edges=many(n)), 1_000, 0),
        (lambda n: Attach(nodes=[NewNode(node=name) for name in many(n)]), 1_000, 1),
    ],
)
def test_so_much_and_no_more(body: Any, most: int, least: int) -> None:
    body(most)
    body(least)
    for beyond in (most + 1, *range(least)):
        with pytest.raises(ValidationError):
            body(beyond)


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (PutClass, {"support": ["x"], "Support": []}),
        (PutClass, {"support": [1]}),
        (PutClass, {"support": "x"}),
        (PutClass, {"description": 1}),
        (PutClass, {"description": "\x07"}),
        (PutClass, {"description": "\ud800"}),
        (Classify, {"all": 1}),
        (Classify, {"all": True, "limit": "5"}),
        (Classify, {"all": True, "mode": "inductive "}),
        (Classify, {"all": True, "mode": "Inductive"}),
        (Classify, {"all": True, "open_set": True}),
        (Classify, {"all": True, "threshold": 1.5}),
        (Classify, {"all": True, "threshold": float("nan")}),
        (NewNode, {"node": "x", "attributes": {"a": "1"}}),
        (NewNode, {"node": "x", "row": {"a": float("nan")}}),
        (NewNode, {"node": "x", "row": {"a": {"b": 1}}}),
        (NewNode, {"node": "x", "row": {"a": ["b"]}}),
        (NewNode, {"node": "x", "row": {"a": 1}, "attributes": {"a": 1}}),
        (NewNode, {"node": "x", "edges": [["a", "b"]]}),
        (NewNode, {"node": "x", "attributes": {"a": float("inf")}}),
        (NewNode, {"node": "x", "attributes": {"a": float("nan")}}),
    ],
)
def test_nothing_is_guessed(kind: type[Body], given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        kind(**given)
