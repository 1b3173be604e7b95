"""What a person sees: progress, small tables, one JSON object when asked for."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import AfterValidator

from fewnode._system.files import write_text
from fewnode.errors import FewnodeError, visible
from fewnode.model.progress import training_bar
from fewnode.options import Options, option

if TYPE_CHECKING:
    from fewnode.train import History, OnStep

OutTable = Annotated[Path | None, AfterValidator(lambda out: None if out == Path("-") else out)]
"""Where a table goes; None: standard output."""
OUT_TABLE = option("Where the table goes; default: -, standard output.")
_UNSEEN = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class Quiet(Options):
    """Options of every command, and what it says on the way: to standard error, unless -q."""

    quiet: bool = option("Print results only, no progress.", False, flag="-q --quiet")

    def note(self, *texts: str) -> None:
        """Something about the way, not the result."""
        for text in filter(None, () if self.quiet else texts):
            typer.echo(visible(text), err=True)

    def progress(self) -> Callable[[str, int, int], None]:
        """Says of each thing how many of all are done, ten times at most."""
        said: dict[str, int] = {}

        def report(what: str, done: int, total: int) -> None:
            tenth = 10 * done // max(1, total)
            if tenth > said.get(what, 0):
                said[what] = tenth
                self.note(f"{done:,} of {total:,} {what}")

        return report

    @contextmanager
    def following(self, method: object, heading: str = "", title: str = "training") -> Iterator[OnStep]:
        """Shows a training: a bar with loss, validation accuracy and time left; lines where there is no terminal.

        The heading waits for the first step, so that arguments that turn out wrong are answered by one line alone.
        """
        from fewnode.method import Stepwise

        waiting, episodes = [heading], method.episodes if isinstance(method, Stepwise) else 0

        def head() -> None:
            self.note(*waiting)
            waiting.clear()

        with training_bar(episodes, self.note, title, self.quiet) as draw:

            def follow(step: int, loss: float, history: History) -> None:
                head()
                draw(step, loss, history)

            yield follow
            head()


class Printing(Quiet):
    """Options of every command that reports, and its result: for a person, or as JSON."""

    as_json: bool = option("Print one JSON object on standard output and nothing else there.", False, flag="--json")

    def result(self, value: Mapping[str, Any], text: str) -> None:
        """What was asked for, as an object or for people."""
        if self.as_json:
            emit(value)
        elif text:
            typer.echo(visible(text))

    def table(self, out: Path | None, text: Callable[[], str], value: Callable[[], Mapping[str, Any]]) -> None:
        """A table that goes to a file, if one is named, or to standard output, unless that has it as an object."""
        if out is not None:
            write_text(out, text())
        if self.as_json:
            emit(value())
        elif out is None:
            show(text())


class Threads(Options):
    """Of the linear algebra in NumPy and SciPy, and of torch where it comes."""

    threads: int = option("Threads of this process; recorded, as they change last bits.", 1, rare=True, ge=1)

    def use(self) -> None:
        from threadpoolctl import threadpool_limits

        os.environ["OMP_NUM_THREADS"] = str(self.threads)  # some libraries, and other processes, are yet to start
        threadpool_limits(self.threads)


def emit(value: Mapping[str, Any]) -> None:
    """One JSON object. What JSON itself leaves as it is but a terminal obeys is escaped too."""
    text = json.dumps(value, ensure_ascii=False)
    typer.echo(_UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


def show(text: str) -> None:
    """A result on standard output: exactly into a file or a pipe; on a terminal without what that would obey."""
    sys.stdout.write(visible(text) if sys.stdout.isatty() else text)
    sys.stdout.flush()


def refuse(given: Sequence[str], where: str) -> None:
    """Name options that were given and mean nothing here."""
    if given:
        raise FewnodeError(f"{', '.join(given)}: not used {where}; leave it out")


def spare(outputs: Sequence[Path | None], inputs: Mapping[str, Path | None]) -> None:
    """Refuse to write over a table that is read: it may be the only copy of what somebody has labelled."""
    for option_, table_ in inputs.items():
        for out in outputs:
            if out is not None and table_ is not None and out.exists() and table_.exists() and out.samefile(table_):
                what = f"{out}: it is the table of {option_}, and would be written over"
                raise FewnodeError(what, remedy="choose another --out")


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns aligned by spaces: the first to the left, the others to the right."""
    cells = [[str(cell) for cell in row] for row in [header, *rows]]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))])
        for row in cells
    ]
    return visible("\n".join([lines[0], "-" * len(lines[0]), *lines[1:]]))
