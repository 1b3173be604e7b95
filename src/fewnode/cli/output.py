"""What a person sees: progress, small tables, one JSON object when asked for."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fewnode.cli.options import MORE
from fewnode.errors import FewnodeError, visible
from fewnode.model.progress import training_bar

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewnode.train import History, OnStep


Quiet = typer.Option(False, "-q", "--quiet", help="Print results only, no progress.")
Json = typer.Option(False, "--json", help="Print one JSON object on standard output and nothing else there.")
Threads = typer.Option(
    1, "--threads", min=1, help="Threads of this process; recorded, as they change last bits.", rich_help_panel=MORE
)


def _unless_standard(out: Path | None) -> Path | None:
    """`-` is standard output, as elsewhere, and not a file of that name."""
    return None if out == Path("-") else out


OutTable = typer.Option(
    None, "--out", help="Where the table goes; default: -, standard output.", callback=_unless_standard
)


def starting(*words: str) -> Callable[[str], list[str]]:
    """Tab completion: the words that begin as what is typed so far."""

    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return complete


_UNSEEN = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def emit(value: dict[str, Any]) -> None:
    """One JSON object. What JSON itself leaves as it is but a terminal obeys is escaped too."""
    text = json.dumps(value, ensure_ascii=False)
    typer.echo(_UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


def show(text: str) -> None:
    """A result on standard output: exactly into a file or a pipe; on a terminal without what that would obey."""
    sys.stdout.write(visible(text) if sys.stdout.isatty() else text)
    sys.stdout.flush()


def note(text: str, quiet: bool) -> None:
    """Something about the way, not the result: to standard error, unless -q."""
    if not quiet:
        typer.echo(visible(text), err=True)


def refuse_unused(context: typer.Context, names: Sequence[str], where: str) -> None:
    """Name options that were given and mean nothing here."""
    given = [name for name in names if context.get_parameter_source(name).name == "COMMANDLINE"]  # type: ignore[union-attr]
    if given:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise FewnodeError(f"{options}: not used {where}; leave it out")


def spare_inputs(outputs: Sequence[Path | None], inputs: Mapping[str, Path | None]) -> None:
    """Refuse to write over a table that is read: it may be the only copy of what somebody has labelled."""
    for option, given in inputs.items():
        for out in outputs:
            if out is not None and given is not None and out.exists() and given.exists() and out.samefile(given):
                raise FewnodeError(
                    f"{out}: it is the table of {option}, and would be written over; choose another --out"
                )


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns aligned by spaces: the first to the left, the others to the right."""
    cells = [[str(cell) for cell in row] for row in [header, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    lines = [
        "  ".join(
            cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    ]
    return visible("\n".join([lines[0], "-" * len(lines[0]), *lines[1:]]))


def counting(what: str, quiet: bool) -> Callable[[int, int], None]:
    """Says how many of all are done, ten times at most."""
    said = [0]

    def report(done: int, total: int) -> None:
        if 10 * done // max(1, total) > said[0]:
            said[0] = 10 * done // max(1, total)
            note(f"{done:,} of {total:,} {what}", quiet)

    return report


@contextmanager
def following(episodes: int, quiet: bool, heading: str = "", title: str = "training") -> Iterator[OnStep]:
    """A bar with loss, validation accuracy and time left; plain lines where there is no terminal.

    The heading waits for the first step, so that arguments that turn out wrong are answered by one line alone.
    """
    waiting = [heading] if heading else []

    def head() -> None:
        while waiting:
            note(waiting.pop(), quiet)

    with training_bar(episodes, partial(note, quiet=quiet), title, quiet) as draw:

        def follow(step: int, loss: float, history: History) -> None:
            head()
            draw(step, loss, history)

        yield follow
        head()


def set_threads(threads: int) -> None:
    """Of the linear algebra in NumPy and SciPy, and of torch where it comes: a thread more changes last bits."""
    from threadpoolctl import threadpool_limits

    os.environ["OMP_NUM_THREADS"] = str(threads)  # SciPy's and torch's are not loaded yet, and processes may be started
    threadpool_limits(threads)
