"""Load on `fewnode serve` by a client that checks every answer; slow clients; SIGTERM in the middle.

    fewnode train --data debian --method gpn --out run
    python benchmarks/serve.py --run run                    # latency, saturation, twice saturation, memory
    python benchmarks/serve.py --run run --manners          # slow clients and SIGTERM: ours, uvicorn's own, granian

The client is one process with raw sockets. Under a given rate it does not wait for answers before it asks again, and a
request's time counts from when it was due, so a server that stalls cannot hide it. Every answer of 200 is compared
byte for byte with one that was checked against the library itself beforehand.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import torch

from fewnode import Client
from fewnode.cli.predict import open_run
from fewnode.predict.predictions import Answerer

TOKEN = "0123456789abcdef0123456789abcdef"
CLASSES, SHOTS, NODES, BODIES = 10, 5, 10, 200
OPEN = 200
"""Connections of the client at most; a request that finds none free waits, and its time counts."""
SERVERS = ("fewnode", "uvicorn", "granian")
SLICE = 3
"""Seconds at half load between two looks at what the hypervisor took: it is no server's fault if a core is gone."""


# --- servers ---------------------------------------------------------------------------------------------------------


@contextmanager
def serving(
    run: Path, data: str | None, server: str = "fewnode"
) -> Iterator[tuple[subprocess.Popen[bytes], int, float]]:
    """A process, its port, and the seconds until it was ready."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        state = f"{folder}/state.sqlite"
        here = str(Path(__file__).parent)
        env = {**os.environ, "RUN": str(run), "STATE": state, "PORT": str(port), "TOKEN": TOKEN}
        env |= {"DATA": data} if data else {}
        own = [sys.executable, "-m", "fewnode", "serve", "--run", str(run), "--port", str(port), "--token", TOKEN]
        command = {
            "fewnode": [*own, "--state", state, "-q", *(["--data", data] if data else [])],
            "uvicorn": [sys.executable, "-m", "uvicorn", "--factory", "--app-dir", here, "--port", str(port),
                        "--no-access-log", "--log-level", "critical", "--http", "httptools", "--loop", "asyncio",
                        "serve_app:app"],
            "granian": [sys.executable, "-m", "granian", "--interface", "asginl", "--factory", "--working-dir", here,
                        "--port", str(port), "--no-access-log", "--no-log", "--loop", "asyncio",
                        "--workers-kill-timeout", "30", "serve_app:app"],
        }[server]  # fmt: skip
        start = time.monotonic()
        process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL)
        try:
            client = Client(f"http://127.0.0.1:{port}", TOKEN)
            while not client.ready():
                assert process.poll() is None, "the server ended"
                time.sleep(0.05)
            yield process, port, time.monotonic() - start
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(60)


def usage(process: subprocess.Popen[bytes]) -> tuple[float, float]:
    """Processor seconds and resident MB of a process and its children."""
    seconds = memory = 0.0
    for pid in [process.pid, *children(process.pid)]:
        with suppress(FileNotFoundError):
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            seconds += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            memory += int(fields[21]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    return seconds, memory


def stolen() -> int:
    """Hundredths of a second that a hypervisor gave to others, of all cores together."""
    return int(Path("/proc/stat").read_text().split()[8])


def children(pid: int) -> list[int]:
    found = [int(c) for task in Path(f"/proc/{pid}/task").iterdir() for c in (task / "children").read_text().split()]
    return found + [grandchild for child in found for grandchild in children(child)]


# --- requests and the answers they must have -------------------------------------------------------------------------


def prepare(run: Path, data: str | None, port: int) -> tuple[list[bytes], list[bytes]]:
    """Register classes; requests, and their answers, which are checked against the library."""
    torch.set_num_threads(1)  # as the service by default: the number of threads changes last bits
    model, dataset = open_run(run, data, None, True)
    rng = random.Random(0)
    names = [dataset.node_name(i) for i in rng.sample(range(dataset.graph.n), CLASSES * SHOTS)]
    labels = [f"class {i // SHOTS}" for i in range(len(names))]
    with Client(f"http://127.0.0.1:{port}", TOKEN) as client:
        for start in range(0, len(names), SHOTS):
            client.put_class(labels[start], names[start : start + SHOTS])
    library = Answerer(model, dataset, [dataset.node(name) for name in names], labels)
    asked, answers = [], []
    for _ in range(BODIES):
        nodes = rng.sample(range(dataset.graph.n), NODES)
        body = json.dumps({"nodes": [dataset.node_name(i) for i in nodes]}).encode()
        answer = ask(port, body)
        results = json.loads(answer)["results"]
        expected = library.predictions(nodes, explain=True)
        assert np.array_equal(np.array([r["probabilities"] for r in results], np.float32), expected.probability)
        assert [[near["node"] for near in r["nearest"]] for r in results] == expected.nearest
        asked.append(request(port, body))
        answers.append(answer)
    gc.freeze()  # the model checked with is not to be looked through while times are taken
    return asked, answers


def request(port: int, body: bytes) -> bytes:
    return (
        f"POST /api/classify HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {TOKEN}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode() + body


def ask(port: int, body: bytes) -> bytes:
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    with urllib.request.urlopen(
        urllib.request.Request(f"http://127.0.0.1:{port}/api/classify", body, headers)
    ) as response:
        return bytes(response.read())


# --- load ------------------------------------------------------------------------------------------------------------


class Connection(asyncio.Protocol):
    """One request at a time; an answer is a status and a body."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.answer: asyncio.Future[tuple[int, bytes]] | None = None
        self.buffer = b""
        self.usable = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, found, body = self.buffer.partition(b"\r\n\r\n")
        if not found or self.answer is None:
            return
        lowered = head.lower()
        length = int(lowered.split(b"content-length:", 1)[1].split(b"\r\n", 1)[0])
        if len(body) >= length:
            self.usable = b"connection: close" not in lowered
            self.buffer = b""
            if not self.answer.done():
                self.answer.set_result((int(head[9:12]), body))

    def connection_lost(self, exc: Exception | None) -> None:
        self.usable = False
        if self.answer is not None and not self.answer.done():
            self.answer.set_exception(exc or ConnectionError("closed without an answer"))

    async def ask(self, text: bytes) -> tuple[int, bytes]:
        assert self.transport is not None
        self.answer = asyncio.get_running_loop().create_future()
        self.transport.write(text)
        return await self.answer


class Load:
    """Requests to one port, and what became of them."""

    def __init__(self, port: int, asked: list[bytes], answers: list[bytes]) -> None:
        self.port, self.asked, self.answers = port, asked, answers
        self.outcome: Counter[str] = Counter()
        self.seconds: list[float] = []
        self.refused_seconds: list[float] = []
        self._idle: list[Connection] = []
        self._rng = random.Random(1)

    async def one(self, due: float, keep: bool = True) -> None:
        place = self._rng.randrange(len(self.asked))
        try:
            while self._idle and not self._idle[-1].usable:
                self._idle.pop()
            if self._idle and keep:
                connection = self._idle.pop()
            else:
                loop = asyncio.get_running_loop()
                _, connection = await loop.create_connection(Connection, "127.0.0.1", self.port)
        except OSError:
            self.outcome["refused"] += 1
            return
        try:
            status, body = await connection.ask(self.asked[place])
        except OSError as error:
            self.outcome[f"lost ({type(error).__name__})"] += 1
            return
        spent = time.perf_counter() - due
        if status == 200:
            self.outcome["right" if body == self.answers[place] else "WRONG"] += 1
            self.seconds.append(spent)
        else:
            self.outcome[str(status)] += 1
            self.refused_seconds.append(spent)
        if connection.usable and keep:
            self._idle.append(connection)
        elif connection.transport is not None:
            connection.transport.close()

    async def in_turn(self, clients: int, seconds: float, keep: bool = True) -> float:
        """So many clients, each asking again when it has its answer; right answers a second."""
        until = time.perf_counter() + seconds

        async def client() -> None:
            while time.perf_counter() < until:
                await self.one(time.perf_counter(), keep)
                if self.outcome["refused"]:
                    await asyncio.sleep(0.05)

        start = time.perf_counter()
        await asyncio.gather(*(client() for _ in range(clients)))
        return self.outcome["right"] / (time.perf_counter() - start)

    async def at_rate(self, rate: float, seconds: float) -> float:
        """So many requests a second, whether or not those before are answered; right answers a second."""
        start = time.perf_counter()
        pending: set[asyncio.Task[None]] = set()
        room = asyncio.Semaphore(OPEN)

        async def one(due: float) -> None:
            async with room:
                await self.one(due)

        for i in range(int(rate * seconds)):
            due = start + i / rate
            if (ahead := due - time.perf_counter()) > 0:
                await asyncio.sleep(ahead)
            task = asyncio.create_task(one(due))
            pending.add(task)
            task.add_done_callback(pending.discard)
        if pending:
            await asyncio.wait(pending, timeout=30)
        return self.outcome["right"] / (time.perf_counter() - start)

    def line(self, what: str, rate: float, more: str = "") -> str:
        ms = np.array(self.seconds) * 1e3 if self.seconds else np.array([np.nan])
        p50, p99 = np.percentile(ms, [50, 99])
        told = ", ".join(f"{count} {kind}" for kind, count in sorted(self.outcome.items()))
        return f"{what:24} {rate:7.0f}/s right  p50 {p50:6.2f} ms  p99 {p99:6.2f} ms  {told}{more}"


def figures(run: Path, data: str | None, server: str, seconds: float) -> None:
    with serving(run, data, server) as (process, port, ready):
        asked, answers = prepare(run, data, port)
        print(f"{server}: ready after {ready:.1f} s, {usage(process)[1]:.0f} MB; load {os.getloadavg()[0]:.1f}")

        def measure(what: str, kind: str, amount: float, spent: float) -> tuple[float, Load]:
            load, before = Load(port, asked, answers), usage(process)
            asking = load.in_turn(int(amount), spent) if kind == "clients" else load.at_rate(amount, spent)
            rate = asyncio.run(asking)
            cpu, memory = usage(process)
            each = (cpu - before[0]) / max(1, sum(load.outcome.values())) * 1e3
            print(load.line(what, rate, f"; {each:.2f} ms of processor each, {memory - before[1]:+.1f} MB"), flush=True)
            return rate, load

        measure("warm-up", "clients", 1, 2)
        _, unloaded = measure("unloaded, 1 client", "clients", 1, seconds / 3)
        most = max(measure(f"{clients} clients", "clients", clients, seconds / 3)[0] for clients in (4, 8, 12))
        half_load(lambda: measure("half of saturation", "rate", most / 2, SLICE)[1], int(seconds / SLICE))
        _, twice = measure("twice saturation", "rate", 2 * most, 2 * seconds)
        ratio = np.percentile(twice.seconds, 99) / np.percentile(unloaded.seconds, 99)
        print(f"p99 at twice saturation is {ratio:.1f} times the unloaded one; wrong answers: {twice.outcome['WRONG']}")


def half_load(measure: Callable[[], Load], times: int) -> None:
    """p99 over all slices, and over those in which the machine was there."""
    found = [(stolen(), np.array(measure().seconds), stolen()) for _ in range(times)]
    there = [spent for before, spent, after in found if after - before < 2]
    for what, slices in (("", [spent for _, spent, _ in found]), ("with at most 10 ms for the hypervisor", there)):
        p99 = np.percentile(np.concatenate(slices), 99) * 1e3 if slices else np.nan
        print(f"half load, {len(slices)} slices of {SLICE} s {what}: p99 {p99:.1f} ms")


# --- manners ---------------------------------------------------------------------------------------------------------


def manners(run: Path, data: str | None, server: str) -> None:
    """Clients that send headers, or read answers, ever so slowly; and SIGTERM under load."""
    with serving(run, data, server) as (process, port, _):
        asked, answers = prepare(run, data, port)
        memory = usage(process)[1]
        slow = [connect(port) for _ in range(200)]
        for client in slow[:100]:
            client.sendall(b"GET / HTTP/1.1\r\nX: ")
        for client in slow[100:120]:
            client.sendall(large(port, asked))
        load = Load(port, asked, answers)
        rate = asyncio.run(load.in_turn(1, 60))
        print(load.line(f"{server}: with slow ones", rate))
        held = usage(process)[1] - memory
        cut = [sum(map(is_cut, part)) for part in (slow[:100], slow[100:120], slow[120:])]
        print(
            f"  after 60 s cut off: {cut[0]} of 100 half headers, {cut[1]} of 20 that do not read their 11 MB, "
            f"{cut[2]} of 80 silent; {held:+.0f} MB"
        )
        for client in slow:
            client.close()
    total: Counter[str] = Counter()
    ends = []
    for _ in range(4):
        with serving(run, data, server) as (process, port, _):
            asked, answers = prepare(run, data, port)
            load = Load(port, asked, answers)
            ends.append(asyncio.run(terminate(process, load)))
            total += load.outcome
    told = ", ".join(f"{count} {kind}" for kind, count in sorted(total.items()) if kind != "refused")
    print(f"{server}: SIGTERM under load, four times: {told}; (exit status, seconds): {ends}", flush=True)


async def terminate(process: subprocess.Popen[bytes], load: Load) -> tuple[int, float]:
    """SIGTERM while eight clients ask, half of them on a new connection each time; exit status, and after how long."""
    asking = [asyncio.create_task(load.in_turn(4, 7, keep)) for keep in (True, False)]
    await asyncio.sleep(2)
    process.send_signal(signal.SIGTERM)
    start = time.monotonic()
    while (status := process.poll()) is None:
        await asyncio.sleep(0.01)
    spent = time.monotonic() - start
    await asyncio.gather(*asking)
    return status, round(spent, 1)


def large(port: int, asked: list[bytes]) -> bytes:
    """A request whose answer no socket's buffers can hold."""
    nodes = [node for text in asked for node in json.loads(text.split(b"\r\n\r\n")[1])["nodes"]]
    support = {f"class {i}": [node] for i, node in enumerate(list(dict.fromkeys(nodes))[:100])}
    body = {"nodes": (nodes * 5)[:10_000], "support": support, "explain": False}
    return request(port, json.dumps(body).encode())


def connect(port: int) -> socket.socket:
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", port))
    return client


def is_cut(client: socket.socket) -> bool:
    """Whether the connection was ended before there was a whole answer on it."""
    client.settimeout(0.2)
    got = 0
    expected = 1
    try:
        while part := client.recv(1 << 20):
            if not got and b"content-length: " in part.lower():
                expected = int(part.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            got += len(part)
    except TimeoutError:
        return False
    except OSError:
        return True
    return got < expected


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--data")
    parser.add_argument("--server", choices=SERVERS, action="append")
    parser.add_argument("--seconds", type=float, default=30, help="at half load; twice saturation takes double")
    parser.add_argument("--manners", action="store_true")
    given = parser.parse_args()
    for server in given.server or (SERVERS if given.manners else SERVERS[:1]):
        if given.manners:
            manners(given.run, given.data, server)
        else:
            figures(given.run, given.data, server, given.seconds)


if __name__ == "__main__":
    main()
