"""`fewnode serve` as it is started, the typed client, and the lines of the documentation."""

from __future__ import annotations

import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import pytest

import fewnode
from fewnode.dataset import Dataset
from fewnode.formats.directory import save_dataset
from fewnode.service.client import Client, ServiceError
from service import TOKEN, Local, Running, anew, opened, save_run, serving, started

PACKAGES = ["openvpn", "wireguard-tools", "postfix", "exim4", "strongswan", "dovecot-core", "libc6", "openssl", "0ad"]


@pytest.fixture(scope="module")
def packages(planted: Dataset) -> Dataset:
    """Nodes with the names of the documentation's examples."""
    names = (*PACKAGES, *(planted.node_names or ())[len(PACKAGES) :])
    words = (
        "vpn",
        "tunnel",
        *(f"word{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(2, planted.graph.n_features)),
    )
    return replace(planted, node_names=names, feature_names=words)


@pytest.fixture(scope="module")
def run(packages: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_run(packages, tmp_path_factory.mktemp("packages"), "gpn-plus")


@pytest.fixture(scope="module")
def server(run: Path) -> Iterator[Running]:
    with serving(run, start=anew) as running:
        yield running


@pytest.fixture
def client(server: Running) -> Iterator[Client]:
    with fewnode.Client(f"{server.url}/?token={TOKEN}") as client:
        yield client
        for each in client.classes():
            client.delete_class(each.name)


def test_the_client_does_it_all(client: Client, packages: Dataset) -> None:
    assert client.ready()
    assert client.model().data.nodes == packages.graph.n
    assert [node.node for node in client.search("openv")] == ["openvpn"]
    about = client.node("openvpn")
    assert (about.degree, len(about.words) > 0) == (packages.graph.degree[0], True)
    first = client.put_class("vpn/<b>", ["openvpn", "wireguard-tools"])
    second = client.put_class("mail", ["postfix", "exim4"], version=first.version)
    assert sum(each.beta or 0 for each in second.support) == pytest.approx(1)
    with pytest.raises(ServiceError, match="read GET /api/classes again") as moved:
        client.delete_class("mail", version=first.version)
    assert moved.value.status == 412
    tunnels = client.put_class("tunnels", description="a tunnel of 2026")
    assert (tunnels.support, tunnels.description, tunnels.description_beta) == ([], "a tunnel of 2026", 1)
    assert tunnels.remarks[-1] == "numbers in a description are not used: 2026"
    assert client.export("classes.csv").decode() == "class,description\ntunnels,a tunnel of 2026\n"
    gone = client.delete_class("tunnels")
    answer = client.classify(["strongswan"], mode="transductive", threshold=0.3)
    assert (answer.version, answer.classes) == (gone.version, ["mail", "vpn/<b>"])
    assert 0 <= (answer.results[0].member or 0) <= 1
    assert sum(client.classify(limit=2, closed_set=True).counts.values()) == packages.graph.n
    assert len(client.next(count=3)) == 3
    assert client.next("mail", count=1, order="likeliest")[0].label == "mail"
    kept = client.answer("mail", yes=["dovecot-core"], no=["libc6"], by="Ann")
    assert kept.undo
    assert client.journal(limit=1)[0].by == "Ann"
    assert "libc6" in client.why("dovecot-core", "mail").model_dump_json()
    assert client.undo().what == "Undone: 2 answers for mail: 1 yes, 1 no."
    assert client.redo().redo is False
    assert client.trust("mail")["mail"].claimed > 0
    assert client.claims("mail", unanswered=True).total >= 0
    new = client.attach([{"node": "new-vpn", "attributes": {"vpn": 1}, "edges": ["openvpn"]}], threshold=0.1)
    assert new.results[0].node == "new-vpn"
    with pytest.raises(ServiceError, match="already"):
        client.attach([{"node": "new-vpn"}])
    with pytest.raises(ServiceError, match="was not imported from tables"):
        client.attach([{"node": "newer-vpn", "row": {"words": "vpn"}}])
    with pytest.raises(ServiceError, match="neither weights nor kinds of edges"):
        client.attach([{"node": "newer-vpn", "edges": ["libc6", {"node": "openvpn", "weight": 2}]}])
    assert client.export("support.csv").startswith(b"node,class,answer\nopenvpn,vpn/<b>,yes\n")
    assert len(client.export("labels.csv").splitlines()) == 2 + packages.graph.n
    with pytest.raises(ServiceError, match="no class 'web'"):
        client.delete_class("web")


def test_the_client_waits_for_a_service_that_is_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr("fewnode.service.client.time", SimpleNamespace(sleep=waited.append, monotonic=time.monotonic))
    left = iter([(429, b"{}"), (200, b"[1]"), (503, b"full")])

    class Busy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = next(left)
            self.send_response(status)
            self.send_header("retry-after", "2")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Busy) as service:
        thread = Thread(target=service.serve_forever, args=(0.01,))
        thread.start()
        with fewnode.Client(f"http://127.0.0.1:{service.server_port}") as client:
            assert client.export("a.json") == b"[1]"
            client.patience = 1
            with pytest.raises(ServiceError, match="the service answered 503"):
                client.export("a.json")
        service.shutdown()
        thread.join()
    assert waited == [2]
    with pytest.raises(fewnode.FewnodeError, match="link that fewnode serve printed"):
        fewnode.Client("ftp://x")
    assert not fewnode.Client("http://127.0.0.1:1").ready()


def test_the_examples_of_the_api_are_what_it_takes(server: Running, client: Client) -> None:
    """Every body that /openapi.json shows is accepted, and every route says what it is for."""
    api = server.ask("/openapi.json").json
    client.put_class("vpn", ["openvpn", "wireguard-tools"])
    client.put_class("mail", ["postfix", "exim4"])
    tried = 0
    for path, methods in api["paths"].items():
        for method, route in methods.items():
            assert route["summary"]
            if body := route.get("requestBody"):
                schema = body["content"]["application/json"]["schema"]
                if "$ref" in schema:
                    schema = api["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
                example = schema["example"]
                address = path.replace("{name}", "vpn").replace("{node}", "my-vpn")
                answer = server.ask(address, example, method.upper())
                assert answer.status == 200, (path, answer.json)
                tried += 1
    assert tried == 10


def test_a_kill_loses_no_class(server: Running, client: Client, run: Path) -> None:
    version = client.put_class("vpn", ["openvpn"]).version
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()
    after = Local(run, run / "state.sqlite")
    assert after.ask("/api/classes").json["version"] == version
    after.close()
    client.classes = list  # type: ignore[method-assign,assignment]


def test_answers_are_kept_beside_the_dataset(
    packages: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever the service is started from; the place is told."""
    save_dataset(packages, tmp_path / "mine")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    command = [sys.executable, "-m", "fewnode", "serve", "--data", "../mine", "--port", "0", "--token", TOKEN]
    with started(opened(command)) as running:
        assert running.stop() == 0
        assert f"kept in {tmp_path}/mine.state.sqlite" in running.process.stderr.read()  # type: ignore[union-attr]
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert (tmp_path / "mine.state.sqlite").exists()


Call = Callable[..., tuple[int, str]]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    from fewnode.cli import main

    def call(*arguments: object) -> tuple[int, str]:
        monkeypatch.setattr("sys.argv", ["fewnode", "serve", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        return int(end.value.code or 0), capsys.readouterr().err

    return call


def test_what_cannot_be_served_is_said_in_a_line(call: Call, run: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, told = call("--run", run, "--port", port)
        assert (code, told.count("\n")) == (2, 1)
        assert f"cannot serve on 127.0.0.1 port {port}: Address already in use; choose another --port" in told
    code, told = call("--run", tmp_path / "none", "--port", 0)
    assert (code, told.count("\n")) == (2, 1)
    assert told.startswith(f"fewnode: {tmp_path / 'none'}: no such run")
    code, told = call("--run", run, "--port", 0, "--token", "short")
    assert (code, "at least 16" in told) == (2, True)
    (tmp_path / "directory").mkdir()
    code, told = call("--run", run, "--port", 0, "--state", tmp_path / "directory")
    assert (code, "is no file" in told) == (2, True)


def test_a_state_that_cannot_be_used_is_set_aside_in_a_line(run: Path, tmp_path: Path) -> None:
    (tmp_path / "state.sqlite").write_text("{}")
    with serving(run, "--state", tmp_path / "state.sqlite", "-q") as running:
        assert running.ask("/api/classes").json["classes"] == []
        assert running.stop() == 0
        assert running.process.stderr is not None
        told = running.process.stderr.read()
    assert told.startswith(f"{tmp_path}/state.sqlite: ")
    assert told.endswith("It is now state.sqlite.unusable-1, and the service starts without it\n")


def test_a_missing_extra_is_named(call: Call, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in __import__("sys").modules if name.startswith("fewnode.service")]:
        monkeypatch.delitem(__import__("sys").modules, name)
    monkeypatch.setitem(__import__("sys").modules, "orjson", None)
    code, told = call("--run", run, "--port", 0)
    assert (code, told) == (2, "fewnode: serving needs the package orjson: pip install 'fewnode[serve]'\n")
