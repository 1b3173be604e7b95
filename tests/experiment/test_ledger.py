"""Lines with a checksum: whatever happens to one costs that one alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fewnode.experiment.ledger import FILE, Record, appending, read_ledger, short_hash


def record(name: str, status: str = "done") -> Record:
    cell = {"dataset": "d", "method": "m", "way": 5, "shot": 5, "seed": 0, "kind": "score"}
    scores = {metric: [0.25, 0.5] for metric in ("accuracy", "macro_f1", "weighted_f1")} if status == "done" else {}
    return Record(id=name, cell=cell, status=status, reason=None if scores else "bad luck", per_task=scores)


def fill(directory: Path, *records: Record) -> Path:
    with appending(directory) as add:
        for each in records:
            add(each)
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
BAD: dict[str, dict[str, Any]] = {
    "done, but nothing came out": {"per_task": {}},
    "no such status": {"status": "dreaming"},
    "an id that is no text": {"id": 3},
    **{f"a cell without its {key}": {"cell": {k: v for k, v in GOOD.cell.items() if k != key}} for key in GOOD.cell},
    "a case study that is none": {"per_task": {}, "case": ["x"]},
    "seconds that are no number": {"seconds": {"train": "long"}},
    "a metric is missing": {"per_task": {"accuracy": [0.5]}},
    "a metric of other length": {"per_task": {**GOOD.per_task, "accuracy": [0.5]}},
    "metrics of no task": {"per_task": {key: [] for key in GOOD.per_task}},
    "a score that is none": {"per_task": {**GOOD.per_task, "accuracy": [0.5, None]}},
    "a field of others": {"colour": "red"},
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_a_line_with_a_checksum_of_its_own_must_still_be_a_record(tmp_path: Path, bad: dict[str, Any]) -> None:
    body = {**GOOD.model_dump(), **bad}
    (tmp_path / FILE).write_text(json.dumps({**body, "sha256": short_hash(body)}) + "\n")
    assert read_ledger(tmp_path) == ({}, 1)


def test_a_hash_stays_what_it_was() -> None:
    """Ledgers of last year are read with it."""
    assert short_hash({"b": 1, "a": "ä"}) == short_hash({"a": "ä", "b": 1}) == "507aab815f2bdfce"
    with pytest.raises(ValueError, match="not JSON compliant"):
        short_hash({"a": float("nan")})


def test_a_line_that_a_kill_cut_off_does_not_swallow_the_next(tmp_path: Path) -> None:
    path = fill(tmp_path, record("a"), record("b"))
    path.write_bytes(path.read_bytes()[:-40])
    fill(tmp_path, record("c"))
    found, damaged = read_ledger(tmp_path)
    assert (sorted(found), damaged) == (["a", "c"], 1)


def test_done_wins_over_failed(tmp_path: Path) -> None:
    fill(tmp_path, record("a", "failed"), record("a"), record("a", "failed"))
    assert read_ledger(tmp_path)[0]["a"].status == "done"
