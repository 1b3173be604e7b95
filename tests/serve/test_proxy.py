"""deploy/: the files for containers and proxies say what the package says, and nginx takes its own."""

from __future__ import annotations

import re
import shutil
import socket
import ssl
import subprocess
import tomllib
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from service import TOKEN, Running
from sizes import until

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")


def test_conda_asks_for_what_pip_asks_for() -> None:
    text = (ROOT / "environment.yml").read_text()
    asked = dict(re.findall(r"^  - ([\w-]+)([<>=][\w.,<>=]+)$", text, re.MULTILINE))
    other_names = {"pytorch-cpu": "torch", "matplotlib-base": "matplotlib", "python-duckdb": "duckdb"}
    ours = dict(re.fullmatch(r"([\w-]+)(.*)", each).groups() for each in PROJECT["dependencies"])
    assert {other_names.get(name, name): bounds for name, bounds in asked.items() if name != "python"} == ours
    assert asked["python"].startswith(PROJECT["requires-python"])


def test_the_image_is_made_of_files_that_are_there() -> None:
    text = (ROOT / "Dockerfile").read_text()
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    known = {"FROM", "RUN", "WORKDIR", "COPY", "ARG", "USER", "ENV", "ENTRYPOINT", "CMD"}
    assert {line.split()[0] for line in lines} <= known
    for line in lines:
        if line.startswith("COPY "):
            assert all((ROOT / name).exists() for name in line.split()[1:-1])
    assert next(i for i, line in enumerate(lines) if line.startswith("USER ")) > 0, "it does not run as root"
    kept = set(re.findall(r"^!(\S+)", (ROOT / ".dockerignore").read_text(), re.MULTILINE))
    assert kept == {name for line in lines if line.startswith("COPY ") for name in line.split()[1:-1]}


def test_compose_starts_a_command_that_exists() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    services = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())["services"]
    assert services["fewnode"]["command"][0] == "serve"
    assert services["nginx"]["network_mode"] == "service:fewnode"
    for mounted in services["nginx"]["volumes"]:
        source = mounted.split(":")[0]
        assert source == "./tls" or (ROOT / "deploy" / source).exists()


def configured(folder: Path, port: int, service: int) -> list[str]:
    """nginx with our file and nothing else, all of it in one folder; ports and certificates of this test."""
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "2", "-subj", "/CN=graph.example", "-addext", "subjectAltName=DNS:graph.example"]
    command += ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run(command, check=True, capture_output=True)
    ours = (ROOT / "deploy" / "nginx.conf").read_text()
    ours = ours.replace("listen 443", f"listen 127.0.0.1:{port}").replace("127.0.0.1:8000", f"127.0.0.1:{service}")
    ours = ours.replace("/etc/nginx/tls", str(folder))
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    process = f"pid {folder}/pid; error_log {folder}/log; daemon off; events {{}}"
    (folder / "nginx.conf").write_text(f"{process} http {{ access_log off; {paths} {ours} }}")
    return [str(NGINX), "-p", str(folder), "-c", str(folder / "nginx.conf")]


@pytest.mark.skipif(NGINX is None, reason="there is no nginx: apt-get install nginx-light")
def test_nginx_takes_the_file(tmp_path: Path) -> None:
    done = subprocess.run([*configured(tmp_path, 8443, 8000), "-t"], capture_output=True, text=True)
    assert "test is successful" in done.stderr, done.stderr


@pytest.mark.check
@pytest.mark.skipif(NGINX is None, reason="there is no nginx: apt-get install nginx-light")
def test_the_service_answers_behind_nginx_with_tls(server: Running, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    nginx = subprocess.Popen(configured(tmp_path, port, server.port))
    try:
        context = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
        context.check_hostname = False  # the certificate is of graph.example, the address 127.0.0.1

        def ask(path: str, **headers: str) -> int:
            sent = {"Host": "graph.example", "Authorization": f"Bearer {TOKEN}", **headers}
            request = urllib.request.Request(f"https://127.0.0.1:{port}{path}", headers=sent)
            try:
                with urllib.request.urlopen(request, context=context, timeout=60) as answer:  # noqa: S310
                    return int(answer.status)
            except urllib.error.HTTPError as error:
                return error.code

        def answers() -> bool:
            try:
                return ask("/api/model") == 200
            except OSError:
                return False

        until(answers)
        assert ask("/api/model", Origin="https://graph.example") == 200
        assert ask("/api/model", Origin="https://elsewhere.example") == 403
        assert ask("/api/model", Host="elsewhere.example") == 403
        assert ask("/api/model", Authorization="Bearer wrong") == 401
        assert 429 in {ask("/health/live") for _ in range(150)}, "a client that asks too often is held back"
    finally:
        nginx.terminate()
        nginx.wait(60)
