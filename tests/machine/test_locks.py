"""Other systems: what only some have is missed by nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from fewnode._system import files, memory
from fewnode._system.files import exclusive, write_text
from fewnode.dataset import Dataset
from fewnode.formats.directory import load_dataset, save_dataset


@pytest.fixture(autouse=True)
def _away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "fcntl", None)
    monkeypatch.setattr(memory, "resource", None)
    for name in ("O_DIRECTORY", "O_NONBLOCK", "O_CLOEXEC"):
        monkeypatch.delattr(files.os, name, raising=False)


def test_files_are_written_and_read_without_locks(worded: Dataset, tmp_path: Path) -> None:
    assert memory.peak_memory() == 0
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
