"""What a directory of results says: each row of each part with its scores, and what is significantly different.

The numbers are a function of the finished cells and of the layout of the grid alone: not of their order, of the number
of processes, or of how often the run was interrupted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from fewnode.errors import FewnodeError
from fewnode.experiment.grid import KINDS, PROTOCOLS, SHAPE, Grid, setting_text
from fewnode.experiment.ledger import Record, read_ledger
from fewnode.experiment.plan import PlannedCell
from fewnode.machine.files import readable, write_text
from fewnode.scoring.interval import Interval, interval
from fewnode.scoring.metrics import METRICS

LAYOUT = "layout.json"
TABLE = "table.csv"
ALPHA = 0.05
MARGIN = 0.02
"""A difference in accuracy below which two methods count as equally good."""
MAX_LAYOUT_BYTES = 1 << 26
PUBLISHED = ("source", "dataset", "way", "shot", "method", "metric")

Scores = NDArray[np.float64]


@dataclass(frozen=True)
class ResultRow:
    """A row of a part: the cells that differ in the seed alone."""

    label: str
    dataset: str
    method: str
    way: int
    shot: int
    query: int
    records: tuple[Record | None, ...]
    protocol: str = PROTOCOLS[0]

    @cached_property
    def done(self) -> list[Record]:
        return [record for record in self.records if record is not None and record.status == "done"]

    @cached_property
    def scores(self) -> dict[str, Scores]:
        """Of each metric, seeds x tasks."""
        return {metric: np.array([r.per_task[metric] for r in self.done if r.per_task]) for metric in METRICS}

    def __getitem__(self, metric: str) -> Interval | None:
        return interval(self.scores[metric]) if self.scores[metric].size else None

    @property
    def status(self) -> str:
        """`done`, `impossible`, `failed` or `missing`: the worst of its cells."""
        found = {"missing" if record is None else record.status for record in self.records}
        return next(status for status in ("impossible", "failed", "missing", "done") if status in found)

    @property
    def reason(self) -> str:
        return next((record.reason for record in self.records if record is not None and record.reason), "")

    @property
    def setting(self) -> str:
        queries = f" {self.query}-query" if self.query not in (0, self.shot) else ""
        return setting_text(self.way, self.shot, self.protocol) + queries

    @property
    def seconds(self) -> float | None:
        """Of a processor, to train once, on average: what else the machine did meanwhile does not count."""
        spent = [record.provenance.get("fit_cpu_seconds", record.seconds.get("fit", 0.0)) for record in self.done]
        return float(np.mean(spent)) if spent else None


@dataclass(frozen=True)
class Section:
    """A part of the grid with what came out."""

    kind: str
    title: str
    along: str | None
    entries: tuple[ResultRow, ...]

    @property
    def datasets(self) -> list[str]:
        return list(dict.fromkeys(entry.dataset for entry in self.entries))

    @property
    def labels(self) -> list[str]:
        return list(dict.fromkeys(entry.label for entry in self.entries))

    @property
    def settings(self) -> list[str]:
        return list(dict.fromkeys(entry.setting for entry in self.entries))

    def of(self, dataset: str, label: str | None = None, setting: str | None = None) -> list[ResultRow]:
        return [
            entry
            for entry in self.entries
            if entry.dataset == dataset and label in (None, entry.label) and setting in (None, entry.setting)
        ]

    def entry(self, dataset: str, label: str, setting: str | None = None) -> ResultRow | None:
        return next(iter(self.of(dataset, label, setting)), None)

    def scored(self, dataset: str, metric: str) -> list[str]:
        """The settings in which some method has a number on that network."""
        return [s for s in self.settings if any(entry[metric] for entry in self.of(dataset, setting=s))]


@dataclass(frozen=True)
class Results:
    """A results directory, read."""

    title: str
    sections: tuple[Section, ...]
    reported: tuple[dict[str, Any], ...]
    damaged: int = 0

    @cached_property
    def records(self) -> list[Record]:
        """Every record that a section shows, once."""
        shown = {r.id: r for s in self.sections for e in s.entries for r in e.records if r is not None}
        return list(shown.values())

    def paper(self, entry: ResultRow, metric: str) -> float | None:
        """The number that was published for the entry, in percent; all of them are of test classes."""
        if entry.protocol != PROTOCOLS[0]:
            return None
        key = {"dataset": entry.dataset, "way": entry.way, "shot": entry.shot, "method": entry.label, "metric": metric}
        return next((r["value"] for r in self.reported if all(r[k] == v for k, v in key.items())), None)


# --- the layout: which cells are shown where ----------------------------------------------------------------------


def write_layout(directory: Path, grid: Grid, planned: Sequence[PlannedCell]) -> None:
    ids = iter(planned)
    parts = []
    for part in grid.parts:
        rows = [{"label": row.label, "cells": [_place(next(ids)) for _ in row.cells]} for row in part.rows]
        parts.append({"kind": part.kind, "title": part.title, "along": part.along, "rows": rows})
    layout = {"title": grid.title, "parts": parts, "reported": list(grid.reported)}
    write_text(directory / LAYOUT, json.dumps(layout, ensure_ascii=False, separators=(",", ":")) + "\n")


def _place(planned: PlannedCell) -> dict[str, Any]:
    cell = planned.cell
    shape: dict[str, Any] = {"way": cell.way, "shot": cell.shot, "query": cell.query}
    shape |= {"protocol": cell.protocol} if planned.without_base else {}
    return {"id": planned.id, "dataset": cell.dataset, "method": Path(cell.method).name, **shape}


def read_results(directory: Path) -> Results:
    """The layout and the finished cells of a directory that `fewnode experiment` wrote."""
    path = directory / LAYOUT
    if not path.exists():
        raise FewnodeError(f"{directory}: no results of fewnode experiment in it; give what its --out was")
    with readable(path) as file:
        text = file.read(MAX_LAYOUT_BYTES)
    records, damaged = read_ledger(directory)
    try:
        layout = json.loads(text)
        sections = tuple(
            Section(
                str(part["kind"]),
                str(part["title"]),
                part["along"],
                tuple(_entry(row, records) for row in part["rows"]),
            )
            for part in layout["parts"]
        )
        if any(s.kind not in KINDS or s.along not in (None, *SHAPE) for s in sections):
            raise KeyError
        reported = tuple({**number, "value": float(number["value"])} for number in layout["reported"])
        if any(key not in number for number in reported for key in PUBLISHED):
            raise KeyError
        return Results(str(layout["title"]), sections, reported, damaged)
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        raise FewnodeError(f"{path}: damaged; fewnode experiment writes it anew, and runs no cell twice") from None


def _entry(row: Mapping[str, Any], records: Mapping[str, Record]) -> ResultRow:
    first = row["cells"][0]
    shape: dict[str, Any] = {key: int(first[key]) for key in ("way", "shot", "query")}
    found = tuple(records.get(cell["id"]) for cell in row["cells"])
    protocol = first.get("protocol", PROTOCOLS[0])
    if protocol not in PROTOCOLS:
        raise KeyError
    names = (str(row["label"]), str(first["dataset"]), str(first["method"]))
    return ResultRow(*names, **shape, records=found, protocol=protocol)


# --- significance -------------------------------------------------------------------------------------------------


def p_value(better: Scores, other: Scores) -> float:
    """Two-sided p of equal means, where both (seeds x tasks) were asked the same tasks."""
    gap, error, freedom = _gap(better, other)
    if error == 0:
        return 0.0 if gap else 1.0
    return float(2 * stats.t.sf(abs(gap) / error, freedom))


def difference(a: Scores, b: Scores) -> Interval:
    """a - b with its 95 % interval, which leaves 0 out where `p_value` is below 5 %."""
    gap, error, freedom = _gap(a, b)
    return Interval(gap, float(stats.t.ppf(0.975, freedom) * error))


def _gap(a: Scores, b: Scores) -> tuple[float, float, float]:
    """The mean of a - b, its standard error, and Welch and Satterthwaite's degrees of freedom.

    Paired over tasks, because some tasks are hard for everyone. Seeds are nested in a method: seed 0 of one has
    nothing to do with seed 0 of another, so each method's variance over its own seeds is added, unpaired.
    """
    gap = a.mean(axis=0) - b.mean(axis=0)
    terms = [(gap.var(ddof=1) / gap.size, gap.size - 1)]
    terms += [(s.mean(axis=1).var(ddof=1) / len(s), len(s) - 1) for s in (a, b) if len(s) > 1]
    variance = sum(v for v, _ in terms)
    if variance <= 0:
        return float(gap.mean()), 0.0, 1.0
    freedom = variance**2 / sum(v**2 / df for v, df in terms if v > 0)
    return float(gap.mean()), float(np.sqrt(variance)), float(freedom)


def holm(p: Sequence[float], alpha: float = ALPHA) -> list[bool]:
    """Which hypotheses are rejected, the chance of any false rejection being at most alpha (Holm, 1979)."""
    rejected = [False] * len(p)
    for rank, place in enumerate(np.argsort(p, kind="stable").tolist()):
        if p[place] > alpha / (len(p) - rank):
            break
        rejected[place] = True
    return rejected


def margin_p_value(a: Scores, b: Scores, margin: float = MARGIN) -> float:
    """p of a difference of the margin or more, either way: small where both are equally good (Schuirmann, 1987)."""
    gap, error, freedom = _gap(a, b)
    left = margin - abs(gap)
    if error == 0:
        return 0.0 if left > 0 else 1.0
    return float(stats.t.sf(left / error, freedom))


def outcomes(pairs: Sequence[tuple[Scores, Scores]]) -> list[str]:
    """Of each pair `different`, `equal` (within the margin), or `unsure`: the data cannot tell.

    Both questions are asked of all pairs, and each time Holm's correction is for all of them together. Methods that
    surely differ, by less than the margin, are `different`.
    """
    different = holm([p_value(a, b) for a, b in pairs])
    equal = holm([margin_p_value(a, b) for a, b in pairs])
    return ["different" if d else "equal" if e else "unsure" for d, e in zip(different, equal, strict=True)]


@dataclass(frozen=True)
class Verdicts:
    """What each entry of a section is beside the best of its column, and how many were compared."""

    marks: Mapping[int, str]
    comparisons: int

    def mark(self, entry: ResultRow) -> str:
        """`best`; `level`: equally good within the margin; `unsure`: cannot tell; `worse`, significantly."""
        return self.marks.get(id(entry), "")


def compare(section: Section, metric: str = "accuracy") -> Verdicts:
    """Each method against the best of its network and setting; Holm's correction runs over the whole section."""
    marks: dict[int, str] = {}
    pairs = []
    for dataset in section.datasets:
        for setting in section.settings:
            rivals = [e for e in section.of(dataset, setting=setting) if e.scores[metric].size]
            if rivals:
                first = max(rivals, key=lambda entry: entry.scores[metric].mean())
                marks |= {id(e): "unsure" for e in rivals} | {id(first): "best"}
                pairs += [(first, e) for e in rivals if e is not first and comparable(first, e, metric)]
    found = outcomes([(a.scores[metric], b.scores[metric]) for a, b in pairs])
    means = {"different": "worse", "equal": "level", "unsure": "unsure"}
    marks |= {id(b): means[outcome] for (_, b), outcome in zip(pairs, found, strict=True)}
    return Verdicts(marks, len(pairs))


def against_first(section: Section, metric: str = "accuracy") -> tuple[dict[int, tuple[Interval, str]], int]:
    """An ablation: the difference of each row to the first of its network, and what it shows (`outcomes`)."""
    pairs = []
    for dataset in section.datasets:
        whole, *others = section.of(dataset)
        pairs += [(whole, e) for e in others if comparable(whole, e, metric)]
    found = [(b.scores[metric], a.scores[metric]) for a, b in pairs]
    verdicts = zip([difference(b, a) for b, a in found], outcomes(found), strict=True)
    return {id(b): verdict for (_, b), verdict in zip(pairs, verdicts, strict=True)}, len(pairs)


def comparable(a: ResultRow, b: ResultRow, metric: str) -> bool:
    """Whether both were asked the same number of tasks, two at least."""
    x, y = a.scores[metric], b.scores[metric]
    return bool(x.size and y.size and x.shape[1] == y.shape[1] > 1)


# --- the table that is the same for everyone ----------------------------------------------------------------------

COLUMNS = ("part", "dataset", "method", "way", "shot", "query", "seeds", "tasks")


def table(results: Results) -> list[list[str]]:
    """A row for each entry that has scores or a reason to have none; no times, so that equal runs are equal bytes."""
    header = [*COLUMNS, *(f"{metric}{end}" for metric in METRICS for end in ("", "_ci95")), "status", "reason"]
    rows = [header]
    for section in results.sections:
        for entry in section.entries if section.kind != "case" else ():
            seeds, tasks = entry.scores["accuracy"].shape if entry.scores["accuracy"].size else (0, 0)
            shape = [entry.way, entry.shot, entry.query, seeds, tasks]
            found = [entry[metric] for metric in METRICS]
            numbers = [f"{v:.6f}" if f else "" for f in found for v in ((f.mean, f.ci95) if f else (0, 0))]
            names = [section.title, entry.dataset, entry.label]
            rows.append([*names, *map(str, shape), *numbers, entry.status, entry.reason])
    return rows
