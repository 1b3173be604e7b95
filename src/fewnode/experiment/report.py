"""The report of a grid: one self-contained page, or its tables as LaTeX, Markdown or CSV. Every name is escaped."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fewnode._system.files import write_text
from fewnode._system.sheets import csv_text
from fewnode.errors import FewnodeError
from fewnode.experiment.results import MARGIN, Results, Section, against_best, against_first, difference
from fewnode.experiment.results import table as results_table
from fewnode.methods.table import written
from fewnode.scores import METRICS

METRIC_NAMES = dict(zip(METRICS, ("accuracy", "macro-F1", "weighted F1"), strict=True))
LEVEL = f"equally good: surely less than {100 * MARGIN:.0f} points apart"
"""What † says; ? says that the data cannot tell."""


@dataclass(frozen=True)
class TableCell:
    """What stands in a table, with a mark or none. `beside` is for tables alone, `notes` for the page."""

    text: str
    mark: str = ""
    is_head: bool = False
    beside: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReportTable:
    """A table of the report."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    note: str


def tables(results: Results) -> list[ReportTable]:
    """Every table of the report: of each comparison, one a network and metric; of each ablation, one."""
    made: list[ReportTable] = []
    for section in results.sections:
        if section.part.kind == "compare":
            made += [one for metric in _distinct_metrics(section) for one in _comparisons(results, section, metric)]
        if section.part.kind == "ablation":
            made.append(_ablation(section))
    return [one for one in made if one.rows]


def _distinct_metrics(section: Section) -> tuple[str, ...]:
    """With as many queries of every class, weighted F1 is macro-F1: then it is shown once."""
    same = all((e.scores["macro_f1"] == e.scores["weighted_f1"]).all() for e in section.entries)
    return METRICS[: 2 if same else 3]


def _significance(comparisons: int) -> str:
    """How the marks came about."""
    return (
        f"paired t-tests over the same tasks with seeds nested in methods, {comparisons} comparisons, "
        "Holm-corrected to 5 % for all of them together"
    )


def _comparisons(results: Results, section: Section, metric: str) -> list[ReportTable]:
    """A table for each network: methods in rows, settings in columns; settings without a number are named below."""
    marks, comparisons = against_best(section, metric)
    how = _significance(comparisons)
    note = f"% ± 95 % interval. Bold: best; †: {LEVEL}; ?: cannot tell; no mark: significantly worse ({how})."
    others, made = _distinct_metrics(section)[1:], []
    for dataset in section.datasets:
        scored = [s for s in section.settings if any(entry["accuracy"] for entry in section.of(dataset, setting=s))]
        rows = []
        for label in section.labels if scored else ():
            entries = {entry.row.setting: entry for entry in reversed(section.of(dataset, label))}
            cells = [TableCell(text, is_head=True) for text in (written(label), seeds_text(entries.values(), metric))]
            for entry in map(entries.get, scored):
                interval = entry[metric] if entry else None
                if entry is None or interval is None:
                    cells.append(TableCell("–", notes=(entry.status,) if entry else ()))
                    continue
                notes = [f"{METRIC_NAMES[other]} {entry[other]}" for other in others]
                if len(entry.done) < len(entry.records):
                    notes.append(f"{len(entry.done)} of {len(entry.records)} seeds")
                accuracy, f1 = results.published(entry)
                beside, paper = "", accuracy if metric == "accuracy" else f1
                if paper is not None:
                    ahead = signed(100 * interval.mean - paper)
                    beside = f" (reported {paper:.1f}, {ahead})"
                    notes.append(f"reported {paper:.1f}{'' if f1 is None else f' / {f1:.1f}'} ({ahead})")
                cells.append(TableCell(str(interval), marks.get(entry, ""), False, beside, tuple(notes)))
            rows.append(tuple(cells))
        caption = f"{section.part.title}: {dataset}, {METRIC_NAMES[metric]}"
        made.append(ReportTable(caption, ("method", "seeds", *scored), tuple(rows), note))
    return made


def seeds_text(entries: Any, metric: str) -> str:
    """How many trainings stand behind a row, or from how many to how many."""
    counts = [len(entry.scores[metric]) for entry in entries if entry[metric]]
    low, high = min(counts, default=0), max(counts, default=0)
    return f"{low} to {high}" if low < high else str(high) if high else "–"


def _ablation(section: Section) -> ReportTable:
    marks, comparisons = against_first(section)
    whole = {dataset: section.of(dataset)[0] for dataset in section.datasets}
    signs, rows = {"worse": "*", "level": "†", "unsure": " ?"}, []
    for label in section.labels:
        cells = [TableCell(written(label), is_head=True)]
        for dataset in section.datasets:
            entry = next(iter(section.of(dataset, label)), None)
            text = str(entry["accuracy"] or "–") if entry else "–"
            if entry and entry in marks:
                change = difference(entry.scores["accuracy"], whole[dataset].scores["accuracy"])
                text += f" ({signed(100 * change.mean)} ± {100 * change.ci95:.1f}{signs[marks[entry]]})"
            cells.append(TableCell(text))
        rows.append(tuple(cells))
    note = f"{', '.join(section.settings)}: accuracy, % ± 95 % interval, and the difference to the first row; "
    note += f"*: significant; †: {LEVEL}; ?: cannot tell ({_significance(comparisons)})."
    return ReportTable(section.part.title, ("variant", *section.datasets), tuple(rows), note)


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
    write_page(
        path,
        "grid.html",
        title=results.title,
        facts=[*(f"{count:,} {what}" for what, count in counts.items() if count), f"{hours:.1f} hours of computing"],
        sections=[_section(results, section) for section in results.sections],
        troubles=troubles,
        damaged=results.damaged,
        sources=sorted({numbers.source for numbers in results.reported}),
        versions=sorted({" ".join(v) for r in done for v in r.provenance.get("versions", {}).items()}),
    )


def _section(results: Results, section: Section) -> dict[str, Any]:
    """What the page shows of a part: its tables, and figures with their captions."""
    from fewnode.experiment import figures as draw

    kind, made, figures = section.part.kind, list[ReportTable](), list[tuple[str, Any]]()
    for dataset in section.datasets:
        if kind == "compare":
            figures.append((dataset, draw.accuracy_against_seconds(section.of(dataset))))
        elif kind == "sweep":
            figures.append((dataset, draw.sweep_curve(section, dataset)))
        elif kind == "case":
            cases = {written(e.label): e.done[0].case for e in section.of(dataset) if e.done and e.done[0].case}
            try:
                figures += draw.case_study(dataset, cases)
            except (KeyError, ValueError, TypeError, IndexError):
                raise FewnodeError(f"the case study of {dataset} is not what fewnode experiment writes") from None
    if kind == "compare":
        made = _comparisons(results, section, "accuracy")
    elif kind == "ablation":
        made = [_ablation(section)]
    drawn = [(caption, figure) for caption, figure in figures if figure is not None]  # without numbers there is none
    return {"title": section.part.title, "kind": kind, "tables": made, "figures": drawn}


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
    write = _latex if form == "latex" else _markdown
    return "\n".join(write(one) for one in tables(results))


def _with_marks(results: Results) -> list[list[str]]:
    """The table of the results directory, with the marks of the comparisons and the published numbers."""
    header, *rows = results_table(results)
    marked = [[*header, "mark", "reported_accuracy", "reported_f1"]]
    sections = [section for section in results.sections if section.part.kind != "case"]
    marks = {e: mark for s in sections if s.part.kind == "compare" for e, mark in against_best(s)[0].items()}
    for row, entry in zip(rows, (entry for section in sections for entry in section.entries), strict=True):
        published = ("" if value is None else f"{value:.1f}" for value in results.published(entry))
        marked.append([*row, marks.get(entry, ""), *published])
    return marked


def _markdown(one: ReportTable) -> str:
    style = {"best": "**{}**", "level": "{}†", "unsure": "{} ?", "worse": "{}", "": "{}"}
    lines = [[in_markdown(name) for name in one.header]]
    lines += [[style[cell.mark].format(in_markdown(cell.text + cell.beside)) for cell in row] for row in one.rows]
    head, *body = ("| " + " | ".join(line) + " |" for line in lines)
    rule = "|---|" + "---:|" * (len(one.header) - 1)
    return "\n".join([f"**{in_markdown(one.caption)}**", "", head, rule, *body, "", in_markdown(one.note), ""])


def _latex(one: ReportTable) -> str:
    """A table for the package booktabs."""
    style = {"best": "\\textbf{{{}}}", "level": "{}$^\\dagger$", "unsure": "{}$^?$", "worse": "{}", "": "{}"}
    rows = [" & ".join(style[c.mark].format(in_latex(c.text + c.beside)) for c in row) + " \\\\" for row in one.rows]
    return f"""\\begin{{table}}
\\centering
\\caption{{{in_latex(one.caption)}. {in_latex(one.note)}}}
\\begin{{tabular}}{{l{"r" * (len(one.header) - 1)}}}
\\toprule
{" & ".join(in_latex(name) for name in one.header)} \\\\
\\midrule
{chr(10).join(rows)}
\\bottomrule
\\end{{tabular}}
\\end{{table}}
"""


_IN_LATEX = str.maketrans(
    {
        **{c: f"\\{c}" for c in "&%$#_{}"},
        "\\": "\\textbackslash{}",
        "~": "\\textasciitilde{}",
        "^": "\\textasciicircum{}",
        '"': "''",
        "<": "\\textless{}",
        ">": "\\textgreater{}",
        "±": "$\\pm$",
        "−": "$-$",
        "†": "$^\\dagger$",
        "–": "--",
        "β": "$\\beta$",
    }
)


def in_latex(text: str) -> str:
    return " ".join(text.split()).translate(_IN_LATEX)


def in_markdown(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>|#~!&])", r"\\\1", " ".join(text.split()))
