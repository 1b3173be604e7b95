"""A real `fewnode serve` of a small network of tables, and how journeys ask it."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from doors import done

from sizes import until

TOKEN = "0123456789abcdef0123456789abcdef"
WORDS = {
    "mail": "send receive filter mail spam inbox",
    "vpn": "tunnel encrypt network peer route key",
    "game": "play chess board score level player",
    "font": "glyph typeface serif kerning letter script",
}


@dataclass(frozen=True)
class Served:
    process: subprocess.Popen[str]
    url: str

    def send(self, path: str, body: Any = None, method: str | None = None, token: str = TOKEN) -> tuple[int, bytes]:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()

    def text(self, path: str, body: Any = None, method: str | None = None) -> str:
        status, answer = self.send(path, body, method)
        assert status == 200, (path, answer)
        return answer.decode()

    def json(self, path: str, body: Any = None, method: str | None = None) -> Any:
        return json.loads(self.text(path, body, method))


@contextmanager
def served(*arguments: object) -> Iterator[Served]:
    """A service that is ready, in a process of its own; killed afterwards."""
    command = [sys.executable, "-m", "fewnode", "serve", "--port", "0", "--token", TOKEN, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            service = Served(process, process.stdout.readline().strip().partition("/?token=")[0])
            until(lambda: service.send("/health/ready")[0] == 200)
            yield service
        finally:
            process.kill()


def small_network(folder: Path) -> Path:
    """Packages of four kinds as somebody's tables have them, imported."""
    rows, edges = ["name,about,size,licence"], ["source,target"]
    for kind, text in WORDS.items():
        words = text.split()
        for i in range(12):
            about = " ".join((words[i % 6], words[(5 * i + 1) % 6], words[(i // 2 + 2) % 6]))
            rows.append(f"{kind}-{i},{about},{37 * i % 11},{'mit' if i % 3 else 'gpl'}")
            edges += [f"{kind}-{i},{kind}-{(i + step) % 12}" for step in (1, 3)]
    names = [row.split(",")[0] for row in rows[1:]]
    edges += [f"{names[i]},{names[(7 * i + 13) % 48]}" for i in range(0, 48, 4)]
    for table, lines in (("nodes", rows), ("edges", edges)):
        (folder / f"{table}.csv").write_text("\n".join(lines) + "\n")
    columns = ("--id=name", "--text=about", "--numeric=size", "--category=licence", "--no-label")
    done("data", "import", "--nodes=nodes.csv", "--edges=edges.csv", *columns, "--out=packages", folder=folder)
    return folder / "packages"
