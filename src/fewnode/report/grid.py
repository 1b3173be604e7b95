"""The page of a grid: tables, curves and the case study, from a results directory alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib import rc_context
from matplotlib.figure import Figure

from fewnode.errors import FewnodeError
from fewnode.experiment.ledger import Record
from fewnode.experiment.results import ResultRow, Results, Section, Verdicts, against_first, compare
from fewnode.report import names, plots
from fewnode.report.page import STYLE, write_page
from fewnode.report.tables import LEVEL, change_text, distinct_metrics, signed, significance
from fewnode.scoring.interval import Interval


def write_report(results: Results, path: Path) -> None:
    with rc_context(STYLE):
        sections = [_SECTIONS[section.kind](results, section) for section in results.sections]
    write_page(
        path,
        "grid.html",
        title=results.title,
        facts=_facts(results),
        sections=sections,
        troubles=_troubles(results),
        damaged=results.damaged,
    )


def _facts(results: Results) -> dict[str, Any]:
    records = results.records
    done = [record for record in records if record.status == "done"]
    spent = sum(
        seconds
        for record in done
        for what, seconds in record.seconds.items()
        if what != "fit" or not record.provenance.get("shared_training")
    )
    scored = [record for record in done if record.per_task]
    missing = sum(record is None for s in results.sections for e in s.entries for record in e.records)
    return {
        "done": len(done),
        "failed": sum(record.status == "failed" for record in records),
        "impossible": sum(record.status == "impossible" for record in records),
        "missing": missing,
        "hours": _duration(spent),
        "networks": len({record.cell["dataset"] for record in records}),
        "methods": len({entry.label for s in results.sections if s.kind == "compare" for entry in s.entries}),
        "tasks": _span([len(record.per_task["accuracy"]) for record in scored]),
        "seeds": _span([len(e.done) for s in results.sections if s.kind == "compare" for e in s.entries if e.done]),
        "versions": _versions(done),
        "sources": sorted({str(number["source"]) for number in results.reported}),
    }


def _span(counts: list[int]) -> str:
    low, high = min(counts, default=0), max(counts, default=0)
    return str(low) if low == high else f"{low} to {high}"


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _versions(done: list[Record]) -> list[str]:
    found = {f"{name} {version}" for r in done for name, version in r.provenance.get("versions", {}).items()}
    return sorted(found)


def _troubles(results: Results) -> list[dict[str, Any]]:
    """What has no number, and why; cells with the same reason together."""
    found: dict[tuple[str, str], list[str]] = {}
    for record in results.records:
        if record.status != "done":
            found.setdefault((record.status, record.reason or ""), []).append(record.name)
    return [{"status": status, "reason": reason, "cells": cells} for (status, reason), cells in found.items()]


# --- a section each -----------------------------------------------------------------------------------------------


def _compared(results: Results, section: Section) -> dict[str, Any]:
    verdicts = compare(section)
    tables = []
    for dataset in section.datasets:
        settings = section.scored(dataset, "accuracy")
        rows: list[dict[str, Any]] = [
            {
                "label": names.written(label),
                "cells": [_number(results, section, verdicts, dataset, label, setting) for setting in settings],
            }
            for label in section.labels
        ]
        absent = [s for s in section.settings if s not in settings]
        reasons = {e.reason for s in absent for e in section.of(dataset, setting=s)} - {""}
        tables.append(
            {
                "dataset": dataset,
                "settings": settings,
                "rows": rows,
                "absent": absent,
                "reasons": sorted(reasons),
                "reported": any(cell and cell["paper"] for row in rows for cell in row["cells"]),
            }
        )
    overview = _overview(section)
    cost = [(dataset, plots.accuracy_against_seconds(section.of(dataset))) for dataset in section.datasets]
    return {
        "kind": "compare",
        "title": section.title,
        "tables": tables,
        "overview": overview,
        "level": LEVEL,
        "test": significance(verdicts.comparisons),
        "one_f1": len(distinct_metrics(section)) == 2,
        "cost": _drawn(cost),
    }


def _overview(section: Section) -> dict[str, Any]:
    """Each method on each network, averaged over the settings that all methods have, and its mean rank."""
    columns = [(d, s) for d in section.datasets for s in section.settings]
    scores = {
        (label, column): float(entry.scores["accuracy"].mean())
        for label in section.labels
        for column in columns
        for entry in section.of(column[0], label, column[1])
        if entry.scores["accuracy"].size
    }
    full = [column for column in columns if all((label, column) in scores for label in section.labels)]
    ranks: dict[str, list[int]] = {label: [] for label in section.labels}
    for column in full:
        for label in section.labels:
            ranks[label].append(1 + sum(scores[other, column] > scores[label, column] for other in section.labels))
    datasets = [d for d in section.datasets if any(d == own for own, _ in full)]
    rows: list[dict[str, Any]] = [
        {
            "label": names.written(label),
            "cells": [100 * float(np.mean([scores[label, c] for c in full if c[0] == d])) for d in datasets],
            "rank": float(np.mean(ranks[label])) if full else 0.0,
        }
        for label in section.labels
    ]
    best = [max(row["cells"][i] for row in rows) for i in range(len(datasets))]
    return {"datasets": datasets, "rows": sorted(rows, key=lambda row: row["rank"]), "best": best, "columns": len(full)}


def _number(
    results: Results, section: Section, verdicts: Verdicts, dataset: str, label: str, setting: str
) -> dict[str, Any] | None:
    entry = section.entry(dataset, label, setting)
    if entry is None or entry["accuracy"] is None:
        return {"missing": entry.status, "paper": None} if entry is not None else None
    found = {metric: entry[metric] for metric in names.METRICS}
    return {
        **{metric: _parts(value) for metric, value in found.items()},
        "mark": verdicts.mark(entry),
        "share": round(100 * entry.scores["accuracy"].mean(), 1),
        "paper": _paper(results, entry),
        "partial": "" if len(entry.done) == len(entry.records) else f"{len(entry.done)} of {len(entry.records)} seeds",
        "missing": "",
    }


def _parts(value: Any) -> dict[str, str]:
    return {"mean": f"{100 * value.mean:.1f}", "ci95": f"{100 * value.ci95:.1f}"}


def _paper(results: Results, entry: ResultRow) -> dict[str, str] | None:
    reported, found = results.paper(entry, "accuracy"), entry["accuracy"]
    if reported is None or found is None:
        return None
    f1 = results.paper(entry, "f1")
    both = f"{reported:.1f}" + (f" / {f1:.1f}" if f1 is not None else "")
    return {"reported": both, "difference": signed(100 * found.mean - reported)}


def _swept(results: Results, section: Section) -> dict[str, Any]:
    curves = [(dataset, plots.sweep_curve(section, dataset)) for dataset in section.datasets]
    return {"kind": "sweep", "title": section.title, "along": section.along, "figures": _drawn(curves)}


def _ablated(results: Results, section: Section) -> dict[str, Any]:
    changes, comparisons = against_first(section)
    rows = []
    for label in section.labels:
        cells = []
        for dataset in section.datasets:
            entry = section.entry(dataset, label)
            found, change = entry["accuracy"] if entry else None, changes.get(id(entry))
            cells.append(
                {
                    "accuracy": _parts(found) if found else None,
                    "missing": entry.status if entry else "",
                    "change": change_text(*change) if change else "",
                    "sign": _sign(*change) if change else "",
                }
            )
        rows.append({"label": names.written(label), "cells": cells})
    return {
        "kind": "ablation",
        "title": section.title,
        "datasets": section.datasets,
        "rows": rows,
        "level": LEVEL,
        "test": significance(comparisons),
        "setting": ", ".join(section.settings),
    }


def _sign(change: Interval, outcome: str) -> str:
    return "" if outcome != "different" else "worse" if change.mean < 0 else "better"


def _looked(results: Results, section: Section) -> dict[str, Any]:
    studies = []
    for dataset in section.datasets:
        cases = {e.label: e.done[0].case for e in section.of(dataset) if e.done and e.done[0].case}
        if not cases:
            continue
        try:
            studies.append(_study(dataset, cases))
        except (KeyError, ValueError, TypeError, IndexError):
            raise FewnodeError(f"the case study of {dataset} is not what fewnode experiment writes") from None
    return {"kind": "case", "title": section.title, "studies": studies}


def _study(dataset: str, cases: dict[str, Any]) -> dict[str, Any]:
    first = next(iter(cases.values()))
    weighed = [(label, plots.beta_against_degree(case)) for label, case in cases.items() if case["beta"]]
    return {
        "dataset": dataset,
        "similarity": _drawn((label, plots.similarity_matrix(case)) for label, case in cases.items()),
        "maps": _drawn((label, plots.embedding_map(case)) for label, case in cases.items()),
        "beta": _drawn(weighed),
        "tail": _drawn([(dataset, plots.long_tail(first["class_sizes"]))])[0],
    }


_SECTIONS = {"compare": _compared, "sweep": _swept, "ablation": _ablated, "case": _looked}


def _drawn(figures: Any) -> list[dict[str, Any]]:
    """Figures with their captions as inline SVG; a network without numbers has none."""

    def each() -> Iterator[dict[str, Any]]:
        for label, figure in figures:
            if isinstance(figure, Figure):
                yield {"caption": names.written(label), "svg": Markup(plots.drawn(figure))}  # noqa: S704 # nosec B704

    return list(each())
