"""What a directory of results says: each row of each part with its scores, and what is significantly different.

The numbers are a function of the finished cells and of the layout of the grid alone: not of their order, of the number
of processes, or of how often the run was interrupted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from fewnode._system.files import readable
from fewnode.errors import FewnodeError
from fewnode.experiment.grid import EPISODES, Cell, Grid, GridPart, GridRow, Reported
from fewnode.experiment.ledger import Record, read_ledger
from fewnode.scores import METRICS, Interval, Terms, half_width, interval, tail, terms

LAYOUT = "layout.json"
TABLE = "table.csv"
ALPHA = 0.05
MARGIN = 0.02
"""A difference in accuracy below which two methods count as equally good."""
MIN_TASKS = 5
"""Of a comparison."""
MAX_LAYOUT_BYTES = 1 << 26

Scores = NDArray[np.float64]
"""Seeds x tasks."""


@dataclass(frozen=True, eq=False)
class ResultRow:
    """A row of a part with what came out of its cells, which differ in the seed alone."""

    label: str
    cell: Cell
    """The first of them."""
    records: tuple[Record | None, ...]

    @classmethod
    def of(cls, row: GridRow, records: Mapping[str, Record]) -> ResultRow:
        return cls(row.label, row.cells[0], tuple(records.get(cell.id) for cell in row.cells))

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
        found = {"missing" if record is None else record.status for record in self.records}
        return next(status for status in ("impossible", "failed", "missing", "done") if status in found)

    @property
    def reason(self) -> str:
        return next((record.reason for record in self.records if record is not None and record.reason), "")

    @property
    def seconds(self) -> float | None:
        """Of a processor, to train once, on average: what else the machine did meanwhile does not count."""
        spent = [record.provenance.get("fit_cpu_seconds", record.seconds.get("fit", 0.0)) for record in self.done]
        return float(np.mean(spent)) if spent else None


@dataclass(frozen=True)
class Section:
    """A part of the grid with what came out."""

    part: GridPart
    entries: tuple[ResultRow, ...]

    @property
    def datasets(self) -> list[str]:
        return list(dict.fromkeys(entry.cell.dataset for entry in self.entries))

    @property
    def labels(self) -> list[str]:
        return list(dict.fromkeys(entry.label for entry in self.entries))

    @property
    def settings(self) -> list[str]:
        return list(dict.fromkeys(entry.cell.setting for entry in self.entries))

    def of(self, dataset: str, label: str | None = None, setting: str | None = None) -> list[ResultRow]:
        return [
            entry
            for entry in self.entries
            if entry.cell.dataset == dataset and label in (None, entry.label) and setting in (None, entry.cell.setting)
        ]

    def entry(self, dataset: str, label: str, setting: str | None = None) -> ResultRow | None:
        return next(iter(self.of(dataset, label, setting)), None)

    def scored(self, dataset: str) -> list[str]:
        """The settings in which some method has a number on that network."""
        return [s for s in self.settings if any(entry["accuracy"] for entry in self.of(dataset, setting=s))]


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

    def published(self, entry: ResultRow, metric: str) -> float | None:
        """The number that somebody published for the entry, in percent; all of them are of test classes."""
        cell = entry.cell
        if cell.protocol != EPISODES:
            return None
        key = (cell.dataset, cell.way, cell.shot, entry.label, metric)
        numbers = ((n.value, (n.dataset, n.way, n.shot, n.method, n.metric)) for n in self.reported)
        return next((value for value, other in numbers if other == key), None)


def read_results(directory: Path) -> Results:
    """The layout and the finished cells of a directory that `fewnode experiment` wrote."""
    path = directory / LAYOUT
    if not path.exists():
        raise FewnodeError(f"{directory}: no results of fewnode experiment in it; give what its --out was")
    with readable(path) as file:
        text = file.read(MAX_LAYOUT_BYTES)
    try:
        grid = Grid.model_validate_json(text)
    except ValidationError:
        raise FewnodeError(f"{path}: damaged; fewnode experiment writes it anew, and runs no cell twice") from None
    records, damaged = read_ledger(directory)
    sections = (Section(part, tuple(ResultRow.of(row, records) for row in part.rows)) for part in grid.parts)
    return Results(grid.title, tuple(sections), grid.reported, damaged)


# --- significance -------------------------------------------------------------------------------------------------


def p_value(better: Scores, other: Scores) -> float:
    """Two-sided p of equal means, where both (seeds x tasks) were asked the same tasks."""
    gap, uncertain = _gap(better, other)
    return min(1.0, 2 * tail(abs(gap), uncertain))


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


def margin_p_value(a: Scores, b: Scores, margin: float = MARGIN) -> float:
    """p of a difference of the margin or more, either way: small where both are equally good (Schuirmann, 1987)."""
    gap, uncertain = _gap(a, b)
    return tail(margin - abs(gap), uncertain)


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

    marks: Mapping[ResultRow, str]
    comparisons: int

    def mark(self, entry: ResultRow) -> str:
        """`best`; `level`: equally good within the margin; `unsure`: cannot tell; `worse`, significantly."""
        return self.marks.get(entry, "")


def compare(section: Section, metric: str = "accuracy") -> Verdicts:
    """Each method against the best of its network and setting; Holm's correction runs over the whole section."""
    marks: dict[ResultRow, str] = {}
    pairs = []
    for dataset in section.datasets:
        for setting in section.settings:
            rivals = [e for e in section.of(dataset, setting=setting) if e.scores[metric].size]
            if rivals:
                first = max(rivals, key=lambda entry: entry.scores[metric].mean())
                marks |= dict.fromkeys(rivals, "unsure") | {first: "best"}
                pairs += [(first, e) for e in rivals if e is not first and comparable(first, e, metric)]
    found = outcomes([(a.scores[metric], b.scores[metric]) for a, b in pairs])
    means = {"different": "worse", "equal": "level", "unsure": "unsure"}
    return Verdicts(marks | {b: means[outcome] for (_, b), outcome in zip(pairs, found, strict=True)}, len(pairs))


def against_first(section: Section, metric: str = "accuracy") -> tuple[dict[ResultRow, tuple[Interval, str]], int]:
    """An ablation: the difference of each row to the first of its network, and what it shows (`outcomes`)."""
    pairs = []
    for dataset in section.datasets:
        whole, *others = section.of(dataset)
        pairs += [(whole, e) for e in others if comparable(whole, e, metric)]
    found = [(b.scores[metric], a.scores[metric]) for a, b in pairs]
    verdicts = zip([difference(b, a) for b, a in found], outcomes(found), strict=True)
    return {b: verdict for (_, b), verdict in zip(pairs, verdicts, strict=True)}, len(pairs)


def comparable(a: ResultRow, b: ResultRow, metric: str) -> bool:
    """Whether both were asked the same tasks, and enough of them: a few can differ by the same number by chance."""
    x, y = a.scores[metric], b.scores[metric]
    return bool(x.size and y.size and x.shape[1] == y.shape[1] >= MIN_TASKS)


# --- the table that is the same for everyone ----------------------------------------------------------------------

COLUMNS = ("part", "dataset", "method", "way", "shot", "query", "seeds", "tasks")


def table(results: Results) -> list[list[str]]:
    """A row for each entry that has scores or a reason to have none; no times, so that equal runs are equal bytes."""
    rows = [[*COLUMNS, *(f"{metric}{end}" for metric in METRICS for end in ("", "_ci95")), "status", "reason"]]
    for section in results.sections:
        for entry in section.entries if section.part.kind != "case" else ():
            seeds, tasks = entry.scores["accuracy"].shape if entry.scores["accuracy"].size else (0, 0)
            shape = [entry.cell.way, entry.cell.shot, entry.cell.query, seeds, tasks]
            found = [entry[metric] for metric in METRICS]
            numbers = [f"{v:.6f}" if f else "" for f in found for v in ((f.mean, f.ci95) if f else (0, 0))]
            names = [section.part.title, entry.cell.dataset, entry.label]
            rows.append([*names, *map(str, shape), *numbers, entry.status, entry.reason])
    return rows
