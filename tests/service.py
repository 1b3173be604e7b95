"""A real `fewnode serve`, in its own process, and a small way to ask it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fewnode.estimator import Estimator
from fewnode.graph import Dataset
from fewnode.io import save_dataset

TOKEN = "0123456789abcdef0123456789abcdef"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Running:
    """A service and how to reach it."""

    process: subprocess.Popen[str]
    url: str
    token: str = TOKEN

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    def ask(self, path: str, body: Any = None, method: str | None = None, **headers: str) -> Answer:
        """`headers` replace the usual ones; underscores are hyphens, and an empty one is left out."""
        given = {"Authorization": f"Bearer {self.token}"}
        data = None
        if body is not None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            given["Content-Type"] = "application/json"
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(  # noqa: S310
            self.url + path, data, {name: value for name, value in given.items() if value}, method=method
        )
        try:
            with urllib.request.build_opener(_NoRedirect).open(request, timeout=60) as response:
                return Answer(response.status, {k.lower(): v for k, v in response.headers.items()}, response.read())
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, {k.lower(): v for k, v in error.headers.items()}, error.read())

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


@contextmanager
def serving(run: Path, *arguments: object) -> Iterator[Running]:
    """A service that is ready; ended afterwards if it has not ended yet."""
    command = [sys.executable, "-m", "fewnode", "serve", "--run", str(run), "--port", "0", "--token", TOKEN]
    process = subprocess.Popen(
        [*command, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "default"},
    )
    try:
        assert process.stdout is not None
        link = process.stdout.readline().strip()
        if not link:
            raise AssertionError(process.communicate()[1])
        running = Running(process, link.split("/?token=")[0])
        until = time.monotonic() + 60
        while running.ask("/health/ready").status != 200:
            assert time.monotonic() < until, "not ready in a minute"
            time.sleep(0.05)
        yield running
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def save_run(data: Dataset, directory: Path, method: str = "gpn", **options: Any) -> Path:
    """A trained model and its dataset, as `fewnode train` leaves them."""
    if not (directory / "data").exists():
        save_dataset(data, directory / "data")
    model = Estimator(method, way=3, shot=3, **options).fit(data)
    model.trained_["data"]["path"] = str(directory / "data")
    model.save(directory / method)
    return directory / method
