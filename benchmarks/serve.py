"""Load on `fewnode serve` by a client that checks every answer: latency, saturation, twice saturation, memory.

    fewnode train --data debian --method gpn --out run
    python benchmarks/serve.py --run run

Under a given rate the client does not wait for answers before it asks again, and a request's time counts from when it
was due, so a server that stalls cannot hide it. Every answer of 200 is compared byte for byte with the one that the
same request had before there was any load.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

import fewnode

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from service import TOKEN, Running, anew, serving

CLASSES, SHOTS, NODES, BODIES = 10, 5, 10, 200
OPEN = 200
"""Connections of the client at most; a request that finds none free waits, and its time counts."""


def usage(server: Running) -> tuple[float, float]:
    """Processor seconds and resident MB."""
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    seconds = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return seconds, int(fields[21]) * os.sysconf("SC_PAGE_SIZE") / 1e6


class Load:
    """Requests to one service, and what became of them."""

    def __init__(self, port: int, asked: list[bytes], answers: list[bytes]) -> None:
        self.port, self.asked, self.answers = port, asked, answers
        self.outcome: Counter[str] = Counter()
        self.seconds: list[float] = []
        self.idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self.rng = random.Random(1)

    async def one(self, due: float) -> None:
        place = self.rng.randrange(len(self.asked))
        try:
            reader, writer = self.idle.pop() if self.idle else await asyncio.open_connection("127.0.0.1", self.port)
            writer.write(self.asked[place])
            head = await reader.readuntil(b"\r\n\r\n")
            body = await reader.readexactly(int(re.search(rb"(?i)content-length: (\d+)", head)[1]))
        except (OSError, asyncio.IncompleteReadError) as error:
            self.outcome[f"lost ({type(error).__name__})"] += 1
            return
        self.idle.append((reader, writer))
        status = head[9:12].decode()
        self.outcome[status if status != "200" else "right" if body == self.answers[place] else "WRONG"] += 1
        if status == "200":
            self.seconds.append(time.perf_counter() - due)

    async def in_turn(self, clients: int, seconds: float) -> float:
        """So many clients, each asking again when it has its answer; right answers a second."""
        start = time.perf_counter()

        async def client() -> None:
            while time.perf_counter() < start + seconds:
                await self.one(time.perf_counter())

        await asyncio.gather(*(client() for _ in range(clients)))
        return self.outcome["right"] / (time.perf_counter() - start)

    async def at_rate(self, rate: float, seconds: float) -> float:
        """So many requests a second, whether or not those before are answered; right answers a second."""
        start, room = time.perf_counter(), asyncio.Semaphore(OPEN)

        async def one(due: float) -> None:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            async with room:
                await self.one(due)

        await asyncio.gather(*(one(start + i / rate) for i in range(int(rate * seconds))))
        return self.outcome["right"] / (time.perf_counter() - start)


def prepare(server: Running, data: fewnode.Dataset) -> tuple[list[bytes], list[bytes]]:
    """Register classes; requests, and their answers."""
    rng = random.Random(0)
    names = [data.node_name(i) for i in rng.sample(range(data.graph.n), CLASSES * SHOTS)]
    for c in range(CLASSES):
        support = names[c * SHOTS : (c + 1) * SHOTS]
        assert server.ask(f"/api/classes/class%20{c}", {"support": support}, "PUT").status == 200
    asked, answers = [], []
    for _ in range(BODIES):
        body = json.dumps({"nodes": [data.node_name(i) for i in rng.sample(range(data.graph.n), NODES)]}).encode()
        head = f"POST /api/classify HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {TOKEN}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        asked.append(head.encode() + body)
        answers.append(server.ask("/api/classify", body).body)
    return asked, answers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--data", default="debian", help="the network of the run")
    parser.add_argument("--seconds", type=float, default=30, help="at half load; twice saturation takes double")
    given = parser.parse_args()
    begun = time.perf_counter()
    with serving(given.run, "-q", "--data", given.data, start=anew) as server:
        print(f"ready after {time.perf_counter() - begun:.1f} s, {usage(server)[1]:.0f} MB")
        asked, answers = prepare(server, fewnode.load(given.data))

        def measure(what: str, clients: int = 0, rate: float = 0.0, seconds: float = given.seconds / 3) -> float:
            load, before = Load(server.port, asked, answers), usage(server)
            right = asyncio.run(load.in_turn(clients, seconds) if clients else load.at_rate(rate, seconds))
            spent, grown = np.subtract(usage(server), before)
            p50, p99 = np.percentile(load.seconds or [np.nan], [50, 99]) * 1e3
            print(
                f"{what:20} {right:7.0f}/s right  p50 {p50:6.2f} ms  p99 {p99:6.2f} ms  {dict(load.outcome)}; "
                f"{1e3 * spent / max(1, load.outcome.total()):.2f} ms of processor each, {grown:+.1f} MB",
                flush=True,
            )
            return right

        measure("warm-up", clients=1, seconds=2)
        measure("1 client", clients=1)
        most = max(measure(f"{n} clients", n) for n in (4, 8, 12))
        measure("half of saturation", rate=most / 2, seconds=given.seconds)
        measure("twice saturation", rate=2 * most, seconds=2 * given.seconds)


if __name__ == "__main__":
    main()
