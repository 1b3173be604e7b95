"""What an answer costs the service until its effect can be seen, and whether hours of answering make it grow.

    python benchmarks/verdicts.py --data debian --actions 2000

A labeller who answers by the labels of the data: for a class, questions, a verdict each, the list of claims after it,
and in between searches, undo and redo. Processor time is that of the service alone, by the kernel's count for all its
threads, so what else runs on the machine hardly matters.
"""

from __future__ import annotations

import argparse
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

import fewnode

ROUND = 60
"""Verdicts for a class before the next one begins."""


class Service:
    """A service in a process of its own."""

    def __init__(self, data: str, state: Path) -> None:
        token = secrets.token_hex(16)
        command = [sys.executable, "-m", "fewnode", "serve", "--data", data, "--port", "0", "--token", token]
        self.process = subprocess.Popen([*command, "--state", str(state)], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.client = fewnode.Client(self.process.stdout.readline().strip(), patience=300)
        while not self.client.ready():
            time.sleep(0.5)

    def seconds(self) -> float:
        """On a processor, all threads together."""
        spent = 0
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            with suppress(FileNotFoundError):  # a thread that has ended since it was listed
                spent += int((task / "schedstat").read_text().split()[0])
        return spent / 1e9

    def memory(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(60)


class Times(dict[str, list[float]]):
    """Processor time by what was done."""

    def __init__(self, service: Service) -> None:
        super().__init__()
        self.service = service

    def take(self, what: str, work: Callable[[], Any]) -> Any:
        before = self.service.seconds()
        found = work()
        self.setdefault(what, []).append(self.service.seconds() - before)
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="debian")
    parser.add_argument("--actions", type=int, default=2000)
    parser.add_argument("--classes", type=int, default=1, help="classes that are there at a time")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        service = Service(options.data, Path(folder) / "state.sqlite")
        try:
            run(service, fewnode.load(options.data), options.actions, options.classes)
        finally:
            service.end()


def run(service: Service, data: fewnode.Dataset, actions: int, classes: int) -> None:
    times, client = Times(service), service.client
    large = [c for c in data.split.test or range(len(data.class_names)) if data.class_sizes[c] >= 100]
    done, grown, turn = 0, [], 0
    while done < actions:
        name = data.class_names[large[turn % len(large)]]
        node = data.node_name(int(data.members(data.class_names.index(name))[turn]))
        turn += 1
        for old in client.classes()[: 1 - classes or None]:
            client.delete_class(old.name)
        client.put_class(name, [node], description="" if turn % 2 and client.model()["describes"] else None)
        done += label(times, data, name, min(ROUND, actions - done))
        grown.append(service.memory())
        print(f"{done} actions, {grown[-1]:.0f} MB", file=sys.stderr, flush=True)
    report(times, grown)


def label(times: Times, data: fewnode.Dataset, name: str, most: int) -> int:
    """Answer questions about a class; how many actions that were."""
    client, done = times.service.client, 0
    while done < most:
        asked = times.take("next question", lambda: client.questions(name, 1))
        row = asked[0] if asked else None
        if row is None:
            break
        right = data.y[data.node(row.node)] == data.class_names.index(name)
        yes, no = ([row.node], []) if right else ([], [row.node])
        check = row.purpose == "check"
        verdict(times, name, yes, no, check)
        done += 2
        if done % 12 == 0:
            times.take("undo", client.undo)
            times.take("redo", client.redo)
            times.take("search", lambda: client.search("pipe buffer", where="all"))
            times.take("why", lambda node=row.node: client.why(node, name))
            times.take("trust", client.trust)
            times.take("nearest", lambda node=row.node: client.search(near=node))
            done += 6
    return max(done, 1)


def verdict(times: Times, name: str, yes: list[str], no: list[str], check: bool) -> None:
    client = times.service.client

    def work() -> None:
        client.answer(name, yes, no, by="Ann", check=check)
        client.claims(name, group=True, limit=20)

    times.take("verdict and list", work)


def report(times: Times, grown: list[float]) -> None:
    print(f"{'ms of processor time':24} {'times':>6} {'median':>8} {'p95':>8}")
    for what, seconds in times.items():
        middle, high = np.percentile(seconds, [50, 95]) * 1000
        print(f"{what:24} {len(seconds):6} {middle:8.1f} {high:8.1f}")
    first, last = grown[min(2, len(grown) - 1)], grown[-1]
    print(f"memory: {first:.1f} MB after the third class, {last:.1f} MB at the end: {last - first:+.1f} MB")


if __name__ == "__main__":
    main()
