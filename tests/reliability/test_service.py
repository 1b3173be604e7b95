"""The service against strangers: wrong addresses, names, bytes and paces. The quick part is in `tests/serve`."""

from __future__ import annotations

import json
import mmap
import os
import random
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

from fewnode.dataset import Dataset
from fewnode.service.log import Log
from service import TOKEN, Local, Running, save_run, serving
from sizes import Figure, in_child, sizes, until

pytestmark = pytest.mark.check
REFUSED = {400, 401, 403, 404, 405, 411, 413, 414, 415, 422, 429, 431, 501}


@pytest.fixture(scope="module")
def run_dir(planted: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_run(planted, tmp_path_factory.mktemp("serve"), episodes=10)


@pytest.fixture(scope="module")
def server(run_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(run_dir, "--state", tmp_path_factory.mktemp("state") / "state.sqlite") as running:
        yield running


def raw(server: Running, blob: bytes, wait: float = 60.0) -> bytes:
    """Exactly these bytes, and all that comes back until the other side is done."""
    parts = []
    with socket.create_connection(("127.0.0.1", server.port), timeout=wait) as connection, suppress(OSError):
        connection.sendall(blob)
        if b"connection: close" not in blob.lower():  # else the other side ends it, and has to be waited for
            connection.shutdown(socket.SHUT_WR)
        while part := connection.recv(1 << 16):
            parts.append(part)
    return b"".join(parts)


def status(answer: bytes) -> int:
    return int(answer[9:12]) if answer.startswith(b"HTTP/1.") else 400


def request(server: Running, target: str, method: str = "GET", body: bytes = b"", **headers: str) -> bytes:
    given = {"Host": f"127.0.0.1:{server.port}", "Authorization": f"Bearer {TOKEN}", "Connection": "close"}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    if body:
        given |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items() if value)]
    return "\r\n".join([*lines, "", ""]).encode("utf-8", "surrogateescape") + body


def routes(server: Running) -> list[tuple[str, str]]:
    found = server.ask("/openapi.json").json["paths"]
    named = [
        (verb.upper(), path.replace("{node}", "node-1").replace("{name}", "x"))
        for path in found
        for verb in found[path]
    ]
    return [*named, ("GET", "/"), ("GET", "/static/index.html"), ("GET", "/openapi.json")]


def alive(server: Running) -> None:
    assert server.ask("/health/ready").status == 200
    assert server.process.poll() is None


# --- where --------------------------------------------------------------------------------------------------------

UP = ("..", "%2e%2e", "%2E.", ".%2e", "%252e%252e", "..;", "..%00", "..\\", "%c0%ae%c0%ae", "\u2025", "....//..",
      ".%00.")  # fmt: skip
SLASH = ("/", "%2f", "%5c", "\\", "%252f", "//")
TARGETS = ("etc/passwd", "app.py", "proc/self/environ", "model.json")
DOORS = ("/static/", "/", "/static", "/api/nodes/", "/api/classes/", "/static/./")


def traversals() -> list[str]:
    found = [
        f"{door}{(up + slash) * deep}{target}"
        for door, up, slash, deep, target in product(DOORS, UP, SLASH, (1, 8), TARGETS)
    ]
    absolute = [f"/static/{quote(str(p), safe='')}" for p in ("/etc/passwd", "file:///etc/passwd", "//etc/passwd")]
    return absolute + found[:: max(1, len(found) // 400)]


def test_no_path_leads_out(server: Running, figure: Figure) -> None:
    found = traversals()
    assert len(found) >= 200
    for target in found:
        answer = raw(server, request(server, target))
        assert status(answer) in REFUSED, (target, answer[:200])
        assert b"root:" not in answer
        assert b"import " not in answer
        assert b"PATH=" not in answer
    alive(server)
    figure("service.paths", f"{len(found)} paths: none leads out")


NAMES = """
evil.example 127.0.0.1.evil.example localhost.evil.example evil.example:{port} [::ffff:127.0.0.1]:{port} 127.0.0.1
127.0.0.1:1 127.0.0.1:{port}0 0.0.0.0:{port} 2130706433:{port} 0x7f000001:{port} 127.1:{port} 0177.0.0.1:{port}
127.0.0.1.:{port} localhost.:{port} localhost user@127.0.0.1:{port} 127.0.0.1:{port}@evil.example 127.0.0.1:{port}/x
127.0.0.1:{port}?x 127.0.0.1:{port}#x :{port} 127.0.0.1:{port},evil.example evil.example,127.0.0.1:{port}
[::1]:1 [::]:{port} [::1%25lo]:{port} [0:0:0:0:0:0:0:1]:{port} ::1:{port} http://127.0.0.1:{port} 127.0.0.1:{port}%00
ⓛocalhost:{port} 127。0。0。1:{port} xn--localhost:{port} *:{port} null 127.0.0.2:{port} 192.168.0.1:{port}
169.254.169.254 metadata.google.internal"""
HOSTS = [*NAMES.split(), "127.0.0.1 :{port}"]


def test_foreign_hosts_on_every_route(server: Running, figure: Figure) -> None:
    every, asked = routes(server), 0
    for host, (verb, path) in product(HOSTS, every):
        body = b"{}" if verb in ("POST", "PUT") else b""
        answer = raw(server, request(server, path, verb, body, Host=host.format(port=server.port)))
        assert status(answer) in (400, 403), (host, verb, path, answer[:120])
        asked += 1
    forms = f"{len(HOSTS)} foreign forms of Host on {len(every)} routes"
    figure("service.hosts", f"{forms}, {asked:,} requests: all refused")


def test_pages_of_others_cannot_change_anything(server: Running, figure: Figure) -> None:
    """With the visitor's cookie, which a browser would not even send: it is SameSite=Strict."""
    cookie = f"fewnode-{server.port}={TOKEN}"
    origins = [
        "http://evil.example",
        "null",
        "https://127.0.0.1",
        "http://127.0.0.1:1",
        "file://",
        "chrome-extension://x",
    ]
    kinds = ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", "text/json"]
    before, tried = server.ask("/api/classes").json["version"], 0
    body = json.dumps({"support": ["node-1"]}).encode()
    for verb, path in (("PUT", "/api/classes/x"), ("POST", "/api/nodes"), ("DELETE", "/api/classes/x")):
        for origin in origins:
            answer = raw(server, request(server, path, verb, body, Authorization="", Cookie=cookie, Origin=origin))
            assert status(answer) == 403
            tried += 1
        for kind in kinds if verb != "DELETE" else ():
            blob = request(server, path, verb, body, Authorization="", Cookie=cookie)
            blob = blob.replace(b"Content-Type: application/json", f"Content-Type: {kind}".encode())
            assert status(raw(server, blob)) == 415
            tried += 1
    assert server.ask("/api/classes").json["version"] == before
    figure("service.csrf", f"{tried} requests of other pages: all refused, nothing changed")


# --- bytes --------------------------------------------------------------------------------------------------------


def smuggled(port: int) -> list[bytes]:
    """A first request that two servers would end at different places, and a second one inside it."""
    inner = (
        f"GET /api/model HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {TOKEN}\r\nX: y\r\n\r\n".encode()
    )
    start = f"POST /api/classify HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n".encode()
    size = str(len(inner)).encode()
    forms = [
        b"Content-Length: " + size + b"\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n5c\r\n",
        b"Content-Length: 0\r\nContent-Length: " + size + b"\r\n\r\n",
        b"Content-Length: " + size + b", 0\r\n\r\n",
        b"Content-Length: +0\r\n\r\n",
        b"Content-Length: -1\r\n\r\n",
        b"Content-Length: 0x0\r\n\r\n",
        b"Content-Length : 0\r\n\r\n",
        b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"X: a\r\n Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n",
        b"X: a\nContent-Length: 0\n\n",
        b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n0;a=\x00\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n-1\r\n",
        b"Content-Length: 99999999999999999999999\r\n\r\n",
        b"X\x00: y\r\nContent-Length: 0\r\n\r\n",
        b": y\r\nContent-Length: 0\r\n\r\n",
    ]
    # without a token for the first one: what is let through then came from inside
    return [start + form + inner for form in forms]


def test_no_request_hides_in_another(server: Running, figure: Figure) -> None:
    """A second request on a connection is the sender's own right; what must not be is one whose place is disputed."""
    disputed = 0
    for blob in smuggled(server.port):
        answer = raw(server, blob)
        both = b"content-length" in blob.lower() and b"transfer-encoding" in blob.lower()
        if both or b"Content-Length: 0\r\nContent-Length" in blob or b", 0" in blob:
            assert b'"method"' not in answer, (blob[:200], answer[:300])
            disputed += 1
        assert b"Traceback" not in answer
        failed = [part for part in answer.split(b"HTTP/1.1 ")[1:] if part[:1] == b"5" and part[:3] != b"501"]
        assert failed == []
    alive(server)
    told = f"{len(smuggled(1))} malformed framings, {disputed} of them disputed"
    figure("service.smuggling", f"{told}: no hidden request")


def bodies() -> list[bytes]:
    deep = [b"[" * n + b"]" * n for n in (100, 10_000, 400_000)] + [b'{"a":' * 50_000 + b"1" + b"}" * 50_000]
    odd = [
        b"",
        b"null",
        b"1",
        b"[]",
        b'"x"',
        b"{",
        b"}",
        b"nan",
        b"{'a': 1}",
        b"\xff\xfe",
        b"\x00",
        b'{"nodes": [NaN]}',
    ]
    odd += [b'{"all": true, "all": false}', b'{"nodes": ["\\ud800"]}', b'{"limit": 1e999}']
    odd += [b'{"limit": ' + b"9" * 5000 + b"}"]
    odd += [b'{"nodes": "node-1"}', b'{"nodes": [null]}', b'{"support": {"a": []}}', b'{"support": {"": ["node-1"]}}']
    odd += [json.dumps({"nodes": ["node-1"], "support": {"a" * 500: ["node-1"]}}).encode()]
    odd += [json.dumps({"nodes": ["node-1"] * 10_001}).encode(), b'{"nodes": ["' + b"x" * 900_000 + b'"]}']
    return [*deep, *odd, b" " * (1 << 20) + b"{}", b"x" * (1 << 21)]


def test_bodies_that_are_no_questions(server: Running, figure: Figure) -> None:
    tried = 0
    for path in ("/api/classify", "/api/nodes", "/api/nothing", "/api/classes/x"):
        for body in bodies():
            answer = raw(server, request(server, path, "PUT" if path.endswith("x") else "POST", body or b" "))
            if not answer:  # the connection was closed on a body that is too large, while it was still being sent
                assert len(body) > 1 << 20
            else:
                assert status(answer) in REFUSED, (path, body[:80], answer[:200])
                assert {"error", "hint"} <= json.loads(answer.partition(b"\r\n\r\n")[2]).keys()
            tried += 1
    alive(server)
    figure("service.bodies", f"{tried} bodies that are too large, too deep or no JSON: a sentence each, no 5xx")


def test_errors_name_no_place_and_no_secret(server: Running, run_dir: Path, figure: Figure) -> None:
    places = [str(run_dir), str(Path(__file__).parents[2]), os.environ.get("HOME", "/root"), "site-packages"]
    secrets, tried = [TOKEN, "Traceback", *places], 0
    for verb, path in routes(server):
        for body in (b"", b"{}", b'{"nodes": ["no such node"]}', b"["):
            for headers in ({}, {"Authorization": ""}, {"Host": "evil.example"}):
                blob = request(server, path, verb, body, **headers)
                answer = raw(server, blob).partition(b"\r\n\r\n")
                if status(answer[0]) >= 400:
                    tried += 1
                    assert not [s for s in secrets if s.encode() in answer[2]], answer[2][:300]
    figure("service.errors", f"{tried} refusals: no path, token or attribute in any")


# --- floods -------------------------------------------------------------------------------------------------------


@sizes(0, 600, 20_000)
def test_a_flood_of_registrations(server: Running, figure: Figure, count: int) -> None:
    found: dict[int, int] = {}
    for i in range(count):
        answer = server.ask(f"/api/classes/{quote(f'flood {i}')}", {"support": [f"node-{i % 300}"]}, "PUT")
        found[answer.status] = found.get(answer.status, 0) + 1
    kept = len(server.ask("/api/classes").json["classes"])
    assert kept <= 200
    assert all(code < 500 for code in found)
    for known in server.ask("/api/classes").json["classes"]:
        server.ask(f"/api/classes/{quote(known['name'])}", method="DELETE")
    alive(server)
    figure("service.flood", f"{count} registrations: {kept} kept, answers {found}")


@sizes(0, 1000, 5000)
def test_open_connections_keep_nobody_waiting(server: Running, figure: Figure, count: int) -> None:
    """Half of them send half a header, half send nothing; meanwhile health is asked for on connections of its own."""
    with ExitStack() as stack:
        opened = 0
        for i in range(count):
            with suppress(OSError):
                connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=60))
                opened += 1
                if i % 2:
                    connection.sendall(b"GET /api/model HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nX-A: b" % server.port)
        seconds, refused = [], 0
        for _ in range(200):
            start = time.perf_counter()
            try:
                code = server.ask("/health/live").status
            except OSError:
                code = 503
            seconds.append(time.perf_counter() - start)
            refused += code != 200
        p99 = float(np.quantile(seconds, 0.99))
    until(lambda: server.ask("/health/ready").status == 200)
    alive(server)
    told = f"health p99 {1000 * p99:.0f} ms, {refused} of 200 refused"
    figure("service.connections", f"{opened} open connections: {told}")


# --- ends ---------------------------------------------------------------------------------------------------------


ACKNOWLEDGED = mmap.mmap(-1, 64)
"""Shared with forks: the version of the last change that was answered for."""


def change_for_ever(run: Path, state: Path, seed: int) -> None:
    """One change after another, as requests; whatever is answered with 200 is noted."""
    local, rng = Local(run, state), random.Random(seed)
    while True:
        node, other = f"new-{rng.randrange(30)}", f"node-{rng.randrange(300)}"
        path, body, method = rng.choice(
            [
                ("/api/nodes", {"nodes": [{"node": f"{node}-{i}", "edges": [other]} for i in range(5)]}, "POST"),
                (f"/api/classes/c{rng.randrange(9)}", {"support": [other]}, "PUT"),
                (f"/api/classes/c{rng.randrange(9)}", None, "DELETE"),
                ("/api/undo", {}, "POST"),
            ]
        )
        answer = local.ask(path, body, method)
        assert answer.status < 500
        if answer.status == 200:
            ACKNOWLEDGED[:64] = answer.json["version"].encode().ljust(64)


@pytest.mark.parametrize("method", ["gpn", "gpn-plus"])
@sizes(0, 60, 200)
def test_a_kill_loses_no_change_that_was_answered(
    run_dir: Path, planted: Dataset, tmp_path: Path, figure: Figure, count: int, method: str
) -> None:
    rng, folder, further = random.Random(count), tmp_path / "state", 0
    folder.mkdir()
    state, run = folder / "state.sqlite", run_dir if method == "gpn" else save_run(planted, run_dir.parent, method)
    ACKNOWLEDGED[:64] = b"0-".ljust(64)
    for kill in range(count):
        end = in_child(lambda: change_for_ever(run, state, kill), rng.uniform(0.1, 1.0))  # noqa: B023
        assert os.WIFSIGNALED(end), "it ended by itself: something went wrong in it"
        with closing(Log(state)) as log:
            assert log.open() is None
            found, said = log.version, ACKNOWLEDGED[:64].decode().strip()
        if int(found.partition("-")[0]) == int(said.partition("-")[0]) + 1:  # kept, and killed before it was answered
            ACKNOWLEDGED[:64] = found.encode().ljust(64)
            further += 1
        else:
            assert found == said or not said.partition("-")[2]
    assert not found.startswith("0-")
    ends = ("", "-shm", "-wal", ".lock")
    assert {path.name for path in folder.iterdir()} <= {f"state.sqlite{end}" for end in ends}
    told = f"{count} kills, {found.partition('-')[0]} changes"
    figure(f"service.changes.{method.removeprefix('gpn-')}", f"{told}: each that was answered is there, {further} more")


def test_the_contract_is_kept(server: Running, tmp_path: Path, figure: Figure) -> None:
    """schemathesis asks what the OpenAPI document says can be asked."""
    pytest.importorskip("schemathesis")
    command: list[Any] = [Path(sys.executable).with_name("schemathesis"), "run", f"{server.url}/openapi.json"]
    command += ["--header", f"Authorization: Bearer {TOKEN}", "--checks", "not_a_server_error", "--max-examples", "30"]
    command += ["--phases", "examples,coverage,fuzzing", "--seed", "1"]
    found = subprocess.run(list(map(str, command)), cwd=tmp_path, capture_output=True, text=True, timeout=900)
    assert found.returncode == 0, found.stdout[-3000:]
    alive(server)
    told = [line.strip(" :.,") for line in found.stdout.splitlines() if re.search(r"generated, |Tested: ", line)]
    figure("service.contract", f"schemathesis, no 5xx: operations {', '.join(told)}")
