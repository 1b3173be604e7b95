"""The command line as journeys use it, and their committed answers."""

from __future__ import annotations

import functools
import io
import json
import sys
import warnings
from collections.abc import Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import typer.main

from fewnode.cli import main

typer.main.get_command = functools.cache(typer.main.get_command)  # which takes longer than most commands
CLOSE = 1e-3
ANSWERS = Path(__file__).parent / "answers"


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def fewnode(*arguments: object, folder: Path) -> Said:
    """The command line in this process, as a shell in that folder would run it."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    code: Any = 0
    with (
        chdir(folder),
        redirect_stdout(out),
        redirect_stderr(err),
        patch("sys.argv", ["fewnode", *map(str, arguments)]),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("default")
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    return Said(code, *(stream.buffer.getvalue().decode() for stream in (out, err)))


def done(*arguments: object, folder: Path) -> Said:
    """What a command said that ended well."""
    said = fewnode(*arguments, folder=folder)
    assert said.code == 0, said.err
    return said


def differences(today: Mapping[str, Any], before: Mapping[str, Any], place: str = "") -> list[str]:
    """Where answers are others than before, by more than another processor makes of them."""
    found = []
    for key, value in today.items():
        where, known = f"{place}{key}", before.get(key)
        if isinstance(value, Mapping) and isinstance(known, Mapping):
            found += differences(value, known, f"{where}: ")
            continue
        pairs = [(value, known)]
        if isinstance(value, list) and isinstance(known, list) and len(value) == len(known):
            pairs = list(zip(value, known, strict=True))
        if others := [pair for pair in pairs if not same(*pair)]:
            found.append(f"{where}: {len(others)} of {len(pairs)}, such as {others[0][0]}, before {others[0][1]}")
    return found


def same(value: Any, known: Any) -> bool:
    if isinstance(value, float) and isinstance(known, float | int):
        return abs(value - known) <= CLOSE
    if isinstance(value, list) and isinstance(known, list):
        return len(value) == len(known) and all(map(same, value, known))
    return bool(value == known)


def committed(name: str) -> Any:
    return json.loads((ANSWERS / f"{name}.json").read_text())


def commit(name: str, answers: dict[str, Any]) -> None:
    """An answer a line, so that changes can be read."""
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(answers[key], ensure_ascii=False)}" for key in answers)
    (ANSWERS / f"{name}.json").write_text(f"{{\n{lines}\n}}\n")
    print(f"{len(answers)} answers", file=sys.stderr)
