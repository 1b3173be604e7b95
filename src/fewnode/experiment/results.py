"""What a directory of results says: each row of each part with its scores, and what is significantly different.

The numbers are a function of the finished cells and of the layout of the grid alone: not of their order, of the number
of processes, or of how often the run was interrupted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from fewnode._system.files import readable
from fewnode.errors import FewnodeError
from fewnode.experiment.grid import Grid, GridPart, GridRow, Reported
from fewnode.experiment.ledger import Record, read_ledger
from fewnode.scores import METRICS, Interval, Terms, half_width, interval, tail, terms

LAYOUT = "layout.json"
TABLE = "table.csv"
ALPHA = 0.05
MARGIN = 0.02
"""A difference in accuracy below which two methods count as equally good."""
MIN_TASKS = 5
"""Of a comparison: a few can differ by the same number by chance."""
MAX_LAYOUT_BYTES = 1 << 26
COLUMNS = ("part", "dataset", "method", "way", "shot", "query", "seeds", "tasks")

Scores = NDArray[np.float64]
"""Seeds x tasks."""


@dataclass(frozen=True, eq=False)
class ResultRow:
    """A row of a part with what came out of its cells, which differ in the seed alone."""

    row: GridRow
    records: tuple[Record | None, ...]

    @property
    def label(self) -> str:
        return self.row.label

    @cached_property
    def done(self) -> list[Record]:
        return [record for record in self.records if record is not None and record.status == "done"]

    @cached_property
    def scores(self) -> dict[str, Scores]:
        return {metric: np.array([r.per_task[metric] for r in self.done if r.per_task]) for metric in METRICS}

    def __getitem__(self, metric: str) -> Interval | None:
        return interval(self.scores[metric]) if self.scores[metric].size else None

    @property
    def status(self) -> str:
        """`done`, `impossible`, `failed` or `missing`: the worst of its cells."""
        statuses = {"missing" if record is None else record.status for record in self.records}
        return next((status for status in ("impossible", "failed", "missing") if status in statuses), "done")

    @property
    def reason(self) -> str:
        return next((record.reason for record in self.records if record is not None and record.reason), "")

    @property
    def seconds(self) -> float:
        """Of a processor, to train once, on average: what else the machine did meanwhile does not count."""
        spent = [record.provenance.get("fit_cpu_seconds", record.seconds.get("fit", 0.0)) for record in self.done]
        return float(np.mean(spent or [0.0]))


@dataclass(frozen=True)
class Section:
    """A part of the grid with what came out."""

    part: GridPart
    entries: tuple[ResultRow, ...]

    @property
    def datasets(self) -> list[str]:
        return list(dict.fromkeys(entry.row.dataset for entry in self.entries))

    @property
    def labels(self) -> list[str]:
        return list(dict.fromkeys(entry.label for entry in self.entries))

    @property
    def settings(self) -> list[str]:
        return list(dict.fromkeys(entry.row.setting for entry in self.entries))

    def of(self, dataset: str, label: str | None = None, setting: str | None = None) -> list[ResultRow]:
        return [
            entry
            for entry in self.entries
            if entry.row.dataset == dataset and label in (None, entry.label) and setting in (None, entry.row.setting)
        ]


@dataclass(frozen=True)
class Results:
    """A results directory, read."""

    title: str
    sections: tuple[Section, ...]
    reported: Sequence[Reported]
    damaged: int = 0

    @cached_property
    def records(self) -> list[Record]:
        """Every record that a section shows, once."""
        shown = {r.id: r for s in self.sections for e in s.entries for r in e.records if r is not None}
        return list(shown.values())

    def published(self, entry: ResultRow) -> tuple[float | None, float | None]:
        """The accuracy and F1 that somebody published for the entry, in percent; all of them are of test classes."""
        row = entry.row
        for one in self.reported if not row.without_base else ():
            if (one.dataset, one.way, one.shot) == (row.dataset, row.way, row.shot):
                return one.accuracy.get(entry.label), one.f1.get(entry.label)
        return None, None


def read_results(directory: Path) -> Results:
    """The layout and the finished cells of a directory that `fewnode experiment` wrote."""
    path = directory / LAYOUT
    if not path.exists():
        raise FewnodeError(f"{directory}: no results of fewnode experiment in it; give the directory of its results")
    with readable(path) as file:
        text = file.read(MAX_LAYOUT_BYTES)
    try:
        grid = Grid.model_validate_json(text)
    except ValidationError:
        raise FewnodeError(f"{path}: damaged; fewnode experiment writes it anew, and runs no cell twice") from None
    records, damaged = read_ledger(directory)
    sections = []
    for part in grid.parts:
        entries = (ResultRow(row, tuple(records.get(key) for key in row.ids)) for row in part.rows)
        sections.append(Section(part, tuple(entries)))
    return Results(grid.title, tuple(sections), grid.reported, damaged)


def table(results: Results) -> list[list[str]]:
    """A row for each entry that has scores or a reason to have none; no times, so that equal runs are equal bytes."""
    rows = [[*COLUMNS, *(f"{metric}{end}" for metric in METRICS for end in ("", "_ci95")), "status", "reason"]]
    for section in results.sections:
        for entry in section.entries if section.part.kind != "case" else ():
            row, (seeds, tasks) = entry.row, entry.scores["accuracy"].shape if entry["accuracy"] else (0, 0)
            counts = map(str, (row.way, row.shot, row.query, seeds, tasks))
            scores = [(f"{v.mean:.6f}", f"{v.ci95:.6f}") if v else ("", "") for v in map(entry.__getitem__, METRICS)]
            numbers = (number for pair in scores for number in pair)
            rows.append([section.part.title, row.dataset, entry.label, *counts, *numbers, entry.status, entry.reason])
    return rows


# --- significance -------------------------------------------------------------------------------------------------


def p_value(better: Scores, other: Scores) -> float:
    """Two-sided p of equal means, where both (seeds x tasks) were asked the same tasks."""
    gap, uncertain = _gap(better, other)
    return min(1.0, 2 * tail(abs(gap), uncertain))


def margin_p_value(a: Scores, b: Scores, margin: float = MARGIN) -> float:
    """p of a difference of the margin or more, either way: small where both are equally good (Schuirmann, 1987)."""
    gap, uncertain = _gap(a, b)
    return tail(margin - abs(gap), uncertain)


def difference(a: Scores, b: Scores) -> Interval:
    """a - b with its 95 % interval, which leaves 0 out where `p_value` is below 5 %."""
    gap, uncertain = _gap(a, b)
    return Interval(gap, half_width(uncertain))


def _gap(a: Scores, b: Scores) -> tuple[float, Terms]:
    """The mean of a - b, and what makes it uncertain, as `interval` has it for one mean.

    Paired over tasks, because some tasks are hard for everyone. Seeds are nested in a method: seed 0 of one has
    nothing to do with seed 0 of another, so each method's variance over its own seeds is added, unpaired.
    """
    gap = a.mean(axis=0) - b.mean(axis=0)
    return float(gap.mean()), terms(gap, *(scores.mean(axis=1) for scores in (a, b)))


def holm(p: Sequence[float], alpha: float = ALPHA) -> list[bool]:
    """Which hypotheses are rejected, the chance of any false rejection being at most alpha (Holm, 1979)."""
    rejected = [False] * len(p)
    for rank, place in enumerate(np.argsort(p, kind="stable").tolist()):
        if p[place] > alpha / (len(p) - rank):
            break
        rejected[place] = True
    return rejected


def against_best(section: Section, metric: str = "accuracy") -> tuple[dict[ResultRow, str], int]:
    """Each method against the best of its network and setting: a mark, and how many were compared.

    `best`; `level`: equally good within the margin; `unsure`: cannot tell; `worse`, significantly.
    """
    marks, pairs = dict[ResultRow, str](), []
    for dataset in section.datasets:
        for setting in section.settings:
            rivals = [entry for entry in section.of(dataset, setting=setting) if entry[metric]]
            if rivals:
                best = max(rivals, key=lambda entry: entry.scores[metric].mean())
                marks |= dict.fromkeys(rivals, "unsure") | {best: "best"}
                pairs += [(best, entry) for entry in rivals if entry is not best]
    compared = _compared(pairs, metric)
    return marks | compared, len(compared)


def against_first(section: Section, metric: str = "accuracy") -> tuple[dict[ResultRow, str], int]:
    """An ablation: each row against the first of its network, which is the whole. Marks are as of `against_best`."""
    rows = [section.of(dataset) for dataset in section.datasets]
    compared = _compared([(whole, entry) for whole, *others in rows for entry in others], metric)
    return compared, len(compared)


def _compared(pairs: Sequence[tuple[ResultRow, ResultRow]], metric: str) -> dict[ResultRow, str]:
    """What the second of each pair is beside the first: `worse` (or better), `level`, or `unsure`.

    Compared is what was asked the same tasks, and enough of them. Both questions, whether they differ and whether they
    are within the margin, are asked of all pairs, and each time Holm's correction is for all of them together. Methods
    that surely differ, by less than the margin, differ.
    """
    found = []
    for first, second in pairs:
        a, b = first.scores[metric], second.scores[metric]
        if a.size and b.size and a.shape[1] == b.shape[1] >= MIN_TASKS:
            found.append((second, p_value(a, b), margin_p_value(a, b)))
    differ, equal = holm([p for _, p, _ in found]), holm([p for _, _, p in found])
    marks = ["worse" if d else "level" if e else "unsure" for d, e in zip(differ, equal, strict=True)]
    return {entry: mark for (entry, _, _), mark in zip(found, marks, strict=True)}
