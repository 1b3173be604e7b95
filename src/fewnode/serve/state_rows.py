"""The state of the service as rows of tables, and rows checked as if they came in a request."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any, TypeAlias

import orjson
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from fewnode.serve.bodies import (
    ATTACHED_IN_ALL,
    CLASSES,
    EDGES_IN_ALL,
    SHOTS,
    VERDICTS_IN_ALL,
    ClassName,
    NodeContent,
    NodeName,
    Sentence,
    Who,
)
from fewnode.serve.state import ABSENT, Content, Edge, Question, Row, State, Tie, Verdict

TABLES = {
    "about": "CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "classes": "CREATE TABLE classes (name TEXT PRIMARY KEY, support TEXT NOT NULL)",
    "nodes": "CREATE TABLE nodes (name TEXT PRIMARY KEY, content TEXT NOT NULL)",
    "removed": "CREATE TABLE removed (name TEXT PRIMARY KEY)",
    "edges": "CREATE TABLE edges (source TEXT, target TEXT, present INTEGER NOT NULL, PRIMARY KEY (source, target))",
    "descriptions": "CREATE TABLE descriptions (name TEXT PRIMARY KEY, text TEXT NOT NULL)",
    "ties": "CREATE TABLE ties (source TEXT, target TEXT, kind TEXT, amount REAL NOT NULL, "
    "PRIMARY KEY (source, target, kind))",
    "verdicts": "CREATE TABLE verdicts (class TEXT, node TEXT, yes INTEGER NOT NULL, checked INTEGER NOT NULL, "
    "who TEXT, time TEXT NOT NULL, PRIMARY KEY (class, node))",
    "labels": "CREATE TABLE labels (node TEXT PRIMARY KEY, class TEXT)",
    "arrivals": "CREATE TABLE arrivals (node TEXT PRIMARY KEY, time TEXT NOT NULL)",
    "journal": "CREATE TABLE journal (number INTEGER PRIMARY KEY, time TEXT NOT NULL, who TEXT, change TEXT NOT NULL, "
    "before TEXT NOT NULL, state TEXT NOT NULL, chain TEXT NOT NULL)",
}
PUT = {
    "classes": "INSERT INTO classes VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET support = excluded.support",
    "nodes": "INSERT INTO nodes VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET content = excluded.content",
    "removed": "INSERT INTO removed VALUES (?)",
    "edges": "INSERT INTO edges VALUES (?, ?, ?) ON CONFLICT (source, target) DO UPDATE SET present = excluded.present",
    "descriptions": "INSERT INTO descriptions VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET text = excluded.text",
    "ties": "INSERT INTO ties VALUES (?, ?, ?, ?) ON CONFLICT (source, target, kind) DO UPDATE "
    "SET amount = excluded.amount",
    "verdicts": "INSERT INTO verdicts VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (class, node) DO UPDATE "
    "SET yes = excluded.yes, checked = excluded.checked, who = excluded.who, time = excluded.time",
    "labels": "INSERT INTO labels VALUES (?, ?) ON CONFLICT (node) DO UPDATE SET class = excluded.class",
    "arrivals": "INSERT INTO arrivals VALUES (?, ?) ON CONFLICT (node) DO UPDATE SET time = excluded.time",
}
"""A row that was there keeps its place: nodes and classes come back in the order in which they came."""
DELETE = {
    "classes": "DELETE FROM classes WHERE name = ?",
    "nodes": "DELETE FROM nodes WHERE name = ?",
    "removed": "DELETE FROM removed WHERE name = ?",
    "edges": "DELETE FROM edges WHERE source = ? AND target = ?",
    "descriptions": "DELETE FROM descriptions WHERE name = ?",
    "ties": "DELETE FROM ties WHERE source = ? AND target = ? AND kind = ?",
    "verdicts": "DELETE FROM verdicts WHERE class = ? AND node = ?",
    "labels": "DELETE FROM labels WHERE node = ?",
    "arrivals": "DELETE FROM arrivals WHERE node = ?",
}
MOST = {
    "classes": CLASSES,
    "nodes": ATTACHED_IN_ALL,
    "removed": ATTACHED_IN_ALL,
    "edges": EDGES_IN_ALL,
    "descriptions": CLASSES,
    "ties": EDGES_IN_ALL,
    "verdicts": VERDICTS_IN_ALL,
    "labels": ATTACHED_IN_ALL,
    "arrivals": ATTACHED_IN_ALL,
}
"""Rows that the tables of the state may have."""
Line: TypeAlias = tuple[str, tuple[str, ...], tuple[Any, ...]]
"""A table, the key of a row in it, and the rest of that row."""


def line_of(table: str, key: Any, value: Any) -> Line:
    if table == "edges":
        return table, key, (int(value),)
    if table == "ties":
        return table, key, (value,)
    if table == "verdicts":
        return table, key, (int(value.yes), int(value.check), value.who, value.when)
    if table in ("descriptions", "labels", "arrivals"):
        return table, (key,), (value,)
    return table, (key,), () if table == "removed" else (as_json(value),)


def difference(old: State, new: State) -> tuple[list[Line], list[Line]]:
    """The lines of the old state that are no longer, and those of the new one that were not before."""
    gone: list[Line] = []
    come: list[Line] = []
    keys = new.differs(old)
    tables = {table: (old.lines(table), new.lines(table)) for table in {table for table, _ in keys}}
    for table, key in keys:
        before, after = (each.get(key, ABSENT) for each in tables[table])
        if before == after:
            continue
        if before is not ABSENT:
            gone.append(line_of(table, key, before))
        if after is not ABSENT:
            come.append(line_of(table, key, after))
    return gone, come


def out_of_place(old: State, new: State) -> list[Line]:
    """The lines of classes that must be written again, so that the table has all in the order of the new state.

    A class that is new to the table comes last in it, and one that was there keeps its place.
    """
    kept = [name for name in old.classes if name in new.classes]
    written, wanted = [*kept, *(name for name in new.classes if name not in old.classes)], list(new.classes)
    same = next((i for i, pair in enumerate(zip(written, wanted, strict=True)) if pair[0] != pair[1]), len(wanted))
    return [line_of("classes", name, new.classes[name]) for name in wanted[same:]]


def before(old: State, gone: list[Line], come: list[Line]) -> str:
    """The rows that a change touches as they were, which is what undoing it needs: null where there was none.

    A class has its place among the classes as well: people see them in that order.
    """
    was: dict[tuple[str, tuple[str, ...]], Any] = {(table, key): values for table, key, values in gone}
    order = dict.fromkeys([*was, *((table, key) for table, key, _ in come)])
    place = {name: i for i, name in enumerate(old.classes)}
    places = ([place[key[0]]] if table == "classes" and key[0] in place else [] for table, key in order)
    return as_json([[*row, was.get(row), *where] for row, where in zip(order, places, strict=True)])


def rows_of(text: str) -> list[Row]:
    """What `before` wrote, as rows of a state."""
    found: list[Row] = []
    for table, key, values, *place in orjson.loads(text):
        if values is None:
            found.append(Row(table, tuple(key) if len(key) > 1 else key[0], ABSENT))
        else:
            found.append(Row(table, *CHECKED[table](*key, *values), *place))
    return found


_STRICT = ConfigDict(strict=True)
_CLASS: TypeAdapter[str] = TypeAdapter(ClassName, config=_STRICT)
_NODE: TypeAdapter[str] = TypeAdapter(NodeName, config=_STRICT)
_SHOTS: TypeAdapter[list[str]] = TypeAdapter(Annotated[list[NodeName], Field(max_length=SHOTS)], config=_STRICT)
_SENTENCE: TypeAdapter[str] = TypeAdapter(Sentence, config=_STRICT)
_WHO: TypeAdapter[str | None] = TypeAdapter(Who | None, config=_STRICT)


def _class(name: Any, support: Any) -> tuple[str, tuple[str, ...]]:
    return _CLASS.validate_python(name), tuple(_SHOTS.validate_json(support))


def _node(name: Any, content: Any) -> tuple[str, Content]:
    found = NodeContent.model_validate_json(content).content
    if found is None:
        raise ValueError("neither a row nor attributes")
    return _NODE.validate_python(name), found


def _removed(name: Any) -> tuple[str, None]:
    return _NODE.validate_python(name), None


def _edge(source: Any, target: Any, present: Any) -> tuple[Edge, bool]:
    return (_NODE.validate_python(source), _NODE.validate_python(target)), _flag(present)


def _tie(source: Any, target: Any, kind: Any, amount: Any) -> tuple[Tie, float]:
    if type(amount) is not float or not 0 <= amount < math.inf:
        raise ValueError("no amount of an edge")
    return (_NODE.validate_python(source), _NODE.validate_python(target), _NODE.validate_python(kind)), amount


def _description(name: Any, text: Any) -> tuple[str, str]:
    return _CLASS.validate_python(name), _SENTENCE.validate_python(text)


def _flag(value: Any) -> bool:
    if type(value) is not int or value not in (0, 1):
        raise ValueError("neither yes nor no")
    return bool(value)


def moment(text: Any) -> str:
    """A time as we write it: of the day and the zone, to the millisecond."""
    if not isinstance(text, str) or as_moment(datetime.fromisoformat(text)) != text:
        raise ValueError("no time")
    return text


def as_moment(when: datetime) -> str:
    return when.astimezone(UTC).isoformat(timespec="milliseconds")


def _verdict(name: Any, node: Any, yes: Any, checked: Any, who: Any, when: Any) -> tuple[Question, Verdict]:
    key = _CLASS.validate_python(name), _NODE.validate_python(node)
    return key, Verdict(_flag(yes), _flag(checked), _WHO.validate_python(who), moment(when))


def _label(node: Any, name: Any) -> tuple[str, str | None]:
    return _NODE.validate_python(node), None if name is None else _CLASS.validate_python(name)


def _arrival(node: Any, when: Any) -> tuple[str, str]:
    return _NODE.validate_python(node), moment(when)


CHECKED: dict[str, Callable[..., tuple[Any, Any]]] = {
    "classes": _class,
    "nodes": _node,
    "removed": _removed,
    "edges": _edge,
    "descriptions": _description,
    "ties": _tie,
    "verdicts": _verdict,
    "labels": _label,
    "arrivals": _arrival,
}


def first_line(error: ValueError) -> str:
    return str(error.errors()[0]["msg"] if isinstance(error, ValidationError) else error)


def as_json(value: Any) -> str:
    return orjson.dumps(value).decode()


def hashed(line: Line) -> int:
    return int.from_bytes(hashlib.sha256(orjson.dumps(line)).digest(), "big")


def chained(before: str, entry: tuple[Any, ...]) -> str:
    return hashlib.sha256(orjson.dumps([before, *entry], default=repr)).hexdigest()
