"""A list that somebody pasted or uploaded: nodes, or nodes and classes. It changes nothing."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import islice
from typing import Any

from fewnode._system.sheets import bare
from fewnode.errors import FewnodeError
from fewnode.naming import plain
from fewnode.service.bodies import MAX_NODES
from fewnode.service.network import Network

COLUMNS = 1_000
SEPARATORS = "\t;,|"
NODE, CLASS, ANSWER = ("node", "id", "name"), ("class", "label"), "answer"
"""What a header may call the two columns; and the third of `support.csv`, of which a *no* is no example."""


def read_list(network: Network, text: str) -> dict[str, Any]:
    """The nodes of the list that are there, with their classes; lines that name no node of the network."""
    rows = list(_rows(text))
    if len(rows) > MAX_NODES + 1:
        raise FewnodeError(f"line {rows[MAX_NODES + 1][0]}: more than {MAX_NODES:,} nodes; give them in several lists")
    if wide := next((line for line, cells in rows if len(cells) > COLUMNS), None):
        raise FewnodeError(
            f"line {wide} has more than {COLUMNS} columns; a list has a node and, if you like, its class"
        )
    names = [cell.strip() for cell in rows[0][1]] if rows else []
    header = [name.lower() for name in names]
    if not header or header[0] not in NODE or network.has(names[0]):
        names, header = [], []
    place = next((i for i, cell in enumerate(header) if cell in CLASS), 1)
    verdict = header.index(ANSWER) if ANSWER in header else None
    found: dict[tuple[str, str | None], None] = {}
    unknown, repeated, said_no = [], 0, 0
    for line, cells in rows[bool(header) :]:
        name = network.form(bare(cells[0].strip()))
        label = bare(cells[place].strip()) if place < len(cells) else ""
        if not network.has(name) or not _is_class(label):
            unknown.append({"line": line, "text": ",".join(cells)[:200]})
        elif verdict is not None and verdict < len(cells) and cells[verdict].strip().lower() == "no":
            said_no += 1
        else:
            repeated += (name, label or None) in found
            found[name, label or None] = None
    widest = max((len(cells) for _, cells in rows), default=0)
    unused = [names[i] if i < len(names) else f"column {i + 1}" for i in range(1, widest) if i not in (place, verdict)]
    nodes = [{"node": node, "class": label} for node, label in found]
    return {"nodes": nodes, "unknown": unknown, "repeated": repeated, "said_no": said_no, "unused_columns": unused}


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """The lines that hold something, with their numbers. The separator is the one that the first line has.

    No more of them than tell that there are too many.
    """
    lines = text.removeprefix("\ufeff").splitlines()
    first = next((line for line in lines if line.strip()), "")
    separator = max(SEPARATORS, key=first.count) if any(map(first.count, SEPARATORS)) else ","
    written = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    for number, line in islice(written, MAX_NODES + 2):
        try:
            cells = next(csv.reader([line], delimiter=separator))
        except csv.Error:
            cells = [line]
        yield number, cells


def _is_class(label: str) -> bool:
    try:
        return not label or (plain(label) == label and len(label) <= 200)
    except ValueError:
        return False
