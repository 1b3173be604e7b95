"""Who is refused, what is refused, and that nothing of a user's reaches a header, a page or a log line as it is."""

from __future__ import annotations

import json
import logging

import pytest

from fewnode.service.access import LOCKED_OUT
from fewnode.service.moment import Moment
from service import PORT, TOKEN, Local

NAMES = ["<img src=x onerror=alert(1)>", "../../etc/passwd", "a/b", "%0d%0aSet-Cookie: x", "=1+1", "Ω’\U0001f600"]
SUPPORT = {"a": ["node-0"], "b": ["node-1"]}
ROUTES = ["/", "/health/ready", "/api/model", "/api/nodes", "/api/nodes/node-1", "/api/version", "/api/classes",
          "/api/export/support.csv", "/metrics", "/openapi.json", "/static/index.html", "/nothing"]  # fmt: skip


@pytest.mark.parametrize("path", ROUTES)
def test_every_route_but_live_needs_the_token(local: Local, path: str) -> None:
    for given in ("", "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN[:-1]}", TOKEN):
        answer = local.ask(path, Authorization=given, Cookie=f"fewnode-{PORT}={TOKEN[1:]}")
        assert answer.status == 401
        assert TOKEN not in answer.body.decode()
        assert local.ask("/health/live", Authorization=given).json == {"live": True}


def test_who_is_locked_out_is_told_how_to_get_in(local: Local) -> None:
    """A person who opens the page reads a page; a program reads what to send, and which scheme is asked for."""
    for path in ("/", "/?token=wrong", "/?token=", f"/?Token={TOKEN}", "/?token=%FF%00é".encode().decode("latin-1")):
        page = local.ask(path, Authorization="")
        assert (page.status, page.headers["content-type"]) == (401, "text/html; charset=utf-8")
        assert page.body == LOCKED_OUT
    answer = local.ask(f"/api/model?token={TOKEN}", Authorization="")
    assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert answer.json["hint"].startswith("send Authorization: Bearer TOKEN, or open the link")


def test_the_link_moves_the_token_into_a_cookie(local: Local) -> None:
    answer = local.ask(f"/?token={TOKEN}", Authorization="")
    assert (answer.status, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert cookie == f"fewnode-{PORT}={TOKEN}; Path=/; HttpOnly; SameSite=Strict"
    given = f"other=a%20b; {cookie.split(';')[0]}; {{json}}"
    assert local.ask("/api/model", Authorization="", Cookie=given).status == 200


@pytest.mark.parametrize("host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:1", "", "localhost"])
def test_a_name_pointed_at_this_machine_is_refused(local: Local, host: str) -> None:
    for path in ("/health/live", "/api/model", f"/?token={TOKEN}"):
        answer = local.ask(path, Host=host)
        assert answer.status == 403
        assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", f"http://127.0.0.1:{PORT + 1}", f"https://127.0.0.1:{PORT}"]
)
def test_pages_of_other_origins_are_refused(local: Local, origin: str) -> None:
    answer = local.ask("/api/classify", {"nodes": ["node-1"], "support": SUPPORT}, Origin=origin)
    assert answer.status == 403
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert local.ask("/api/classify", method="OPTIONS", Origin=origin).status == 403


@pytest.mark.parametrize("path", [*ROUTES, "/health/live", f"/?token={TOKEN}"])
def test_every_answer_is_fenced_in(local: Local, path: str) -> None:
    for token in (f"Bearer {TOKEN}", ""):
        headers = local.ask(path, Authorization=token).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] in ("no-store", "no-cache")
        assert "server" not in headers


def test_only_json_is_read(local: Local) -> None:
    body = json.dumps({"nodes": ["node-1"], "support": SUPPORT}).encode()
    for kind in ("", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonx"):
        assert local.ask("/api/classify", body, Content_Type=kind).status == 415
    assert local.ask("/api/classify", body, Content_Encoding="gzip").status == 415
    assert local.ask("/api/classify", body, Content_Type="application/json; charset=utf-8").status == 200
    odd = (b"{", b"\xff", b'{"nodes": NaN}', b"", b"null", b"[]", b'"x"', b'{"nodes":["\\ud800"]}')
    for broken in (*odd, b"[" * 100_000):
        answer = local.ask("/api/classify", broken)
        assert answer.status in (400, 422), broken
        assert set(answer.json) == {"error", "hint"}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api/classify", b'{"nodes": ["node-1"], "support": {"mail": ["node-1"], "mail": ["node-2"]}}'),
        ("PUT", "/api/classes/vpn", b'{"mail": 1, "\\u006dail": 2}'),
        ("POST", "/api/nodes", b'{"nodes": [{"node": "new", "row": {"mail": 1%s, "mail": "x"}}]}' % (b"0" * 5000)),
    ],
)
def test_a_key_that_is_there_twice_is_named(local: Local, method: str, path: str, body: bytes) -> None:
    answer = local.ask(path, body, method)
    assert (answer.status, answer.json["error"]) == (422, "'mail' is there twice in one object of the body")


def test_a_body_is_at_most_a_megabyte(local: Local) -> None:
    large = json.dumps({"nodes": ["x" * (1 << 20)]}).encode()
    assert local.ask("/api/classify", large).status == 413
    headers = [(b"host", f"127.0.0.1:{PORT}".encode()), (b"authorization", f"Bearer {TOKEN}".encode())]
    chunked = [*headers, (b"content-type", b"application/json"), (b"transfer-encoding", b"chunked")]
    assert local.send("POST", "/api/classify", chunked, [b"x" * 100_000] * 11).status == 413
    assert local.send("GET", "/api/model", chunked, [b"x" * 100_000] * 11).status == 413


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"nodes": ["node-1"] * 10_001, "support": SUPPORT}, "at most 10000"),
        ({"nodes": ["node-1"], "support": {f"c{i}": ["node-1"] for i in range(201)}}, "at most 200"),
        ({"nodes": ["node-1"], "support": {"a": [f"node-{i}" for i in range(10_001)]}}, "at most 10000"),
        ({"nodes": ["node-1"], "support": {"a": []}}, "at least 1"),
        ({"nodes": ["node-1"], "support": {}}, "at least 1"),
        ({"nodes": [], "support": SUPPORT}, "at least 1"),
        ({"nodes": ["node-1"], "support": {"a" * 201: ["node-1"]}}, "at most 200"),
        ({"nodes": ["node-1"], "support": {"a\nb": ["node-1"]}}, "control characters"),
        ({"nodes": ["node-1"], "support": {" a": ["node-1"]}}, "space"),
        ({"nodes": [1], "support": SUPPORT}, "valid string"),
        ({"nodes": ["node-1"], "all": True, "support": SUPPORT}, "either"),
        ({"support": SUPPORT}, "either"),
        ({"all": True, "support": SUPPORT, "limit": 5_001}, "10000 in all"),
        ({"nodes": ["node-1"], "mode": "both", "support": SUPPORT}, "mode"),
        ({"nodes": ["node-1"], "support": SUPPORT, "Nodes": []}, "Extra"),
        ({"nodes": ["node-1"], "support": {"a": ["node-1"], "b": ["node-1"]}}, "two classes"),
        ({"nodes": ["node-1"]}, "put a class"),
        ({"nodes": ["node-1", "nobody"], "support": SUPPORT}, "unknown node 'nobody'"),
    ],
)
def test_what_is_too_much_or_wrong_is_refused_in_a_sentence(
    local: Local, body: object, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fewnode.recognition.question.Question.probabilities", _no_tensor)
    answer = local.ask("/api/classify", body)
    assert answer.status == 422
    assert told in answer.json["error"]
    assert "\n" not in answer.json["error"]


def _no_tensor(*_: object) -> None:
    raise AssertionError("a tensor was built")


def test_attaching_has_its_limits(local: Local) -> None:
    for bad in (
        {"nodes": []},
        {"nodes": [{"node": f"n{i}"} for i in range(1001)]},
        {"nodes": [{"node": "n", "attributes": {"0": 1e39}}]},
        {"nodes": [{"node": "n", "attributes": {"0": "1"}}]},
        {"nodes": [{"node": "n\u0000"}]},
        {"nodes": [{"node": "n"}, {"node": "n"}]},
        {"nodes": [{"node": "n", "edges": ["node-1"] * 1001}]},
    ):
        assert local.ask("/api/nodes", bad).status == 422, bad
    assert local.ask("/api/model").json["data"]["attached"] == 0
    assert local.ask("/api/classes").json["version"].startswith("0-")


FILES = [f"state.sqlite{end}" for end in ("", "-shm", "-wal", ".lock")]


@pytest.mark.parametrize("name", NAMES)
def test_a_class_may_have_any_name(local: Local, name: str) -> None:
    from urllib.parse import quote

    address = f"/api/classes/{quote(name, safe='')}"
    assert local.ask(address, {"support": ["node-1"]}, "PUT").json["name"] == name
    answer = local.ask(address)
    assert answer.json["name"] == name
    assert answer.headers["content-type"] == "application/json"
    assert local.ask("/metrics").body.decode().isprintable() is False  # lines
    assert name not in local.ask("/metrics").body.decode()
    assert sorted(path.name for path in local.log.path.parent.iterdir()) == FILES
    assert local.ask(address, method="DELETE").status == 200
    assert local.ask(address).status == 404


def test_a_bug_is_told_without_its_insides_and_logged_escaped(
    local: Local, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("secret\nINFO: all is well")

    monkeypatch.setattr(Moment, "one_class", broken)
    with caplog.at_level(logging.ERROR):
        answer = local.ask("/api/classes/x%1b%e2%80%a8INFO:%20forged")
    assert answer.status == 500
    assert "secret" not in answer.body.decode()
    told = caplog.text.splitlines()
    assert told[-1] == "RuntimeError: 'secret\\nINFO: all is well'"
    assert "GET '/api/classes/x\\x1b\\u2028INFO: forged'" in told[0]
    assert sum(line.startswith("  File ") for line in told) > 2, "where it happened"
    assert all(line.startswith("  ") for line in told[1:-1])
