"""Other systems and other Pythons: what only Linux or an older Python has is missed by nobody."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

import fewnode
from fewnode.dataset import Dataset
from fewnode.machine import system
from fewnode.machine.files import exclusive, write_text
from fewnode.storage.io import load_dataset, save_dataset
from test_layers import MODULES, SOURCE

ONLY_SOME_HAVE = {"fcntl", "resource", "uvloop", "termios", "pwd", "grp", "msvcrt", "winreg"}
HOME = SOURCE.parents[1]
GONE = {
    *("asynchat", "asyncore", "distutils", "imp", "smtpd"),  # 3.12
    *("aifc", "audioop", "cgi", "cgitb", "chunk", "crypt", "imghdr", "lib2to3", "mailcap", "msilib", "nis", "nntplib"),
    *("ossaudiodev", "pipes", "sndhdr", "spwd", "sunau", "telnetlib", "uu", "xdrlib"),  # 3.13
}
GONE_OR_GOING = {
    *("utcnow", "utcfromtimestamp", "find_loader", "get_loader", "makeSuite", "findTestCases", "resetlocale"),
    *("get_child_watcher", "set_child_watcher", "MultiLoopChildWatcher"),
}
"""Modules and names that Python 3.12 to 3.14 removed, or will."""


@pytest.fixture(autouse=True)
def _away(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ONLY_SOME_HAVE:
        monkeypatch.setitem(sys.modules, name, None)
    for name in ("O_DIRECTORY", "O_NONBLOCK", "O_CLOEXEC"):
        monkeypatch.delattr(system.os, name, raising=False)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_nothing_that_only_linux_has_is_imported_at_the_top(path: Path) -> None:
    top = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.Import | ast.ImportFrom)]
    named = {alias.name for node in top if isinstance(node, ast.Import) for alias in node.names}
    named |= {node.module or "" for node in top if isinstance(node, ast.ImportFrom)}
    assert not {name.split(".")[0] for name in named} & ONLY_SOME_HAVE


def test_nothing_that_a_newer_python_removed_is_used() -> None:
    for path in [path for part in ("src", "tests", "benchmarks", "docs") for path in (HOME / part).rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            named = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            named += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.split(".")[0] for name in named} & GONE, path
            assert not (isinstance(node, ast.Attribute) and node.attr in GONE_OR_GOING), path


def test_every_python_that_is_promised_is_tested() -> None:
    promised = re.findall(r"Python :: (3\.\d+)", (HOME / "pyproject.toml").read_text())
    assert tomllib.loads((HOME / "pyproject.toml").read_text())["project"]["requires-python"] == f">={promised[0]}"
    matrix = re.search(r"python: \[(.*)\]", (HOME / ".github/workflows/tests.yml").read_text())
    made = re.search(r"^VERSIONS \?= (.*)$", (HOME / "Makefile").read_text(), re.MULTILINE)
    assert matrix is not None
    assert made is not None
    assert re.findall(r"3\.\d+", matrix[1]) == made[1].split() == promised


def test_files_are_written_and_read_without_locks(worded: Dataset, tmp_path: Path) -> None:
    save_dataset(worded, tmp_path / "d")
    assert load_dataset(tmp_path / "d").sha256 == worded.sha256
    with exclusive(tmp_path / "d"):
        write_text(tmp_path / "d" / "note.txt", "one")
        write_text(tmp_path / "d" / "note.txt", "two")
    assert (tmp_path / "d" / "note.txt").read_text() == "two"
    assert [path.name for path in (tmp_path / "d").iterdir() if path.name.endswith("fewnode-part")] == []


def test_nothing_of_others_is_cleared_away_without_locks(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "one")
    theirs = tmp_path / ".a.txt.12345678.fewnode-part"
    theirs.touch()
    write_text(tmp_path / "a.txt", "two")
    assert theirs.exists(), "another process may be writing it, and cannot say so"


def test_answers_are_the_same(worded: Dataset) -> None:
    found = fewnode.recognise(worded, {"mail": [0, 1], "vpn": [25, 26]}, query=[3, 30])
    assert found.labels == ["mail", "vpn"]
    assert system.peak_memory() == 0


def test_the_service_runs_on_the_loop_that_is_there() -> None:
    said = []

    async def main() -> None:
        said.append(type(__import__("asyncio").get_running_loop()).__module__.partition(".")[0])

    system.run_loop(main())
    assert said == ["asyncio"]
