"""The gate and the desk without a service behind them: what a server says to them, said by hand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest

from fewnode.serve.desk import Busy, Desk
from fewnode.serve.gate import Gate, rules
from service import PORT, TOKEN

Told = list[dict[str, Any]]
START = {"type": "http.response.start", "status": 200, "headers": []}


def told_by(app: Any, scope: dict[str, Any], parts: list[dict[str, Any]], ready: bool = True, **limits: float) -> Told:
    """What the gate before `app` sends. After the parts, the client says nothing more."""
    sent: Told = []
    waiting = list(parts)

    async def receive() -> dict[str, Any]:
        if not waiting:
            await asyncio.sleep(3600)
        return waiting.pop(0)

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    health = Mock(ready=ready, leaving=False)
    gate = Gate(app, replace(rules(TOKEN, "127.0.0.1", PORT), **limits), Desk(), health, Mock())
    asyncio.run(gate(scope, receive, send))
    return sent


def request(method: str = "GET", **headers: str) -> dict[str, Any]:
    given = {"host": f"127.0.0.1:{PORT}", "authorization": f"Bearer {TOKEN}", **headers}
    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in given.items()]
    address = {"path": "/api/x", "query_string": b"", "server": ("127.0.0.1", PORT)}
    return {"type": "http", "method": method, "headers": named, **address}


def answer(sent: Told) -> tuple[int, str]:
    return sent[0]["status"], json.loads(sent[1]["body"])["error"]


def test_a_server_that_starts_is_let_through_and_a_websocket_is_not() -> None:
    heard = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        heard.append(scope["type"])

    assert told_by(app, {"type": "lifespan"}, []) == []
    assert told_by(app, {"type": "websocket"}, []) == [{"type": "websocket.close", "code": 1008}]
    assert heard == ["lifespan"]


def test_before_the_model_is_there_nobody_is_served() -> None:
    sent = told_by(Mock(side_effect=AssertionError), request(), [], ready=False)
    assert answer(sent) == (503, "the model is still being loaded")
    assert (b"retry-after", b"1") in sent[0]["headers"]


@pytest.mark.parametrize(
    ("parts", "status", "error"),
    [
        ([{"type": "http.disconnect"}], 400, "the body ended early"),
        ([{"type": "http.request", "body": b"{", "more_body": True}], 408, "the body came too slowly"),
    ],
)
def test_a_body_that_does_not_come(parts: Told, status: int, error: str) -> None:
    posted = request("POST", content_type="application/json", content_length="9")
    assert answer(told_by(Mock(side_effect=AssertionError), posted, parts, body_seconds=0.01)) == (status, error)


async def _late(scope: Any, receive: Any, send: Any) -> None:
    await asyncio.sleep(3600)


async def _half(scope: Any, receive: Any, send: Any) -> None:
    await send(START)
    await asyncio.sleep(3600)


async def _broken(scope: Any, receive: Any, send: Any) -> None:
    await send(START)
    raise RuntimeError("in the middle")


async def _broken_late(scope: Any, receive: Any, send: Any) -> None:
    await send(START)
    await send({"type": "http.response.body", "body": b"all"})
    raise RuntimeError("after the end")


def test_a_bug_is_told_as_one() -> None:
    sent = told_by(Mock(side_effect=RuntimeError("secret")), request(), [])
    assert sent[0]["status"] == 500
    assert b"secret" not in sent[1]["body"]


def test_what_takes_too_long_is_told_so() -> None:
    assert answer(told_by(_late, request(), [], request_seconds=0.01)) == (504, "this took too long")


@pytest.mark.parametrize(("app", "error"), [(_half, TimeoutError), (_broken, RuntimeError)])
def test_an_answer_that_cannot_be_finished_cuts_the_connection(app: Callable[..., Any], error: type) -> None:
    """A second status line in the middle of a body would be worse."""
    with pytest.raises(error):
        told_by(app, request(), [], request_seconds=0.01)


def test_an_error_after_a_whole_answer_changes_nothing_of_it() -> None:
    assert [message["type"] for message in told_by(_broken_late, request(), [])] == [
        "http.response.start",
        "http.response.body",
    ]


def test_headers_that_may_come_twice() -> None:
    twice = request()
    twice["headers"] += [(b"accept", b"a"), (b"accept", b"b")]
    assert answer(told_by(_late, twice, [], request_seconds=0.01))[0] == 504
    twice["headers"].append((b"host", b"evil.example"))
    assert answer(told_by(_late, twice, []))[0] == 400


def test_who_gives_up_waiting_loses_nobody_elses_turn() -> None:
    """One is served, two wait; the first of them goes away, before and after it was called."""

    async def queue(called: bool) -> tuple[int, bool]:
        desk = Desk()
        first = await desk.turn()
        impatient, patient = (asyncio.create_task(desk.turn()) for _ in range(2))
        await asyncio.sleep(0)
        if called:
            first.end()
            await asyncio.sleep(0)  # the next one is called, and has not yet woken up
        impatient.cancel()
        with pytest.raises(asyncio.CancelledError):
            await impatient
        if not called:
            first.end()
        turn = await asyncio.wait_for(patient, 1)
        turn.end()
        turn.end()
        await asyncio.sleep(0.01)
        desk.close()
        return desk.in_hand, desk._serving

    assert asyncio.run(queue(called=False)) == (0, False)
    assert asyncio.run(queue(called=True)) == (0, False)


def test_a_full_queue_refuses_at_once() -> None:
    async def crowd() -> None:
        desk = Desk(burst=1)
        turn = await desk.turn()
        with pytest.raises(Busy):
            await desk.turn()
        turn.end()
        desk.close()

    asyncio.run(crowd())
