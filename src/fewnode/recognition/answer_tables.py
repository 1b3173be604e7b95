"""Answers as tables: CSV, JSON, pandas, HTML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fewnode._system.sheets import csv_text
from fewnode.display import SHOWN, table_html

if TYPE_CHECKING:
    from fewnode.recognition.answers import Answers

DIGITS = 6
"""Of a probability that is shown."""
COLUMNS = ("node", "label", "probability", "member", "nearest", "words", "because")
"""What a table of predictions has beside a column a class."""


def class_columns(classes: Sequence[str]) -> list[str]:
    """A column name for each class, none of them equal to another or to one of `COLUMNS`.

    A class called like one of those is p(NAME); and so is one called p(…), or it could be taken for that.

    >>> class_columns(["mail", "node", "p(node)"])
    ['mail', 'p(node)', 'p(p(node))']
    """
    return [f"p({c})" if c in COLUMNS or (c.startswith("p(") and c.endswith(")")) else c for c in classes]


def columns(found: Answers) -> dict[str, Any]:
    """The columns of the table: `node`, `label`, `probability`, one a class, `member` and, if explained, why."""
    named: dict[str, Any] = {"node": found.nodes, "label": found.labels, "probability": found.probability}
    named |= dict(zip(class_columns(found.classes), found.probabilities.T, strict=True))
    named["member"] = np.full(len(found.nodes), np.nan) if found.member is None else found.member
    named |= {"nearest": found.nearest} if found.why else {}
    return named | _texts(found)


def csv(found: Answers) -> str:
    named = columns(found)
    cells = [_cells(column) for column in named.values()]
    return csv_text([list(named), *map(list, zip(*cells, strict=True))])


def _cells(column: Any) -> list[str]:
    """A column as text: numbers with their digits, empty where one is not known."""
    if isinstance(column, np.ndarray):
        return ["" if value != value else _shown(value) for value in column.tolist()]
    return [" ".join(value) if isinstance(value, list) else value for value in column]


def arrow(found: Answers) -> Any:
    import pyarrow  # half a second to import

    return pyarrow.table(columns(found))


def support_csv(found: Answers) -> str:
    beta = found.why.beta.tolist() if found.why else []
    rows = [[node, label, f"{b:.6f}"] for (node, label), b in zip(found.support, beta, strict=False)]
    return csv_text([["node", "class", "beta"], *rows])


def support_text(found: Answers) -> str:
    beta = found.why.beta.tolist() if found.why else []
    rows = sorted(zip(found.support, beta, strict=False), key=lambda row: (row[0][1], -row[1]))
    width = max([len(node) for (node, _), _ in rows], default=0)
    return "\n".join(f"  {node.ljust(width)}  β = {weight:.3f}  {label}" for (node, label), weight in rows)


def _texts(found: Answers) -> dict[str, list[str]]:
    """Columns of reasons in words, those that there are."""
    texts = {"words": found.words, "because": found.because}
    return {name: text for name, text in texts.items() if text is not None}


def html(found: Answers) -> str:
    """The nodes that are surest to be in a class."""
    sure = found.probabilities.max(axis=1) if found.member is None else found.member
    first = np.argsort(-sure, kind="stable")[:SHOWN]
    member = sure[first] if found.member is not None else [None] * len(first)
    rows = [
        [found.nodes[i], found.labels[i], _short(found.probability[i]), "" if m is None else _short(m)]
        for i, m in zip(first, member, strict=True)
    ]
    title = ", ".join(f"{name} {count}" for name, count in found.facts().items())
    return table_html(title, COLUMNS[:4], rows, len(found.nodes))


def as_object(found: Answers) -> dict[str, Any]:
    member = [None] * len(found.nodes) if found.member is None else found.member.tolist()
    rows: list[dict[str, Any]] = [
        {
            "node": node,
            "label": label,
            "probability": p,
            "probabilities": dict(zip(found.classes, row, strict=True)),
            "member": m,
        }
        for node, label, p, row, m in zip(
            found.nodes, found.labels, found.probability.tolist(), found.probabilities.tolist(), member, strict=True
        )
    ]
    for cells, names in zip(rows, found.nearest, strict=False):
        cells["nearest"] = names
    for name, texts in _texts(found).items():
        for cells, text in zip(rows, texts, strict=True):
            cells[name] = text
    for cells, own in zip(rows if found.multi_label else (), found.probabilities >= found.threshold, strict=False):
        cells["labels"] = [name for name, there in zip(found.classes, own, strict=True) if there]
    beta = found.why.beta.tolist() if found.why else [None] * len(found.support)
    support = [
        {"node": node, "class": label, **({} if weight is None else {"beta": weight})}
        for (node, label), weight in zip(found.support, beta, strict=True)
    ]
    mode: dict[str, Any] = {"why": found.reason} if found.closed_set else {"threshold": found.threshold}
    mode |= {"multi_label": True} if found.multi_label else {}
    ranks = {name: rank for name, rank in found.left_out.items() if rank == rank}
    mode |= {"left_out": ranks} if ranks else {}
    told = {"classes": found.classes, "closed_set": found.closed_set, **mode}
    return {**told, "support": support, "predictions": rows}


def _shown(probability: float) -> str:
    return f"{probability:.{DIGITS}f}"


def _short(probability: float) -> str:
    return f"{probability:.3f}"
