"""The tables of a grid's report as LaTeX, Markdown or CSV. Every name in them is somebody's text, and is escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from fewnode.experiment.results import MARGIN, ResultRow, Results, Section, against_first, compare, table
from fewnode.machine.sheets import csv_text
from fewnode.report import names
from fewnode.scoring.interval import Interval
from fewnode.scoring.metrics import METRICS


@dataclass(frozen=True)
class TableCell:
    """What stands in a table, and how: a mark of `Verdicts`, or none."""

    text: str
    mark: str = ""


@dataclass(frozen=True)
class ReportTable:
    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    note: str


def tables(results: Results) -> list[ReportTable]:
    """Every table of the report: of each comparison, one a network and metric; of each ablation, one."""
    found: list[ReportTable] = []
    for section in results.sections:
        if section.kind == "compare":
            for metric in distinct_metrics(section):
                found += _compared(results, section, metric)
        if section.kind == "ablation":
            found.append(_ablated(section))
    return found


def distinct_metrics(section: Section) -> list[str]:
    """With as many queries of every class, weighted F1 is macro-F1: then it is shown once."""
    same = all((e.scores["macro_f1"] == e.scores["weighted_f1"]).all() for e in section.entries)
    return list(METRICS[:2]) if same else list(METRICS)


def significance(comparisons: int) -> str:
    """How the marks came about, in one sentence."""
    return (
        f"paired t-tests over the same tasks with seeds nested in methods, {comparisons} comparisons, "
        "Holm-corrected to 5 % for all of them together"
    )


LEVEL = f"equally good: surely less than {100 * MARGIN:.0f} points apart"
"""What † says; ? says that the data cannot tell."""


def _compared(results: Results, section: Section, metric: str) -> list[ReportTable]:
    verdicts = compare(section, metric)
    how = significance(verdicts.comparisons)
    note = f"% ± 95 % interval. Bold: best; †: {LEVEL}; ?: cannot tell; no mark: significantly worse ({how})."
    found = []
    for dataset in section.datasets:
        settings = section.scored(dataset, metric)
        if not settings:
            continue
        rows = []
        for label in section.labels:
            found_here = [section.entry(dataset, label, setting) for setting in settings]
            cells = [TableCell(names.written(label)), TableCell(seeds_text(found_here, metric))]
            for entry in found_here:
                cells.append(TableCell(_number(results, entry, metric), verdicts.mark(entry) if entry else ""))
            rows.append(tuple(cells))
        caption = f"{section.title}: {dataset}, {names.METRICS[metric]}"
        found.append(ReportTable(caption, ("method", "seeds", *settings), tuple(rows), note))
    return found


def seeds_text(entries: Sequence[ResultRow | None], metric: str) -> str:
    """How many trainings stand behind a row, or from how many to how many."""
    counts = [len(entry.scores[metric]) for entry in entries if entry and entry.scores[metric].size]
    low, high = min(counts, default=0), max(counts, default=0)
    return f"{low} to {high}" if low < high else str(high) if high else "–"


def _number(results: Results, entry: ResultRow | None, metric: str) -> str:
    found = entry[metric] if entry else None
    if entry is None or found is None:
        return "–"
    paper = results.paper(entry, "accuracy" if metric == "accuracy" else "f1")
    return str(found) + (f" (reported {paper:.1f}, {signed(100 * found.mean - paper)})" if paper is not None else "")


def _ablated(section: Section) -> ReportTable:
    changes, comparisons = against_first(section)
    rows = []
    for label in section.labels:
        cells = [TableCell(names.written(label))]
        for dataset in section.datasets:
            entry = section.entry(dataset, label)
            found = entry["accuracy"] if entry else None
            change = changes.get(id(entry))
            text = str(found) if found else "–"
            cells.append(TableCell(text + (f" ({change_text(*change)})" if change else "")))
        rows.append(tuple(cells))
    how = significance(comparisons)
    note = "Accuracy, % ± 95 % interval, and the difference to the first row; "
    note += f"*: significant; †: {LEVEL}; ?: cannot tell ({how})."
    return ReportTable(section.title, ("variant", *section.datasets), tuple(rows), note)


def change_text(change: Interval, outcome: str) -> str:
    mark = {"different": "*", "equal": "†", "unsure": " ?"}[outcome]
    return f"{signed(100 * change.mean)} ± {100 * change.ci95:.1f}{mark}"


def signed(value: float) -> str:
    """To one decimal, with a real minus; what rounds to nothing has no sign."""
    return f"{round(value, 1) + 0.0:+.1f}".replace("-", "−") if round(value, 1) else "0.0"


# --- the three forms ----------------------------------------------------------------------------------------------


def render(results: Results, form: str) -> str:
    if form == "csv":
        return csv_text(_with_marks(results))
    write = to_latex if form == "latex" else to_markdown
    return "\n".join(write(each) for each in tables(results))


def _with_marks(results: Results) -> list[list[str]]:
    """The table of the results directory, with the marks of the comparisons and the published numbers."""
    header, *rows = table(results)
    found = [[*header, "mark", "reported_accuracy", "reported_f1"]]
    entries = [(s, e) for s in results.sections if s.kind != "case" for e in s.entries]
    verdicts = {id(section): compare(section) for section in results.sections if section.kind == "compare"}
    for row, (section, entry) in zip(rows, entries, strict=True):
        mark = verdicts[id(section)].mark(entry) if id(section) in verdicts else ""
        paper = [results.paper(entry, metric) for metric in ("accuracy", "f1")]
        found.append([*row, mark, *("" if value is None else f"{value:.1f}" for value in paper)])
    return found


def to_markdown(found: ReportTable) -> str:
    lines = [f"**{in_markdown(found.caption)}**", "", _piped([in_markdown(h) for h in found.header])]
    lines.append("|---|" + "---:|" * (len(found.header) - 1))
    style = {"best": "**{}**", "level": "{}†", "unsure": "{} ?", "worse": "{}", "": "{}"}
    lines += [_piped([style[cell.mark].format(in_markdown(cell.text)) for cell in row]) for row in found.rows]
    return "\n".join([*lines, "", in_markdown(found.note), ""])


def _piped(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def to_latex(found: ReportTable) -> str:
    """A table for the package booktabs."""
    style = {"best": "\\textbf{{{}}}", "level": "{}$^\\dagger$", "unsure": "{}$^?$", "worse": "{}", "": "{}"}
    rows = [" & ".join(style[c.mark].format(in_latex(c.text)) for c in row) + " \\\\" for row in found.rows]
    return "\n".join(
        [
            "\\begin{table}",
            "\\centering",
            f"\\caption{{{in_latex(found.caption)}. {in_latex(found.note)}}}",
            f"\\begin{{tabular}}{{l{'r' * (len(found.header) - 1)}}}",
            "\\toprule",
            " & ".join(in_latex(h) for h in found.header) + " \\\\",
            "\\midrule",
            *rows,
            "\\bottomrule",
            "\\end{tabular}",
            "\\end{table}",
            "",
        ]
    )


_LATEX = {
    **{c: f"\\{c}" for c in "&%$#_{}"},
    "\\": "\\textbackslash{}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "<": "\\textless{}",
    ">": "\\textgreater{}",
    "±": "$\\pm$",
    "−": "$-$",
    "†": "$^\\dagger$",
    "–": "--",
    "β": "$\\beta$",
    '"': "''",
}


def in_latex(text: str) -> str:
    return "".join(_LATEX.get(c, c) for c in " ".join(text.split()))


def in_markdown(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>|#~!&])", r"\\\1", " ".join(text.split()))
