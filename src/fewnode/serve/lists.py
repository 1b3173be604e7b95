"""A list that somebody pasted or uploaded: nodes, or nodes and classes. It changes nothing."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import islice
from typing import Any

from fewnode.errors import FewnodeError
from fewnode.machine.sheets import bare
from fewnode.naming import plain
from fewnode.serve.bodies import LISTED
from fewnode.serve.snapshot import Snapshot

COLUMNS = 1_000
SEPARATORS = "\t;,|"
NODE, CLASS, ANSWER = ("node", "id", "name"), ("class", "label"), "answer"
"""What a header may call the two columns; and the third of `support.csv`, of which a *no* is no example."""


def read_list(now: Snapshot, text: str) -> dict[str, Any]:
    """The nodes of the list that are there, with their classes; lines that name no node of the network."""
    rows = _refuse_large(list(_rows(text)))
    header = [cell.strip().lower() for cell in rows[0][1]] if rows else []
    has_header = bool(header) and header[0] in NODE and not _is_node(now, rows[0][1][0])
    place = next((i for i, cell in enumerate(header) if has_header and cell in CLASS), 1)
    nodes: list[dict[str, Any]] = []
    verdict = header.index(ANSWER) if has_header and ANSWER in header else None
    unknown, seen, repeated, said_no = [], set[tuple[str, str | None]](), 0, 0
    for line, cells in rows[has_header:]:
        name = bare(cells[0].strip())
        label = bare(cells[place].strip()) if place < len(cells) else ""
        if not _is_node(now, name) or not _is_class(label):
            unknown.append({"line": line, "text": ",".join(cells)[:200]})
            continue
        if verdict is not None and verdict < len(cells) and cells[verdict].strip().lower() == "no":
            said_no += 1
            continue
        found = (now.name(name), label or None)
        repeated += found in seen
        if found not in seen:
            nodes.append({"node": found[0], "class": found[1]})
        seen.add(found)
    widest = max((len(cells) for _, cells in rows), default=0)
    names = [cell.strip() for cell in rows[0][1]] if has_header else []
    unused = [names[i] if i < len(names) else f"column {i + 1}" for i in range(1, widest) if i not in (place, verdict)]
    told = {"unknown": unknown, "repeated": repeated, "said_no": said_no, "unused_columns": unused}
    return {"nodes": nodes, **told}


def _refuse_large(rows: list[tuple[int, list[str]]]) -> list[tuple[int, list[str]]]:
    if len(rows) > LISTED + 1:
        raise FewnodeError(f"line {rows[LISTED + 1][0]}: more than {LISTED:,} nodes; give them in several lists")
    if wide := next((line for line, cells in rows if len(cells) > COLUMNS), None):
        raise FewnodeError(
            f"line {wide} has more than {COLUMNS} columns; a list has a node and, if you like, its class"
        )
    return rows


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """The lines that hold something, with their numbers. The separator is the one that the first line has.

    No more of them than tell that there are too many.
    """
    lines = text.removeprefix("\ufeff").splitlines()
    first = next((line for line in lines if line.strip()), "")
    separator = max(SEPARATORS, key=first.count) if any(map(first.count, SEPARATORS)) else ","
    written = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    for number, line in islice(written, LISTED + 2):
        try:
            cells = next(csv.reader([line], delimiter=separator))
        except csv.Error:
            cells = [line]
        yield number, cells


def _is_node(now: Snapshot, name: str) -> bool:
    return now.has(now.base.form(name.strip()))


def _is_class(label: str) -> bool:
    try:
        return not label or (plain(label) == label and len(label) <= 200)
    except ValueError:
        return False
