"""Lines with a checksum: whatever happens to one costs that one alone."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from fewnode.experiment.ledger import FILE, Ledger, Record, read_ledger


def record(name: str, status: str = "done") -> Record:
    cell = {"dataset": "d", "method": "m", "way": 5, "shot": 5, "seed": 0, "kind": "score"}
    scores = {metric: [0.25, 0.5] for metric in ("accuracy", "macro_f1", "weighted_f1")} if status == "done" else {}
    return Record(name, cell, status, reason=None if scores else "bad luck", per_task=scores)


def fill(directory: Path, *records: Record) -> Path:
    ledger = Ledger(directory)
    for each in records:
        ledger.add(each)
    ledger.close()
    return directory / FILE


def test_what_is_written_is_read(tmp_path: Path) -> None:
    fill(tmp_path, record("a"), record("b", "failed"))
    found, damaged = read_ledger(tmp_path)
    assert (found, damaged) == ({"a": record("a"), "b": record("b", "failed")}, 0)
    assert read_ledger(tmp_path / "nowhere") == ({}, 0)


@pytest.mark.parametrize("change", [("0.25", "0.26"), ('"done"', '"dome"'), ("{", ""), ("}", "]")])
def test_a_damaged_line_counts_as_none(tmp_path: Path, change: tuple[str, str]) -> None:
    path = fill(tmp_path, record("a"), record("b"))
    first, second = path.read_text().splitlines()
    path.write_text(first.replace(*change, 1) + "\n" + second + "\n")
    found, damaged = read_ledger(tmp_path)
    assert (list(found), damaged) == (["b"], 1)


GOOD = record("a")
BAD = {
    "done, but nothing came out": replace(GOOD, per_task={}),
    "no such status": replace(GOOD, status="dreaming"),
    "an id that is no text": replace(GOOD, id=3),  # type: ignore[arg-type]
    "a cell without its shots": replace(GOOD, cell={k: v for k, v in GOOD.cell.items() if k != "shot"}),
    "seconds that are no number": replace(GOOD, seconds={"train": "long"}),  # type: ignore[dict-item]
    "a metric is missing": replace(GOOD, per_task={"accuracy": [0.5]}),
    "a metric of other length": replace(GOOD, per_task={**GOOD.per_task, "accuracy": [0.5]}),
    "metrics of no task": replace(GOOD, per_task={key: [] for key in GOOD.per_task}),
    "a score that is none": replace(GOOD, per_task={**GOOD.per_task, "accuracy": [0.5, None]}),  # type: ignore[list-item]
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_a_line_with_a_checksum_of_its_own_must_still_be_a_record(tmp_path: Path, bad: Record) -> None:
    fill(tmp_path, bad)
    assert read_ledger(tmp_path) == ({}, 1)


def test_what_is_no_record_at_all_counts_as_damaged(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"[]\n\xff\n" + b"[" * 100_000 + b"\n3\n")
    assert read_ledger(tmp_path) == ({}, 4)


def test_one_task_is_enough_and_a_failure_needs_none(tmp_path: Path) -> None:
    single = replace(GOOD, per_task={key: [0.5] for key in GOOD.per_task}, seconds={"train": 1.5, "test": 2})
    fill(tmp_path, single, record("b", "failed"))
    assert read_ledger(tmp_path) == ({"a": single, "b": record("b", "failed")}, 0)


def test_a_line_that_a_kill_cut_off_does_not_swallow_the_next(tmp_path: Path) -> None:
    path = fill(tmp_path, record("a"), record("b"))
    path.write_bytes(path.read_bytes()[:-40])
    fill(tmp_path, record("c"))
    found, damaged = read_ledger(tmp_path)
    assert (sorted(found), damaged) == (["a", "c"], 1)


def test_done_wins_over_failed(tmp_path: Path) -> None:
    fill(tmp_path, record("a", "failed"), record("a"), record("a", "failed"))
    assert read_ledger(tmp_path)[0]["a"].status == "done"


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = fill(tmp_path, record("a"))
    before, write = path.read_bytes(), os.write
    ledger = Ledger(tmp_path)

    def full(file: int, blob: memoryview) -> int:
        if len(blob) < 100:
            raise OSError(28, "No space left on device")
        return write(file, blob[:50])

    monkeypatch.setattr("os.write", full)
    with pytest.raises(OSError, match="No space"):
        ledger.add(record("b"))
    ledger.close()
    assert path.read_bytes() == before


def test_a_line_is_plain_json(tmp_path: Path) -> None:
    text = fill(tmp_path, replace(record("b", "failed"), reason="schlecht’s Glück"), record("a")).read_text()
    assert "schlecht’s Glück" in text
    assert '":"' in text
    assert '": ' not in text
    line = json.loads(text.splitlines()[1])
    assert list(line) == sorted(line)
    assert line["per_task"]["accuracy"] == [0.25, 0.5]
    assert len(line["sha256"]) == 16
