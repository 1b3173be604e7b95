"""The command line. Heavy imports happen inside commands, so that `--help` answers at once."""

from __future__ import annotations

import gc
import os
import sys
import warnings
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from typing import Any

import typer

from fewnode import __version__
from fewnode.cli.options import Command
from fewnode.errors import FewnodeError, UnusedInput, visible

MAX_LINE = 1000
YOUNG = 200_000
"""Objects between two searches for garbage. Imports and compilers make hundreds of thousands, and hardly any garbage:
by Python's own 700, a seventh of a short command is spent on searching."""
INTERRUPTED, UNREAD = 130, 141
"""Exit codes of shells: 128 and the number of the signal, SIGINT or SIGPIPE."""

COMMANDS = {
    "demo": "See the whole of it work, on an embedded network.",
    "data": "",
    "train": "Learn from the well-labelled classes of a network.",
    "evaluate": "Score a model, or a method on a graph and a few labels.",
    "predict": "Classify nodes into new classes, from a few of each.",
    "suggest": "Say which nodes to label next.",
    "serve": "Serve a model over HTTP, with a page to use it on.",
    "tune": "Search a method's options on validation classes.",
    "experiment": "Run a grid of trainings; stop and continue it.",
    "report": "Make tables and figures of a grid.",
}
"""Each is a function in a module of its name, but for these."""
HOMES = {"report": "experiment"}


def application(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """The command line with these commands. Each is imported here: some take a while, and one is enough to run it."""
    made = typer.Typer(
        name="fewnode",
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    made.callback()(_fewnode)
    for name in names:
        module = import_module(f"fewnode.cli.{HOMES.get(name, name)}")
        if name == "data":
            made.add_typer(module.app, name=name)
        else:
            made.command(cls=Command, short_help=COMMANDS[name])(getattr(module, name))
    return made


def __getattr__(name: str) -> typer.Typer:
    """`app` has all commands (PEP 562)."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return application()


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fewnode {__version__}")
        raise typer.Exit


def _fewnode(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Show the version."),
) -> None:
    """Recognise new classes of nodes in a network from a handful of examples.

    \b
    Start with:    fewnode demo
    Your network:  fewnode data import --nodes N.csv --edges E.csv --out mydata
                   fewnode predict --data mydata --support support.csv --all
                   fewnode suggest --data mydata --support support.csv
                   fewnode serve --data mydata
    Other classes with many labels: fewnode train, then --run in place of --data
    Tab completion of your shell: fewnode --install-completion
    """


def main() -> None:
    """Exit 0: done. 2: the input or the arguments are wrong. 3: the machine failed us. 1: a bug.

    130: interrupted (Ctrl-C). 141: whoever read what is printed has gone. Both print nothing more.
    """
    gc.set_threshold(YOUNG)
    _open_streams()
    warnings.formatwarning = _format_warning  # type: ignore[assignment]
    try:
        code = _run()
        sys.stdout.flush()  # here, where a full disk can still be told
        sys.exit(code)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        for stream in (1, 2):  # what is left to be written goes nowhere, and nobody is left to be told
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        sys.exit(UNREAD)
    except typer.TyperException as error:
        context, told = getattr(error, "ctx", None), error.format_message()
        if context and told == context.get_help():  # a command of commands alone: what there is, not one long line
            typer.echo(told, err=True)
        else:
            _complain(f"{told} (see {context.command_path if context else 'fewnode'} --help)")
        sys.exit(2)
    except FewnodeError as error:
        _complain(str(error))
        sys.exit(2)
    except (OSError, MemoryError, RuntimeError) as error:
        if isinstance(error, OSError):
            where = f"{error.filename}: " if error.filename else ""
            _complain(f"{where}{error.strerror or error}; nothing already written was lost")
        elif isinstance(error, MemoryError) or "allocate memory" in str(error) or "out of memory" in str(error):
            _complain("out of memory")  # torch raises a RuntimeError on a CPU
        else:
            raise
        sys.exit(3)


def _format_warning(message: Warning | str, *where: Any) -> str:
    """What was given and is not used, as a sentence without the line of our source that noticed it."""
    return f"{message}\n" if isinstance(message, UnusedInput) else _usual_format(message, *where)


_usual_format = warnings.formatwarning


def _run() -> int:
    try:
        one = [name for name in sys.argv[1:2] if name in COMMANDS]
        return application(one or COMMANDS)(standalone_mode=False) or 0
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # which typer turns into an exit by 1, a bug to us
            raise end.__context__ from None
        raise


def _open_streams() -> None:
    """A stream that the shell has closed (`>&-`) leads nowhere. Left closed, the next file would take its place."""
    for stream in range(3):
        try:
            os.fstat(stream)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest place that is free, which is this one
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))  # noqa: SIM115


def _complain(message: str) -> None:
    text = visible(" ".join(message.split()))
    with suppress(OSError):  # where nobody can read it, the exit code says enough
        typer.echo(f"fewnode: {text if len(text) <= MAX_LINE else text[:MAX_LINE] + ' …'}", err=True)
