"""What outlives the process: the registered classes, and the nodes that were attached.

The classes are one small file, written anew with every change: temp file, fsync, rename. Attached nodes are lines of a
second file, each with its checksum, appended and synced before the answer goes out; a line that a kill cut off was
never acknowledged and is dropped.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fewnode.errors import FewnodeError
from fewnode.io import readable, write_text

FORMAT = "fewnode-classes-1"
Classes = Mapping[str, tuple[str, ...]]
"""The names of the support nodes of each class."""


@dataclass(frozen=True, eq=False)
class State:
    """The registered classes, and how often they have changed."""

    classes: Classes
    changes: int = 0

    @cached_property
    def version(self) -> str:
        """Says which change this is and, by a digest, that the content is the same too."""
        return f"{self.changes}-{_digest(_text({name: list(nodes) for name, nodes in self.classes.items()}))[:8]}"

    @cached_property
    def support(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        return tuple(self.classes.items())

    def with_class(self, name: str, nodes: tuple[str, ...]) -> State:
        return State({**self.classes, name: nodes}, self.changes + 1)

    def without(self, name: str) -> State:
        return State({other: nodes for other, nodes in self.classes.items() if other != name}, self.changes + 1)


class Store:
    """The two files, held by this process alone."""

    def __init__(self, path: Path, data_sha256: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path, self.nodes_path, self.data = path, path.with_name(path.name + ".nodes"), data_sha256
        self.embedding_path = path.with_name(path.name + ".embedding")
        self._lock = path.with_name(path.name + ".lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            raise FewnodeError(f"{path}: another service keeps its classes in it; pass another --state") from None

    def read(self) -> State:
        if not self.path.exists():
            return State({})
        with readable(self.path) as file:
            text = file.read().decode(errors="replace")
        try:
            kept = json.loads(text)
            state = State(
                {str(name): tuple(map(str, nodes)) for name, nodes in kept["classes"].items()}, kept["changes"]
            )
            if kept["format"] != FORMAT or kept["version"] != state.version or any(map(_empty, state.classes.values())):
                raise ValueError
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise FewnodeError(f"{self.path}: not the classes of a service, or edited by hand") from None
        if kept["data"] != self.data:
            raise FewnodeError(f"{self.path}: these classes are of another dataset; pass another --state")
        return state

    def write(self, state: State) -> None:
        classes = {name: list(nodes) for name, nodes in state.classes.items()}
        kept = {"format": FORMAT, "version": state.version, "changes": state.changes, "data": self.data}
        write_text(self.path, json.dumps({**kept, "classes": classes}, ensure_ascii=False, indent=1) + "\n")

    def read_nodes(self) -> list[dict[str, Any]]:
        """The attached nodes in their order. A damaged last line is cut off; a damaged other line is an error."""
        if not self.nodes_path.exists():
            return []
        with readable(self.nodes_path) as file:
            lines = file.read().split(b"\n")
        found: list[dict[str, Any]] = []
        good = 0
        for number, line in enumerate(lines[:-1], 1):
            nodes = _checked(line)
            if nodes is None and number < len(lines) - 1:
                raise FewnodeError(f"{self.nodes_path}: line {number} is damaged")
            if nodes is not None:
                found, good = found + nodes, good + len(line) + 1
        if good < self.nodes_path.stat().st_size:
            os.truncate(self.nodes_path, good)
        return found

    def append_nodes(self, nodes: list[dict[str, Any]]) -> None:
        text = _text(nodes)
        line = f'{{"sha256":"{_digest(text)}","nodes":{text}}}\n'.encode()
        with self.nodes_path.open("ab") as file:
            end = file.tell()
            try:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
            except OSError:
                os.ftruncate(file.fileno(), end)  # half a line helps nobody
                raise

    def close(self) -> None:
        self._lock.close()


def _checked(line: bytes) -> list[dict[str, Any]] | None:
    try:
        kept = json.loads(line)
        nodes: list[dict[str, Any]] = kept["nodes"]
        return nodes if _digest(_text(nodes)) == kept["sha256"] else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _empty(nodes: tuple[str, ...]) -> bool:
    return not nodes


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
