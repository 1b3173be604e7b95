"""The middleware without a service behind it: what a server says to it, said by hand."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest

from fewnode.service.access import ALWAYS, LOCKED_OUT, Access, Health, Metrics, Rules, rules
from service import PORT, TOKEN

Told = list[dict[str, Any]]
START = {"type": "http.response.start", "status": 200, "headers": []}


def told_by(
    app: Any,
    scope: dict[str, Any],
    parts: Told,
    health: Health | None = None,
    metrics: Any = None,
    **limits: float,
) -> Told:
    """What the middleware before `app` sends. After the parts, the client says nothing more."""
    sent: Told = []
    waiting = list(parts)

    async def receive() -> dict[str, Any]:
        if not waiting:
            await asyncio.sleep(3600)
        return waiting.pop(0)

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    limited = replace(rules(TOKEN, "127.0.0.1", PORT), **limits)
    asyncio.run(Access(app, limited, health or Health(ready=True), metrics or Mock())(scope, receive, send))
    return sent


def request(method: str = "GET", path: str = "/api/x", query: str = "", **headers: str) -> dict[str, Any]:
    """`headers` replace the usual ones; underscores are hyphens, and an empty one is left out."""
    given = {"host": f"127.0.0.1:{PORT}", "authorization": f"Bearer {TOKEN}", **headers}
    named = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in given.items() if value]
    address = {"path": path, "query_string": query.encode(), "server": ("127.0.0.1", PORT)}
    return {"type": "http", "method": method, "headers": named, **address}


def posted(**headers: str) -> dict[str, Any]:
    return request("POST", **{"content_type": "application/json", "content_length": "2", **headers})


def whole(sent: Told) -> tuple[int, Any, dict[str, str]]:
    """Status, body and those headers that not every answer has."""
    start, body = sent
    assert (start["type"], body["type"]) == ("http.response.start", "http.response.body")
    headers = [each for each in start["headers"] if each not in ALWAYS]
    assert len(start["headers"]) == len(headers) + len(ALWAYS)
    named = {name.decode(): value.decode() for name, value in headers}
    assert len(named) == len(headers)
    assert named.pop("content-length") == str(len(body["body"]))
    if (kind := named.pop("content-type")) != "application/json":
        return start["status"], (kind, body["body"]), named
    return start["status"], json.loads(body["body"] or "null"), named


def refused(status: int, error: str, hint: str, **headers: str) -> tuple[int, Any, dict[str, str]]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return status, {"error": error, "hint": hint}, {**named, "cache-control": "no-store"}


async def _nobody(scope: Any, receive: Any, send: Any) -> None:
    raise AssertionError("nothing behind the middleware may run")


class Echo:
    """Says "yes", and keeps what it was asked with."""

    def __init__(self, *headers: tuple[bytes, bytes]) -> None:
        self.headers = [(b"content-type", b"application/json"), (b"content-length", b"3"), *headers]
        self.asked: list[Any] = []
        self.scope: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.scope = scope
        self.asked.append(await receive())
        await send({**START, "headers": self.headers})
        await send({"type": "http.response.body", "body": b"[1]"})


YES = (200, [1], {"cache-control": "no-store"})


def answer(sent: Told) -> tuple[int, str]:
    return sent[0]["status"], json.loads(sent[1]["body"])["error"]


def test_a_server_that_starts_is_let_through_and_a_websocket_is_not() -> None:
    heard = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        heard.append(scope["type"])

    assert told_by(app, {"type": "lifespan"}, []) == []
    assert told_by(app, {"type": "websocket"}, []) == [{"type": "websocket.close", "code": 1008}]
    assert heard == ["lifespan"]


@pytest.mark.parametrize(
    ("health", "status"),
    [
        (Health(), 503),
        (Health(ready=True), 200),
        (Health(ready=True, leaving=True), 503),
        (Health(leaving=True), 503),
    ],
)
def test_ready_is_who_has_loaded_and_stays(health: Health, status: int) -> None:
    found = whole(told_by(_nobody, request(path="/health/ready"), [], health))
    closing = {"connection": "close"} if health.leaving else {}
    assert found == (status, {"ready": status == 200}, {"cache-control": "no-store", **closing})


@pytest.mark.parametrize("path", ["/api/x", "/metrics", "/static", "/openapi.json"])
def test_before_the_model_is_there_nobody_is_served(path: str) -> None:
    why = "the network is being made ready: embedding it, 0 s"
    said = refused(503, why, "come again in a second", retry_after="1")
    assert whole(told_by(_nobody, request(path=path), [], Health(stage="embedding it"))) == said


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([{"type": "http.disconnect"}], (400, "the body ended early", "send as much as Content-Length says")),
        ([{"type": "http.request", "body": b"{", "more_body": True}], (408, "the body came too slowly", "try again")),
    ],
)
def test_a_body_that_does_not_come(parts: Told, said: tuple[int, str, str]) -> None:
    status, error, headers = whole(told_by(_nobody, posted(), parts, body_seconds=0.01))
    assert (status, error["error"], error["hint"]) == said
    assert headers.get("connection") == ("close" if status == 408 else None)


def part(body: bytes, more: bool = False) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


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
    asked = {**posted(**headers), "method": method}
    assert whole(told_by(echo, asked, parts)) == YES
    assert (echo.asked, echo.scope) == ([part(b"{}")], asked)


@pytest.mark.parametrize("kind", ["", "text/plain", "application/jsonx", "multipart/form-data; application/json"])
def test_a_body_is_json(kind: str) -> None:
    said = refused(415, "the body must be JSON", "send Content-Type: application/json")
    assert whole(told_by(_nobody, posted(content_type=kind), [])) == said


def test_a_body_is_not_compressed() -> None:
    said = refused(415, "the body must not be compressed", "send it as it is")
    assert whole(told_by(_nobody, posted(content_encoding="gzip"), [])) == said


async def _broken(scope: Any, receive: Any, send: Any) -> None:
    await send(START)
    raise RuntimeError("in the middle")


async def _broken_late(scope: Any, receive: Any, send: Any) -> None:
    await send(START)
    await send({"type": "http.response.body", "body": b"all"})
    raise RuntimeError("after the end")


@pytest.mark.parametrize(("method", "verb"), [("GET", "GET"), ("BREW", "other")])
def test_a_bug_is_told_as_one_and_logged(method: str, verb: str, caplog: pytest.LogCaptureFixture) -> None:
    async def broken(scope: Any, receive: Any, send: Any) -> None:
        raise RuntimeError("secret\nline")

    said = refused(500, "a bug, not your fault", "the log of fewnode serve has more")
    assert whole(told_by(broken, request(method, path="/api/\n"), [])) == said
    [logged] = caplog.records
    first, *frames, last = logged.getMessage().splitlines()
    assert (logged.levelname, first) == ("ERROR", f"{verb} '/api/\\n'")
    assert last == "RuntimeError: 'secret\\nline'"
    assert frames[0].startswith('  File "')
    assert all(line.startswith("  ") for line in frames)
    assert 'raise RuntimeError("secret' in "\n".join(frames)


def test_an_answer_that_cannot_be_finished_cuts_the_connection() -> None:
    """A second status line in the middle of a body would be worse."""
    with pytest.raises(RuntimeError):
        told_by(_broken, request(), [])


def test_an_error_after_a_whole_answer_changes_nothing_of_it() -> None:
    assert [message["type"] for message in told_by(_broken_late, request(), [])] == [
        "http.response.start",
        "http.response.body",
    ]


def test_headers_that_may_come_twice() -> None:
    twice = request()
    twice["headers"] += [(b"accept", b"a"), (b"accept", b"b")]
    assert whole(told_by(Echo(), twice, [])) == YES


@pytest.mark.parametrize("name", ["host", "origin", "authorization", "content-type", "content-length", "if-match"])
def test_headers_that_may_come_once(name: str) -> None:
    twice = request(origin=f"http://127.0.0.1:{PORT}", content_type="a", content_length="2", if_match="x")
    twice["headers"] += [(key, value) for key, value in twice["headers"] if key == name.encode()]
    said = refused(400, "a header that may be given once is given twice", "send it once")
    assert whole(told_by(_nobody, twice, [])) == said


@pytest.mark.parametrize("host", ["", "127.0.0.1", "evil.example", f"evil.example:{PORT}", "\xff"])
def test_another_name_for_this_machine_is_refused(host: str) -> None:
    said = refused(403, "this service does not answer to that Host", "use the address that was printed")
    assert whole(told_by(_nobody, request(host=host), [])) == said


@pytest.mark.parametrize("origin", ["null", f"https://127.0.0.1:{PORT}", f"http://localhost:{PORT}", "\xff"])
def test_a_page_of_another_origin_is_refused(origin: str) -> None:
    said = refused(403, "this service does not answer pages of other origins", "use the page it serves itself")
    assert whole(told_by(_nobody, request(origin=origin), [])) == said


@pytest.mark.parametrize(
    ("host", "port", "hosts", "everywhere"),
    [
        ("127.0.0.1", 8000, {"127.0.0.1:8000", "localhost:8000", "[::1]:8000"}, False),
        ("Box.Local", 1, {"127.0.0.1:1", "localhost:1", "[::1]:1", "box.local:1"}, False),
        ("fe80::1", 1, {"127.0.0.1:1", "localhost:1", "[::1]:1", "[fe80::1]:1"}, False),
        ("0.0.0.0", 1, {"127.0.0.1:1", "localhost:1", "[::1]:1", "0.0.0.0:1"}, True),  # noqa: S104
        ("::", 1, {"127.0.0.1:1", "localhost:1", "[::1]:1", "[::]:1"}, True),
        (
            "::1",
            80,
            {"127.0.0.1", "localhost", "[::1]", "127.0.0.1:80", "localhost:80", "[::1]:80"},
            False,
        ),
    ],
)
def test_what_a_host_may_be_called(host: str, port: int, hosts: set[str], everywhere: bool) -> None:
    assert rules("t", host, port) == Rules("t", port, frozenset(hosts), everywhere, 10.0)
    assert rules("t", host, port).cookie == f"fewnode-{port}"


@pytest.mark.parametrize("given", [f"Bearer {TOKEN}", f"bearer  {TOKEN} ", f"BEARER {TOKEN}"])
def test_the_token_opens(given: str) -> None:
    assert whole(told_by(Echo(), request(authorization=given), [])) == YES


@pytest.mark.parametrize(
    "cookie", [f"fewnode-{PORT}={TOKEN}", f"a=b; fewnode-{PORT}={TOKEN};c", f"fewnode-{PORT}=x;fewnode-{PORT}={TOKEN}"]
)
def test_a_cookie_opens(cookie: str) -> None:
    assert whole(told_by(Echo(), request(authorization="", cookie=cookie), [])) == YES
    assert whole(told_by(Echo(), request(authorization="Basic eDp5", cookie=cookie), [])) == YES
    assert told_by(_nobody, request(authorization="Bearer wrong", cookie=cookie), [])[0]["status"] == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": ""},
        {"authorization": "Bearer"},
        {"authorization": f"Bearer {TOKEN[:-1]}"},
        {"authorization": f"Basic {TOKEN}"},
        {"authorization": "Bearer \xff"},
        {"authorization": "", "cookie": f"fewnode-{PORT + 1}={TOKEN}"},
        {"authorization": "", "cookie": f"fewnode-{PORT}={TOKEN[1:]}"},
        {"authorization": "", "cookie": f"fewnode-{PORT}"},
    ],
)
def test_who_has_no_token_is_told_how_to_get_in(headers: dict[str, str]) -> None:
    hint = "send Authorization: Bearer TOKEN, or open the link that fewnode serve printed"
    said = refused(401, "the token is missing or wrong", hint, www_authenticate="Bearer")
    for path in ("/api/x", "/health/ready", "/static/page.js", "/nothing"):
        assert whole(told_by(_nobody, request(path=path, query=f"token={TOKEN}", **headers), [])) == said
    for query in ("", "token=", "token=wrong", "token=%FF", f"Token={TOKEN}"):
        page = whole(told_by(_nobody, request(path="/", query=query, **headers), []))
        assert page == (401, ("text/html; charset=utf-8", LOCKED_OUT), {"cache-control": "no-store"})


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
        ({**posted(content_type=""), "method": "PUT"}, "PUT", "other", 415),
    ],
)
def test_each_request_is_counted_with_its_time(scope: dict[str, Any], verb: str, route: str, status: int) -> None:
    metrics = Metrics()
    told_by(Echo(), scope, [], metrics=metrics)
    told = metrics.text().decode()
    assert f'fewnode_requests_total{{method="{verb}",route="{route}",status="{status}"}} 1.0' in told
    assert f'fewnode_request_seconds_count{{route="{route}"}} 1.0' in told


def test_a_body_of_too_many_keys_is_refused_before_anything_is_made_of_it() -> None:
    body = json.dumps({"attributes": {f"a{i}": 1 for i in range(40_000)}}).encode()
    status, told, _ = whole(told_by(_nobody, posted(), [part(body)]))
    assert (status, told["error"]) == (422, "the body has more than 30,000 keys")
