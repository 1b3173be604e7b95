"""Other systems and other Pythons: what only Linux or an older Python has is missed by nobody."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from fewnode._system import locks
from fewnode._system.files import exclusive, write_text
from fewnode.dataset import Dataset
from fewnode.formats.directory import load_dataset, save_dataset
from test_layers import MODULES, SOURCE

ONLY_SOME_HAVE = {"fcntl", "resource", "uvloop", "termios", "pwd", "grp", "msvcrt", "winreg"}


@pytest.fixture(autouse=True)
def _away(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ONLY_SOME_HAVE:
        monkeypatch.setitem(sys.modules, name, None)
    for name in ("O_DIRECTORY", "O_NONBLOCK", "O_CLOEXEC"):
        monkeypatch.delattr(locks.os, name, raising=False)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_nothing_that_only_linux_has_is_imported_at_the_top(path: Path) -> None:
    top = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.Import | ast.ImportFrom)]
    named = {alias.name for node in top if isinstance(node, ast.Import) for alias in node.names}
    named |= {node.module or "" for node in top if isinstance(node, ast.ImportFrom)}
    assert not {name.split(".")[0] for name in named} & ONLY_SOME_HAVE


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
