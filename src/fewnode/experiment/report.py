"""The report of a grid: one self-contained page, or its tables as LaTeX, Markdown or CSV. Every name is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fewnode._system.files import write_text
from fewnode._system.sheets import csv_text
from fewnode.errors import FewnodeError
from fewnode.experiment.names import METRICS, written
from fewnode.experiment.results import MARGIN, ResultRow, Results, Section, against_first, compare, table
from fewnode.scores import Interval

LEVEL = f"equally good: surely less than {100 * MARGIN:.0f} points apart"
"""What † says; ? says that the data cannot tell."""


@dataclass(frozen=True)
class TableCell:
    """What stands in a table, with a mark of `Verdicts` or none. `beside` is for tables alone, `notes` for the page."""

    text: str
    mark: str = ""
    is_head: bool = False
    beside: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReportTable:
    """A table of the report. `absent` says what has no column, and why."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    note: str
    absent: str = ""


def tables(results: Results) -> list[ReportTable]:
    """Every table of the report: of each comparison, one a network and metric; of each ablation, one."""
    made: list[ReportTable] = []
    for section in results.sections:
        if section.part.kind == "compare":
            made += [found for metric in _distinct_metrics(section) for found in _compared(results, section, metric)]
        if section.part.kind == "ablation":
            made.append(_ablated(section))
    return [found for found in made if found.rows]


def _distinct_metrics(section: Section) -> list[str]:
    """With as many queries of every class, weighted F1 is macro-F1: then it is shown once."""
    same = all((e.scores["macro_f1"] == e.scores["weighted_f1"]).all() for e in section.entries)
    return list(METRICS)[: 2 if same else 3]


def _significance(comparisons: int) -> str:
    """How the marks came about."""
    return (
        f"paired t-tests over the same tasks with seeds nested in methods, {comparisons} comparisons, "
        "Holm-corrected to 5 % for all of them together"
    )


def _compared(results: Results, section: Section, metric: str) -> list[ReportTable]:
    verdicts, metrics = compare(section, metric), _distinct_metrics(section)
    how = _significance(verdicts.comparisons)
    note = f"% ± 95 % interval. Bold: best; †: {LEVEL}; ?: cannot tell; no mark: significantly worse ({how})."
    made = []
    for dataset in section.datasets:
        settings, rows = section.scored(dataset), []
        for label in section.labels if settings else ():
            entries = [section.entry(dataset, label, setting) for setting in settings]
            cells = [TableCell(text, is_head=True) for text in (written(label), seeds_text(entries, metric))]
            for entry in entries:
                found = entry[metric] if entry else None
                if entry is None or found is None:
                    cells.append(TableCell("–", notes=(entry.status,) if entry else ()))
                    continue
                notes = [f"{METRICS[other]} {entry[other]}" for other in metrics[1:]]
                if len(entry.done) < len(entry.records):
                    notes.append(f"{len(entry.done)} of {len(entry.records)} seeds")
                beside, paper = "", results.published(entry, "accuracy" if metric == "accuracy" else "f1")
                if paper is not None:
                    ahead, f1 = signed(100 * found.mean - paper), results.published(entry, "f1")
                    beside = f" (reported {paper:.1f}, {ahead})"
                    notes.append(f"reported {paper:.1f}{'' if f1 is None else f' / {f1:.1f}'} ({ahead})")
                cells.append(TableCell(str(found), verdicts.mark(entry), False, beside, tuple(notes)))
            rows.append(tuple(cells))
        missing = [setting for setting in section.settings if setting not in settings]
        reasons = sorted({e.reason for s in missing for e in section.of(dataset, setting=s)} - {""})
        absent = f"No {', '.join(missing)}{': ' if reasons else ''}{'; '.join(reasons)}." if missing else ""
        caption = f"{section.part.title}: {dataset}, {METRICS[metric]}"
        made.append(ReportTable(caption, ("method", "seeds", *settings), tuple(rows), note, absent))
    return made


def seeds_text(entries: Sequence[ResultRow | None], metric: str) -> str:
    """How many trainings stand behind a row, or from how many to how many."""
    counts = [len(entry.scores[metric]) for entry in entries if entry and entry.scores[metric].size]
    low, high = min(counts, default=0), max(counts, default=0)
    return f"{low} to {high}" if low < high else str(high) if high else "–"


def _ablated(section: Section) -> ReportTable:
    changes, comparisons = against_first(section)
    rows = []
    for label in section.labels:
        cells = [TableCell(written(label), is_head=True)]
        for dataset in section.datasets:
            entry = section.entry(dataset, label)
            found, change = (entry["accuracy"], changes.get(entry)) if entry else (None, None)
            text = str(found) if found else "–"
            cells.append(TableCell(text + (f" ({_change_text(*change)})" if change else "")))
        rows.append(tuple(cells))
    note = f"{', '.join(section.settings)}: accuracy, % ± 95 % interval, and the difference to the first row; "
    note += f"*: significant; †: {LEVEL}; ?: cannot tell ({_significance(comparisons)})."
    return ReportTable(section.part.title, ("variant", *section.datasets), tuple(rows), note)


def _change_text(change: Interval, outcome: str) -> str:
    mark = {"different": "*", "equal": "†", "unsure": " ?"}[outcome]
    return f"{signed(100 * change.mean)} ± {100 * change.ci95:.1f}{mark}"


def signed(value: float) -> str:
    """To one decimal, with a real minus; what rounds to nothing has no sign."""
    return f"{round(value, 1) + 0.0:+.1f}".replace("-", "−") if round(value, 1) else "0.0"


# --- the page -----------------------------------------------------------------------------------------------------


def write_report(results: Results, path: Path) -> None:
    """Tables, curves and the case study, from a results directory alone."""
    records = results.records
    done = [record for record in records if record.status == "done"]
    counts = {"done": len(done)} | {s: sum(r.status == s for r in records) for s in ("failed", "impossible")}
    counts["not run yet"] = sum(r is None for s in results.sections for e in s.entries for r in e.records)
    hours = sum(sum(r.seconds.values()) for r in done if not r.provenance.get("shared_training")) / 3600
    troubles: dict[str, list[str]] = {}  # cells with the same reason together
    for record in records:
        if record.status != "done":
            troubles.setdefault(f"{record.status}: {record.reason}", []).append(record.name)
    versions = {f"{name} {version}" for r in done for name, version in r.provenance.get("versions", {}).items()}
    write_page(
        path,
        "grid.html",
        title=results.title,
        facts=[*(f"{count:,} {what}" for what, count in counts.items() if count), f"{hours:.1f} hours of computing"],
        sections=[_section(results, section) for section in results.sections],
        troubles=troubles,
        damaged=results.damaged,
        sources=sorted({number.source for number in results.reported}),
        versions=sorted(versions),
    )


def _section(results: Results, section: Section) -> dict[str, Any]:
    """What the page shows of a part."""
    from fewnode.experiment import figures as draw

    kind = section.part.kind
    shown: dict[str, Any] = {"title": section.part.title, "kind": kind, "tables": []}
    if kind == "compare":
        shown["tables"] = _compared(results, section, "accuracy")
        costs = [(dataset, draw.accuracy_against_seconds(section.of(dataset))) for dataset in section.datasets]
        return {**shown, "figures": _drawn(costs)}
    if kind == "ablation":
        return {**shown, "tables": [_ablated(section)], "figures": []}
    if kind == "sweep":
        return {**shown, "figures": _drawn((d, draw.sweep_curve(section, d)) for d in section.datasets)}
    figures = []
    for dataset in section.datasets:
        cases = {written(e.label): e.done[0].case for e in section.of(dataset) if e.done and e.done[0].case}
        try:
            for what, figure in (("similarity", draw.similarity_matrix), ("embedding", draw.embedding_map)):
                figures += [(f"{dataset}, {label}: {what}", figure(case)) for label, case in cases.items() if case]
            weighed = [(label, case) for label, case in cases.items() if case and case["beta"]]
            figures += [(f"{dataset}, {label}: β against degree", draw.beta_against_degree(c)) for label, c in weighed]
            sizes = [case["class_sizes"] for case in cases.values() if case][:1]
            figures += [(f"The long tail of {dataset}", draw.long_tail(found)) for found in sizes]
        except (KeyError, ValueError, TypeError, IndexError):
            raise FewnodeError(f"the case study of {dataset} is not what fewnode experiment writes") from None
    return {**shown, "figures": _drawn(figures)}


def _drawn(figures: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Figures with their captions; a network without numbers has none."""
    return [(written(caption), figure) for caption, figure in figures if figure is not None]


def write_page(path: Path, template: str, **values: Any) -> None:
    """Fill a template of this package: no outside host, light and dark, every value escaped. Figures become SVG."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    from fewnode.experiment.figures import svg

    loader = PackageLoader("fewnode", "experiment")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.filters["svg"] = lambda figure: Markup(svg(figure))  # noqa: S704 # nosec B704
    write_text(path, environment.get_template(template).render(**values))


# --- the other forms ----------------------------------------------------------------------------------------------


def render(results: Results, form: str) -> str:
    """The tables alone: `csv`, `latex` or `markdown`."""
    if form == "csv":
        return csv_text(_with_marks(results))
    write = to_latex if form == "latex" else to_markdown
    return "\n".join(write(found) for found in tables(results))


def _with_marks(results: Results) -> list[list[str]]:
    """The table of the results directory, with the marks of the comparisons and the published numbers."""
    header, *rows = table(results)
    marked = [[*header, "mark", "reported_accuracy", "reported_f1"]]
    kinds = [(section, section.part.kind) for section in results.sections]
    marks = {e: mark for s, kind in kinds if kind == "compare" for e, mark in compare(s).marks.items()}
    entries = [entry for section, kind in kinds if kind != "case" for entry in section.entries]
    for row, entry in zip(rows, entries, strict=True):
        paper = [results.published(entry, metric) for metric in ("accuracy", "f1")]
        marked.append([*row, marks.get(entry, ""), *("" if value is None else f"{value:.1f}" for value in paper)])
    return marked


def to_markdown(found: ReportTable) -> str:
    lines = [f"**{in_markdown(found.caption)}**", "", _piped([in_markdown(h) for h in found.header])]
    lines.append("|---|" + "---:|" * (len(found.header) - 1))
    style = {"best": "**{}**", "level": "{}†", "unsure": "{} ?", "worse": "{}", "": "{}"}
    lines += [
        _piped([style[cell.mark].format(in_markdown(cell.text + cell.beside)) for cell in row]) for row in found.rows
    ]
    return "\n".join([*lines, "", in_markdown(found.note), ""])


def _piped(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def to_latex(found: ReportTable) -> str:
    """A table for the package booktabs."""
    style = {"best": "\\textbf{{{}}}", "level": "{}$^\\dagger$", "unsure": "{}$^?$", "worse": "{}", "": "{}"}
    rows = [" & ".join(style[c.mark].format(in_latex(c.text + c.beside)) for c in row) + " \\\\" for row in found.rows]
    return f"""\\begin{{table}}
\\centering
\\caption{{{in_latex(found.caption)}. {in_latex(found.note)}}}
\\begin{{tabular}}{{l{"r" * (len(found.header) - 1)}}}
\\toprule
{" & ".join(in_latex(name) for name in found.header)} \\\\
\\midrule
{chr(10).join(rows)}
\\bottomrule
\\end{{tabular}}
\\end{{table}}
"""


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
