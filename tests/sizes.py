"""One test, three sizes: seconds in `make test`, minutes in `make check`, hours in `make soak`; and its figures."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Figure = Callable[[str, str], None]


def sizes(quick: int, check: int, soak: int) -> Any:
    """Run the test with `count` of them; which one is asked for, the markers tell."""
    marks = {"quick": (quick, ()), "check": (check, pytest.mark.check), "soak": (soak, pytest.mark.soak)}
    return pytest.mark.parametrize("count", [pytest.param(n, marks=m, id=name) for name, (n, m) in marks.items() if n])


def in_child(work: Callable[[], object], kill_after: float | None = None, quiet: bool = True) -> int:
    """Run `work` in a fork; returns how it ended, as `waitpid` has it.

    With `kill_after` it is killed so many seconds later, wherever it is then.
    """
    pid = begun(work, quiet)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(pid, 9)
    return os.waitpid(pid, 0)[1]


def begun(work: Callable[[], object], quiet: bool = True) -> int:
    """Begin `work` in a fork, which has all imports already; returns its number."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            if quiet:
                null = os.open(os.devnull, os.O_RDWR)
                os.dup2(null, 1), os.dup2(null, 2)
            work()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)
    return pid


def until(holds: Callable[[], bool]) -> None:
    """Wait for something, ten minutes at most: a slow machine, and many at work on it."""
    deadline = time.monotonic() + 600
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def kill_once(holds: Callable[[], bool], pid: int) -> None:
    try:
        until(holds)
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)


def command(
    stderr: Path, *arguments: object, before: Callable[[], object] = lambda: None, stdout: str = os.devnull
) -> Callable[[], None]:
    """`fewnode …` for `in_child`, after `before`; what it says goes to a file."""

    def work() -> None:
        from fewnode.cli import main

        os.dup2(os.open(stdout, os.O_WRONLY), 1)
        os.dup2(os.open(stderr, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666), 2)
        sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
        before()
        sys.argv = ["fewnode", *map(str, arguments)]
        main()

    return work


def keep_figures(found: dict[str, str]) -> None:
    """Add to the file that `make check` makes `docs/reliability.md` from."""
    if not found or "FEWNODE_FIGURES" not in os.environ:
        return
    path = Path(os.environ["FEWNODE_FIGURES"])
    before = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**before, **found}, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
