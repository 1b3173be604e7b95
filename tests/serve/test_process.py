"""The process under bad manners: what is no HTTP, many requests in one go, and SIGTERM in the middle of it."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections import Counter
from pathlib import Path

from service import TOKEN, Running, serving
from sizes import Figure, sizes, until

SUPPORT = {"a": ["node-0", "node-1"], "b": ["node-2", "node-3"]}
BODY = json.dumps({"nodes": [f"node-{i}" for i in range(10)], "support": SUPPORT}).encode()


def connect(server: Running) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), 60)


def head(server: Running, path: str, length: int) -> bytes:
    return (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {TOKEN}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    ).encode()


def test_what_is_no_http_gets_a_400(server: Running) -> None:
    for garbage in (
        b"\x16\x03\x01\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
    ):
        with connect(server) as client:
            client.sendall(garbage)
            assert client.recv(100).startswith(b"HTTP/1.1 4")


def test_requests_in_one_go_are_answered_or_refused(server: Running) -> None:
    one = (
        f"GET /api/version HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
    )
    with connect(server) as client:
        writing = threading.Thread(target=client.sendall, args=(one * 1000,))
        writing.start()
        found, seen = b"", 0
        while seen < 1000 and (part := client.recv(1 << 16)):
            found += part
            seen = found.count(b"HTTP/1.1 200 ") + found.count(b"HTTP/1.1 503 ")
        writing.join()
    assert seen == 1000


@sizes(1, 10, 100)
def test_sigterm_under_load_loses_no_answer(run_dir: Path, tmp_path: Path, figure: Figure, count: int) -> None:
    """Whatever is sent until the service says that it is no longer ready is answered, and the status is 0."""
    outcome: Counter[str] = Counter()
    for number in range(count):
        with serving(run_dir, "--state", tmp_path / f"{number}.sqlite") as server:
            ended_under_load(server, outcome, 50 + 20 * (number % 7))
    assert set(outcome) <= {"200 True", "503 True"}
    told = f"{count} SIGTERMs under load, {outcome.total():,} requests"
    figure("service.sigterm", f"{told}: each that was accepted was answered")


def ended_under_load(server: Running, outcome: Counter[str], answers: int) -> None:
    """Four clients ask on and on; after so many answers, and in the middle of a body, the service is told to end."""
    ready: list[bool] = []
    over, unready = threading.Event(), threading.Event()
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    until_then = outcome.total() + answers

    def ask_on() -> None:
        while not unready.is_set():
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            try:
                for _ in range(20):
                    connection.request("POST", "/api/classify", BODY, headers)
                    response = connection.getresponse()
                    outcome[f"{response.status} {len(json.loads(response.read())) > 1}"] += 1
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

    threads = [threading.Thread(target=ask_on) for _ in range(4)] + [threading.Thread(target=watch)]
    for thread in threads:
        thread.start()
    until(lambda: outcome.total() > until_then)
    with connect(server) as slow:
        slow.sendall(head(server, "/api/classify", len(BODY)) + BODY[:-1])
        server.process.terminate()
        assert unready.wait(60)
        slow.sendall(BODY[-1:])
        assert slow.recv(1000).startswith(b"HTTP/1.1 200")
    assert server.process.wait(60) == 0
    over.set()
    for thread in threads:
        thread.join()
    assert ready[0]
    assert not ready[-1]
    assert ready == sorted(ready, reverse=True)
