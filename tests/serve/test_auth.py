"""The middleware without a service behind it: what a server says to it, said by hand."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest
from prometheus_client import CollectorRegistry

from fewnode.service.access import Access, Health, Rules, rules
from service import PORT, TOKEN

Told = list[dict[str, Any]]
START = {"type": "http.response.start", "status": 200, "headers": []}
OWN = f"fewnode-{PORT}"


def told_by(app: Any, scope: dict[str, Any], parts: Told, health: Health | None = None, **more: Any) -> Told:
    """What the middleware before `app` sends. After the parts, the client says nothing more."""
    sent: Told = []
    waiting = list(parts)
    registry = more.pop("registry", None) or CollectorRegistry()

    async def receive() -> dict[str, Any]:
        if not waiting:
            await asyncio.sleep(3600)
        return waiting.pop(0)

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    limited = replace(rules(TOKEN, "127.0.0.1", PORT), **more)
    asyncio.run(Access(app, limited, health or Health(ready=True), registry)(scope, receive, send))
    return sent


def request(method: str = "GET", path: str = "/api/x", query: str = "", **headers: str) -> dict[str, Any]:
    """`headers` replace the usual ones; underscores are hyphens, and an empty one is left out."""
    given = {"host": f"127.0.0.1:{PORT}", "authorization": f"Bearer {TOKEN}", **headers}
    named = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in given.items() if value]
    address = {"path": path, "query_string": query.encode(), "server": ("127.0.0.1", PORT)}
    return {"type": "http", "method": method, "headers": named, **address}


def posted(**headers: str) -> dict[str, Any]:
    return request("POST", **{"content_type": "application/json", "content_length": "2", **headers})


def part(body: bytes, more: bool = False) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


def refused(sent: Told) -> tuple[int, str, dict[str, str]]:
    """Status, sentence and headers of a refusal."""
    named = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    told = json.loads(sent[1]["body"])
    assert set(told) == {"error", "hint"}
    assert int(named["content-length"]) == len(sent[1]["body"])
    return sent[0]["status"], told["error"], named


async def _nobody(scope: Any, receive: Any, send: Any) -> None:
    raise AssertionError("nothing behind the middleware may run")


class Echo:
    """Says "yes", and keeps what it was asked with."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.asked.append(await receive())
        await send(dict(START))
        await send({"type": "http.response.body", "body": b"[1]"})


@pytest.mark.parametrize("leaving", [False, True])
@pytest.mark.parametrize("ready", [False, True])
def test_ready_is_who_has_loaded_and_stays(ready: bool, leaving: bool) -> None:
    start, body = told_by(_nobody, request(path="/health/ready"), [], Health(ready=ready, leaving=leaving))
    assert start["status"] == (200 if ready and not leaving else 503)
    assert json.loads(body["body"]) == {"ready": ready and not leaving}
    assert ((b"connection", b"close") in start["headers"]) == leaving


@pytest.mark.parametrize("path", ["/api/x", "/metrics", "/static", "/openapi.json"])
def test_before_the_model_is_there_nobody_is_served(path: str) -> None:
    status, error, headers = refused(told_by(_nobody, request(path=path), [], Health(stage="embedding it")))
    assert (status, error) == (503, "the network is being made ready: embedding it, 0 s")
    assert headers["retry-after"] == "1"
    assert told_by(Echo(), request(path="/static/page.js"), [part(b"")], Health())[0]["status"] == 200


@pytest.mark.parametrize(
    ("parts", "status", "error"),
    [
        ([{"type": "http.disconnect"}], 400, "the body ended early"),
        ([part(b"{", True)], 408, "the body came too slowly"),
    ],
)
def test_a_body_that_does_not_come(parts: Told, status: int, error: str) -> None:
    told = refused(told_by(_nobody, posted(), parts, body_seconds=0.01))
    assert told[:2] == (status, error)
    assert told[2].get("connection") == ("close" if status == 408 else None)


@pytest.mark.parametrize("method", ["POST", "PUT"])
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"content_type": "application/json; charset=utf-8"},
        {"content_type": " Application/JSON ;x"},
        {"content_encoding": "Identity"},
        {"content_length": "", "transfer_encoding": "chunked"},
        {"content_length": str(1 << 20)},
    ],
)
def test_a_body_is_read_before_it_is_handed_on_whole(method: str, headers: dict[str, str]) -> None:
    echo = Echo()
    parts = [part(b"{", True), {"type": "http.request", "more_body": True}, part(b"}")]
    assert told_by(echo, {**posted(**headers), "method": method}, parts)[0]["status"] == 200
    assert echo.asked == [part(b"{}")]


@pytest.mark.parametrize("whole", [False, True])
def test_an_answer_that_was_begun_is_not_begun_again(whole: bool) -> None:
    """One that cannot be finished cuts the connection; an error after the end changes nothing."""

    async def broken(scope: Any, receive: Any, send: Any) -> None:
        await send(dict(START))
        if whole:
            await send({"type": "http.response.body", "body": b"all"})
        raise RuntimeError

    if whole:
        assert len(told_by(broken, request(), [])) == 2
    else:
        with pytest.raises(RuntimeError):
            told_by(broken, request(), [])


def test_a_bug_below_the_application_is_told_as_one() -> None:
    async def broken(scope: Any, receive: Any, send: Any) -> None:
        raise RuntimeError("secret")

    assert refused(told_by(broken, request(), []))[:2] == (500, "a bug, not your fault")


@pytest.mark.parametrize(
    ("name", "status"),
    [(name, 400) for name in ("host", "origin", "authorization", "content-type", "content-length", "if-match")]
    + [("accept", 200)],
)
def test_headers_that_may_come_once(name: str, status: int) -> None:
    given = {"origin": f"http://127.0.0.1:{PORT}", "content_type": "a", "content_length": "0", "if_match": "x"}
    twice = request(accept="a", **given)
    twice["headers"] += [(key, value) for key, value in twice["headers"] if key == name.encode()]
    assert told_by(Echo() if status == 200 else _nobody, twice, [part(b"")])[0]["status"] == status


@pytest.mark.parametrize(
    ("host", "port", "hosts", "everywhere"),
    [
        ("127.0.0.1", 8000, {"127.0.0.1:8000", "localhost:8000", "[::1]:8000"}, False),
        ("Box.Local", 1, {"127.0.0.1:1", "localhost:1", "[::1]:1", "box.local:1"}, False),
        ("fe80::1", 1, {"127.0.0.1:1", "localhost:1", "[::1]:1", "[fe80::1]:1"}, False),
        ("0.0.0.0", 1, {"127.0.0.1:1", "localhost:1", "[::1]:1", "0.0.0.0:1"}, True),  # noqa: S104
        ("::", 1, {"127.0.0.1:1", "localhost:1", "[::1]:1", "[::]:1"}, True),
        ("::1", 80, {"127.0.0.1", "localhost", "[::1]", "127.0.0.1:80", "localhost:80", "[::1]:80"}, False),
    ],
)
def test_what_a_host_may_be_called(host: str, port: int, hosts: set[str], everywhere: bool) -> None:
    assert rules("t", host, port) == Rules("t", port, frozenset(hosts), everywhere, 10.0)


@pytest.mark.parametrize(
    ("host", "everywhere", "status"),
    [("10.0.0.7:8000", True, 200), ("10.0.0.7:8000", False, 403), ("10.0.0.8:8000", True, 403), ("\xff", True, 403)],
)
def test_where_all_is_served_the_address_is_a_host(host: str, everywhere: bool, status: int) -> None:
    asked = {**request(host=host), "server": ("10.0.0.7", PORT)}
    assert told_by(Echo(), asked, [part(b"")], everywhere=everywhere)[0]["status"] == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"authorization": f"bearer  {TOKEN} "}, 200),
        ({"authorization": f"BEARER {TOKEN}"}, 200),
        ({"authorization": "", "cookie": f"a=b; {OWN}={TOKEN};c"}, 200),
        ({"authorization": "Basic eDp5", "cookie": f"{OWN}={TOKEN}"}, 200),
        ({"authorization": "Bearer wrong", "cookie": f"{OWN}={TOKEN}"}, 401),
        ({"authorization": "Bearer \xff"}, 401),
        ({"authorization": f"Basic {TOKEN}"}, 401),
        ({"authorization": "", "cookie": f"fewnode-{PORT + 1}={TOKEN}"}, 401),
        ({"authorization": "", "cookie": f"{OWN}={TOKEN[1:]}"}, 401),
        ({"authorization": "", "cookie": OWN}, 401),
    ],
)
def test_the_token_opens_as_header_or_as_cookie(headers: dict[str, str], status: int) -> None:
    assert told_by(Echo() if status == 200 else _nobody, request(**headers), [part(b"")])[0]["status"] == status


@pytest.mark.parametrize(
    ("scope", "verb", "route", "status"),
    [
        (request(path="/health/live"), "GET", "/health/live", 200),
        (request("HEAD", path="/health/ready"), "HEAD", "/health/ready", 200),
        (request("DELETE", path="/"), "DELETE", "/", 200),
        (request(path="/nobody's/business"), "GET", "other", 200),
        (request("BREW"), "other", "other", 200),
        ({**request(), "route": Mock(path="/api/{name}")}, "GET", "/api/{name}", 200),
        (posted(content_type=""), "POST", "other", 415),
    ],
)
def test_each_request_is_counted_with_its_time(scope: dict[str, Any], verb: str, route: str, status: int) -> None:
    registry = CollectorRegistry()
    told_by(Echo(), scope, [part(b"")], registry=registry)
    labels = {"method": verb, "route": route, "status": str(status)}
    assert registry.get_sample_value("fewnode_requests_total", labels) == 1
    assert registry.get_sample_value("fewnode_request_seconds_count", {"route": route}) == 1


def test_a_body_of_too_many_keys_is_refused_before_anything_is_made_of_it() -> None:
    body = json.dumps({"attributes": {f"a{i}": 1 for i in range(40_000)}}).encode()
    assert refused(told_by(_nobody, posted(), [part(body)]))[:2] == (422, "the body has more than 30,000 keys")


def test_what_cannot_be_answered_now_is_refused_until_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fewnode.service.access.MAX_REQUESTS", 2)
    statuses: list[int] = []

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(0.01)
        await send(dict(START))

    async def ask(access: Access, path: str) -> None:
        async def send(message: dict[str, Any]) -> None:
            statuses.extend([message["status"]] if "status" in message else [])

        await access(request(path=path), Mock(), send)

    async def all_at_once() -> None:
        access = Access(slow, rules(TOKEN, "127.0.0.1", PORT), Health(ready=True), CollectorRegistry())
        await asyncio.gather(*(ask(access, path) for path in ("/api/x", "/api/x", "/api/x", "/health/live")))
        await ask(access, "/api/x")

    asyncio.run(all_at_once())
    assert statuses == [429, 200, 200, 200, 200]
