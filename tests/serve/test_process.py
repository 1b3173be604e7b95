"""The process under bad manners: slow clients, too many at once, and SIGTERM in the middle of it."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import select
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from service import PORT, TOKEN, Local, Running, opened, started
from sizes import until

HASTY = Path(__file__).parents[1] / "hasty.py"
SUPPORT = {"a": ["node-0", "node-1"], "b": ["node-2", "node-3"]}
BODY = json.dumps({"nodes": [f"node-{i}" for i in range(10)], "support": SUPPORT}).encode()


@pytest.fixture(scope="module")
def server(run_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    state = tmp_path_factory.mktemp("state") / "state.sqlite"
    with started(opened([sys.executable, str(HASTY), str(run_dir), str(state), TOKEN])) as running:
        yield running


def connect(server: Running, buffer: int | None = None) -> socket.socket:
    client = socket.socket()
    if buffer:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    client.settimeout(60)
    client.connect(("127.0.0.1", server.port))
    return client


def head(server: Running, path: str, length: int) -> bytes:
    return (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {TOKEN}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    ).encode()


def hung_up(client: socket.socket) -> bool:
    """Whether the other side closes without an answer."""
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


def test_who_is_slow_with_a_header_is_cut_off(server: Running) -> None:
    silent, dripping = connect(server), connect(server)
    for _ in range(8):
        try:
            dripping.send(b"GET / HTTP/1.1\r\nX: " if _ == 0 else b"x")
        except OSError:
            break
        assert server.ask("/health/live").status == 200
        time.sleep(0.2)
    assert hung_up(silent)
    assert hung_up(dripping)
    silent.close()
    dripping.close()


def test_a_header_without_end_is_cut_off(server: Running) -> None:
    with connect(server) as client, pytest.raises((ConnectionResetError, BrokenPipeError)):
        client.sendall(b"GET / HTTP/1.1\r\nX: " + b"x" * (1 << 26))


def test_what_is_no_http_gets_a_400(server: Running) -> None:
    for garbage in (
        b"\x16\x03\x01\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
    ):
        with connect(server) as client:
            client.sendall(garbage)
            assert client.recv(100).startswith(b"HTTP/1.1 4")


def test_who_has_said_all_still_gets_the_answer(server: Running) -> None:
    """As `nc -N` and some old clients do: they close their side after the request."""
    for whole in (True, False):
        with connect(server) as client:
            client.sendall(head(server, "/api/classify", len(BODY)) + (BODY if whole else BODY[:-1]))
            client.shutdown(socket.SHUT_WR)
            answer = b""
            with suppress(ConnectionResetError):
                while part := client.recv(1 << 16):
                    answer += part
        assert (answer.startswith(b"HTTP/1.1 200 ") and answer.endswith(b"}")) is whole


def test_who_is_slow_with_a_body_is_told_so(server: Running) -> None:
    with connect(server) as client:
        client.sendall(head(server, "/api/classify", 100) + b'{"nodes":')
        assert client.recv(1000).startswith(b"HTTP/1.1 408")


def test_who_does_not_read_is_cut_off_and_keeps_nobody_waiting(server: Running) -> None:
    wide = {f"c{i:03}": [f"node-{i}"] for i in range(100)}
    body = json.dumps({"nodes": [f"node-{i % 360}" for i in range(10_000)], "support": wide, "explain": False}).encode()
    with connect(server, 4096) as client:
        client.sendall(head(server, "/api/classify", len(body)) + body)
        select.select([client], [], [], 30)
        end = time.monotonic() + 2.5
        while time.monotonic() < end:
            assert server.ask("/api/classify", BODY).status == 200
        got = b""
        with suppress(ConnectionResetError):
            while part := client.recv(1 << 20):
                got += part
    length = re.search(rb"content-length: (\d+)", got)
    assert length is not None
    assert len(got) < int(length[1])


def test_there_are_only_so_many_connections(server: Running) -> None:
    many = [connect(server) for _ in range(60)]
    assert sum(map(hung_up, many[:10])) >= 9, "the longest silent make room"
    assert server.ask("/health/live").status == 200, "a newcomer is let in"
    for client in many:
        client.close()
    until(lambda: server.ask("/health/live").status == 200)


def test_a_full_queue_says_when_to_come_again(local: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    headers = [(b"host", f"127.0.0.1:{PORT}".encode()), (b"authorization", f"Bearer {TOKEN}".encode())]
    headers += [(b"content-type", b"application/json"), (b"content-length", str(len(BODY)).encode())]

    async def together(count: int) -> list[int]:
        asked = [local.exchange("POST", "/api/classify", headers, [BODY]) for _ in range(count)]
        answers = await asyncio.gather(*asked)
        assert all(a.headers["retry-after"] == "1" for a in answers if a.status == 429)
        return [a.status for a in answers]

    admission = local.service.admission
    monkeypatch.setattr(admission, "calm", 1e9)
    assert Counter(asyncio.run(together(72))) == {200: 64, 429: 8}, "a burst"
    assert Counter(asyncio.run(together(40))) == {200: 1, 429: 39}, "overload"
    admission._since = -1e10
    assert Counter(asyncio.run(together(40))) == {200: 1, 429: 39}, "still: most of those before were refused"
    assert [asyncio.run(together(1)) for _ in range(40)] == [[200]] * 40
    admission._since = -1e10
    assert Counter(asyncio.run(together(64))) == {200: 64}, "over: most of those before were not"

    async def long(count: int) -> list[int]:
        body = json.dumps({"count": 1, "support": SUPPORT}).encode()
        sent = [*headers[:-1], (b"content-length", str(len(body)).encode())]
        asked = [asyncio.create_task(local.exchange("POST", "/api/suggest", sent, [body])) for _ in range(count)]
        while sum(answer.done() for answer in asked) < count - local.service.admission.long:
            await asyncio.sleep(0)
        refused.set()
        return [answer.status for answer in await asyncio.gather(*asked)]

    refused = threading.Event()
    monkeypatch.setattr(local.service.session, "suggest", lambda _: refused.wait(60))
    assert Counter(asyncio.run(long(12))) == {200: 8, 429: 4}
    assert local.service.admission.in_hand == local.service.admission.in_thread == 0


def test_what_takes_too_long_is_given_up(run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local = Local(run_dir, tmp_path / "state.sqlite", request_seconds=0.2)
    told = threading.Event()
    monkeypatch.setattr(local.service.session, "suggest", lambda _: told.wait(60))
    assert local.ask("/api/suggest", {}).status == 504
    told.set()
    local.close()


def test_sigterm_under_load_loses_no_answer(server: Running) -> None:
    """Whatever is sent until the service says that it is no longer ready is answered, and the status is 0."""
    outcome: Counter[str] = Counter()
    ready: list[bool] = []
    over, unready = threading.Event(), threading.Event()

    def ask_on() -> None:
        while not unready.is_set():
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            try:
                for _ in range(20):
                    connection.request(
                        "POST",
                        "/api/classify",
                        BODY,
                        {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"},
                    )
                    response = connection.getresponse()
                    full = len(json.loads(response.read())) > 1
                    outcome[f"{response.status} {full}"] += 1
                    if response.getheader("connection") == "close":
                        break
            except OSError as error:
                outcome[f"lost: {error!r}"] += 1
            connection.close()

    def watch() -> None:
        while not over.is_set():
            try:
                ready.append(server.ask("/health/ready").status == 200)
            except OSError:
                return
            if not ready[-1]:
                unready.set()
            time.sleep(0.05)

    slow = connect(server)
    threads = [threading.Thread(target=ask_on) for _ in range(4)] + [threading.Thread(target=watch)]
    for thread in threads:
        thread.start()
    until(lambda: outcome["200 True"] > 50)
    slow.sendall(head(server, "/api/classify", len(BODY)) + BODY[:-1])
    server.process.terminate()
    assert unready.wait(60)
    slow.sendall(BODY[-1:])
    assert slow.recv(1000).startswith(b"HTTP/1.1 200")
    slow.close()
    assert server.process.wait(60) == 0
    over.set()
    for thread in threads:
        thread.join()
    assert ready[0]
    assert not ready[-1]
    assert ready == sorted(ready, reverse=True)
    assert not [what for what in outcome if what.startswith("lost")], outcome
    assert set(outcome) <= {"200 True", "429 True"}
