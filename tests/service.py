"""A real `fewnode serve`, in its own process, and a small way to ask it."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from fewnode.dataset import Dataset
from fewnode.formats.directory import load_dataset, save_dataset
from fewnode.model.estimator import Estimator
from fewnode.model.model_files import load_model
from fewnode.service.access import rules
from fewnode.service.desk import Desk
from fewnode.service.http import Service
from fewnode.service.log import Log
from sizes import until

PORT = 8000
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

    process: subprocess.Popen[str] | Forked
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
        return self.process.wait(300)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    ["fewnode.cli", "fewnode.model.estimator", "fewnode.service.server", "fewnode.service.desk"]
)


def _command(arguments: list[str], environment: dict[str, str], *streams: Connection) -> None:
    """`fewnode …` in a fork, as `__main__` runs it."""
    from fewnode.__main__ import main

    for number, stream in enumerate(streams, start=1):
        os.dup2(stream.fileno(), number)
        stream.close()
    sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
    os.environ.update(environment)
    sys.argv = ["fewnode", *arguments]
    main()


class Forked:
    """`fewnode …` in a process of its own, forked from one that has imported it. It looks like a `Popen`."""

    def __init__(self, arguments: list[str]) -> None:
        (out, its_out), (err, its_err) = FORKS.Pipe(duplex=False), FORKS.Pipe(duplex=False)
        self._process = FORKS.Process(target=_command, args=(arguments, dict(os.environ), its_out, its_err))
        self._process.start()
        self.stdout, self.stderr = (os.fdopen(os.dup(end.fileno())) for end in (out, err))
        for end in (out, its_out, err, its_err):
            end.close()
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("fewnode", timeout or 0)
        return self._process.exitcode

    def communicate(self) -> tuple[str, str]:
        with self.stdout, self.stderr:
            told = self.stdout.read(), self.stderr.read()
        self.wait()
        return told


@contextmanager
def serving(run: Path, *arguments: object, start: Callable[[list[str]], Any] = Forked) -> Iterator[Running]:
    """A service that is ready; ended afterwards if it has not ended yet."""
    with started(start(["serve", "--run", str(run), "--port", "0", "--token", TOKEN, *map(str, arguments)])) as running:
        yield running


def anew(arguments: list[str]) -> subprocess.Popen[str]:
    """`fewnode …` as a shell starts it."""
    return opened([sys.executable, "-m", "fewnode", *arguments])


def opened(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@contextmanager
def started(process: subprocess.Popen[str] | Forked) -> Iterator[Running]:
    try:
        assert process.stdout is not None
        link = process.stdout.readline().strip()
        if not link:
            raise AssertionError(process.communicate()[1])
        running = Running(process, link.split("/?token=")[0])
        until(lambda: running.ask("/health/ready").status == 200)
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


class InProcess:
    """The same service without a socket: the application is called as a server would call it."""

    def __init__(
        self, model: Estimator, data: Dataset, state: Path, service: Service | None = None, **settings: Any
    ) -> None:
        """`service`: one that was used before, since its routes take longer to make than everything else."""
        self.model, self.data = model, data
        self.log, self.loop = Log(state), asyncio.Runner()
        self.service = service or Service(replace(rules(TOKEN, "127.0.0.1", PORT), **settings))
        try:
            desk = Desk(lambda: (self.model, self.data, True), self.log)
            desk.laying_out.join()  # or places on the map would be others a moment later
            self.service.open(desk)
        except BaseException:
            self.close()
            raise

    def ask(self, path: str, body: Any = None, method: str | None = None, **headers: str) -> Answer:
        given = {"Host": f"127.0.0.1:{PORT}", "Authorization": f"Bearer {TOKEN}"}
        data = b""
        if body is not None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            given |= {"Content-Type": "application/json", "Content-Length": str(len(data))}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        named = [(name.lower().encode(), value.encode("latin-1")) for name, value in given.items() if value]
        return self.send(method or ("GET" if body is None else "POST"), path, named, [data])

    def send(self, method: str, path: str, headers: list[tuple[bytes, bytes]], parts: list[bytes]) -> Answer:
        """A request as it comes, in parts; after them the client says nothing more."""
        return self.loop.run(self.exchange(method, path, headers, parts))

    async def exchange(self, method: str, path: str, headers: list[tuple[bytes, bytes]], parts: list[bytes]) -> Answer:
        sent: list[Any] = []
        waiting = list(parts)

        async def receive() -> dict[str, Any]:
            if not waiting:
                await asyncio.sleep(3600)
            return {"type": "http.request", "body": waiting.pop(0), "more_body": bool(waiting)}

        async def send(message: Any) -> None:
            sent.append(message)

        address, _, query = path.partition("?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(address),
            "raw_path": address.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": headers,
            "server": ("127.0.0.1", PORT),
            "client": ("127.0.0.1", 1),
        }
        await self.service.app(scope, receive, send)
        start = {name.decode(): value.decode("latin-1") for name, value in sent[0]["headers"]}
        return Answer(sent[0]["status"], start, b"".join(message["body"] for message in sent[1:]))

    def close(self) -> None:
        self.log.close()
        self.loop.close()


class Local(InProcess):
    """The service of a run's directory."""

    def __init__(self, run: Path, state: Path, **settings: Any) -> None:
        model = load_model(run)
        super().__init__(model, load_dataset(Path(model.trained_["data"]["path"])), state, **settings)
