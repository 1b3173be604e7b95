"""A list that somebody pasted or uploaded: nodes, or nodes and classes. It changes nothing."""

from __future__ import annotations

import csv
from itertools import islice
from typing import Any

from pydantic import TypeAdapter, ValidationError

from fewnode._system.sheets import SEPARATORS, bare
from fewnode.errors import FewnodeError
from fewnode.service.bodies import MAX_NODES, ClassName
from fewnode.service.network import Network

MAX_COLUMNS = 1_000
NODE, CLASS, ANSWER = ("node", "id", "name"), ("class", "label"), "answer"
"""What a header may call the two columns; and the third of `support.csv`, of which a *no* is no example."""
_CLASS: TypeAdapter[str] = TypeAdapter(ClassName)


def read_list(network: Network, text: str) -> dict[str, Any]:
    """The nodes of the list that are there, with their classes; lines that name no node of the network."""
    numbered = enumerate(text.removeprefix("\ufeff").splitlines(), 1)
    lines = list(islice(((number, line) for number, line in numbered if line.strip()), MAX_NODES + 2))
    if len(lines) > MAX_NODES + 1:
        raise FewnodeError(f"line {lines[MAX_NODES + 1][0]}: more than {MAX_NODES:,} nodes; give them in several lists")
    first = lines[0][1] if lines else ""
    separator = max(SEPARATORS, key=first.count)
    rows = [(number, _cells(line, separator)) for number, line in lines]
    if wide := next((number for number, cells in rows if len(cells) > MAX_COLUMNS), None):
        told = f"line {wide} has more than {MAX_COLUMNS} columns"
        raise FewnodeError(f"{told}; a list has a node and, if you like, its class")
    names = rows[0][1] if rows else []
    header = [name.lower() for name in names]
    if not header or header[0] not in NODE or network.has(names[0]):
        names, header = [], []
    place = next((i for i, name in enumerate(header) if name in CLASS), 1)
    verdict = header.index(ANSWER) if ANSWER in header else -1
    found: dict[tuple[str, str | None], None] = {}
    unknown, repeated, said_no = [], 0, 0
    for number, cells in rows[bool(header) :]:
        name = network.form(bare(cells[0]))
        label = bare(cells[place]) if place < len(cells) else ""
        if not network.has(name) or not _is_class(label):
            unknown.append({"line": number, "text": ",".join(cells)[:200]})
        elif 0 <= verdict < len(cells) and cells[verdict].lower() == "no":
            said_no += 1
        else:
            repeated += (name, label or None) in found
            found[name, label or None] = None
    widest = max((len(cells) for _, cells in rows), default=0)
    unused = [names[i] if i < len(names) else f"column {i + 1}" for i in range(1, widest) if i not in (place, verdict)]
    nodes = [{"node": node, "class": label} for node, label in found]
    return {"nodes": nodes, "unknown": unknown, "repeated": repeated, "said_no": said_no, "unused_columns": unused}


def _cells(line: str, separator: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=separator))]
    except csv.Error:
        return [line]


def _is_class(label: str) -> bool:
    try:
        return not label or _CLASS.validate_python(label) == label
    except ValidationError:
        return False
