"""The state of the service as rows of tables, and rows checked as if they came in a request."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from typing import Annotated, Any, TypeAlias

import orjson
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from fewnode.serve.bodies import (
    ATTACHED_IN_ALL,
    CLASSES,
    EDGES_IN_ALL,
    SHOTS,
    ClassName,
    NodeContent,
    NodeName,
    Sentence,
)
from fewnode.serve.state import Content, Edge, State, Tie

TABLES = {
    "about": "CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "classes": "CREATE TABLE classes (name TEXT PRIMARY KEY, support TEXT NOT NULL)",
    "nodes": "CREATE TABLE nodes (name TEXT PRIMARY KEY, content TEXT NOT NULL)",
    "removed": "CREATE TABLE removed (name TEXT PRIMARY KEY)",
    "edges": "CREATE TABLE edges (source TEXT, target TEXT, present INTEGER NOT NULL, PRIMARY KEY (source, target))",
    "descriptions": "CREATE TABLE descriptions (name TEXT PRIMARY KEY, text TEXT NOT NULL)",
    "ties": "CREATE TABLE ties (source TEXT, target TEXT, kind TEXT, amount REAL NOT NULL, "
    "PRIMARY KEY (source, target, kind))",
    "journal": "CREATE TABLE journal (number INTEGER PRIMARY KEY, time TEXT NOT NULL, change TEXT NOT NULL, "
    "state TEXT NOT NULL, chain TEXT NOT NULL)",
}
PUT = {
    "classes": "INSERT INTO classes VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET support = excluded.support",
    "nodes": "INSERT INTO nodes VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET content = excluded.content",
    "removed": "INSERT INTO removed VALUES (?)",
    "edges": "INSERT INTO edges VALUES (?, ?, ?) ON CONFLICT (source, target) DO UPDATE SET present = excluded.present",
    "descriptions": "INSERT INTO descriptions VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET text = excluded.text",
    "ties": "INSERT INTO ties VALUES (?, ?, ?, ?) ON CONFLICT (source, target, kind) DO UPDATE "
    "SET amount = excluded.amount",
}
"""A row that was there keeps its place: nodes and classes come back in the order in which they came."""
DELETE = {
    "classes": "DELETE FROM classes WHERE name = ?",
    "nodes": "DELETE FROM nodes WHERE name = ?",
    "removed": "DELETE FROM removed WHERE name = ?",
    "edges": "DELETE FROM edges WHERE source = ? AND target = ?",
    "descriptions": "DELETE FROM descriptions WHERE name = ?",
    "ties": "DELETE FROM ties WHERE source = ? AND target = ? AND kind = ?",
}
MOST = {
    "classes": CLASSES,
    "nodes": ATTACHED_IN_ALL,
    "removed": ATTACHED_IN_ALL,
    "edges": EDGES_IN_ALL,
    "descriptions": CLASSES,
    "ties": EDGES_IN_ALL,
}
"""Rows that the tables of the state may have."""
Line: TypeAlias = tuple[str, tuple[str, ...], tuple[Any, ...]]
"""A table, the key of a row in it, and the rest of that row."""


def line_of(table: str, key: Any, value: Any) -> Line:
    if table == "edges":
        return table, key, (int(value),)
    if table == "ties":
        return table, key, (value,)
    if table == "descriptions":
        return table, (key,), (value,)
    return table, (key,), () if table == "removed" else (as_json(value),)


def difference(old: State, new: State) -> tuple[list[Line], list[Line]]:
    """The lines of the old state that are no longer, and those of the new one that were not before."""
    gone: list[Line] = []
    come: list[Line] = []
    absent = object()
    keys = new.differs(old)
    tables = {table: (old.lines(table), new.lines(table)) for table in {table for table, _ in keys}}
    for table, key in keys:
        before, after = (each.get(key, absent) for each in tables[table])
        if before == after:
            continue
        if before is not absent:
            gone.append(line_of(table, key, before))
        if after is not absent:
            come.append(line_of(table, key, after))
    return gone, come


_STRICT = ConfigDict(strict=True)
_CLASS: TypeAdapter[str] = TypeAdapter(ClassName, config=_STRICT)
_NODE: TypeAdapter[str] = TypeAdapter(NodeName, config=_STRICT)
_SHOTS: TypeAdapter[list[str]] = TypeAdapter(Annotated[list[NodeName], Field(max_length=SHOTS)], config=_STRICT)
_SENTENCE: TypeAdapter[str] = TypeAdapter(Sentence, config=_STRICT)


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
    if type(present) is not int or present not in (0, 1):
        raise ValueError("neither present nor absent")
    return (_NODE.validate_python(source), _NODE.validate_python(target)), bool(present)


def _tie(source: Any, target: Any, kind: Any, amount: Any) -> tuple[Tie, float]:
    if type(amount) is not float or not 0 <= amount < math.inf:
        raise ValueError("no amount of an edge")
    return (_NODE.validate_python(source), _NODE.validate_python(target), _NODE.validate_python(kind)), amount


def _description(name: Any, text: Any) -> tuple[str, str]:
    return _CLASS.validate_python(name), _SENTENCE.validate_python(text)


CHECKED: dict[str, Callable[..., tuple[Any, Any]]] = {
    "classes": _class,
    "nodes": _node,
    "removed": _removed,
    "edges": _edge,
    "descriptions": _description,
    "ties": _tie,
}


def first_line(error: ValueError) -> str:
    return str(error.errors()[0]["msg"] if isinstance(error, ValidationError) else error)


def as_json(value: Any) -> str:
    return orjson.dumps(value).decode()


def hashed(line: Line) -> int:
    return int.from_bytes(hashlib.sha256(orjson.dumps(line)).digest(), "big")


def chained(before: str, entry: tuple[Any, ...]) -> str:
    return hashlib.sha256(orjson.dumps([before, *entry], default=repr)).hexdigest()
