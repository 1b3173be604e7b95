"""What a shell does to a command: closed streams, readers that leave, full disks, Ctrl-C at any moment."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

COMMAND = [sys.executable, "-m", "fewnode"]


def closing(*streams: int) -> Callable[[], None]:
    """As `>&-` does, before Python starts."""

    def close() -> None:
        for stream in streams:
            os.close(stream)

    return close


@pytest.mark.parametrize(("argument", "code"), [("--version", 0), ("nonsense", 2)])
@pytest.mark.parametrize("streams", [(1,), (0, 1, 2)])
def test_a_closed_stream_is_no_error(argument: str, code: int, streams: tuple[int, ...]) -> None:
    found = subprocess.run([*COMMAND, argument], preexec_fn=closing(*streams), stderr=subprocess.PIPE, text=True)
    assert found.returncode == code
    assert "Traceback" not in found.stderr
    assert found.stderr.count("\n") == (code == 2 and 2 not in streams), "an error is said where it can be"


@pytest.mark.parametrize(
    ("argument", "both", "code"), [("--help", False, 141), ("--version", True, 141), ("nonsense", True, 2)]
)
def test_a_reader_that_has_gone_is_told_nothing(argument: str, both: bool, code: int) -> None:
    """As `fewnode --help | true`, but the reader has always gone by then."""
    read, write = os.pipe()
    os.close(read)
    found = subprocess.run([*COMMAND, argument], stdout=write, stderr=write if both else subprocess.PIPE, text=True)
    os.close(write)
    assert found.returncode == code
    assert not found.stderr


@pytest.mark.parametrize(("seen", "times"), [("typer", 1), ("fewnode.cli.options", 1), ("numpy", 2)])
def test_an_interrupt_during_imports_is_quiet(seen: str, times: int) -> None:
    """Not after a time, which says nothing on a busy machine, but as soon as Python says that it has imported this."""
    command = [sys.executable, "-X", "importtime", *COMMAND[1:], "data", "info", "debian"]
    process = subprocess.Popen(
        command,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # tests in the background ignore it
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.split("|")[-1].strip().startswith(seen):
            break
    for _ in range(times):
        process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130
    assert out == ""
    assert all(line.startswith("import time:") for line in err.splitlines()), err[-2000:]


@pytest.mark.parametrize(
    "words",
    [
        *("demo", "train", "evaluate", "predict", "suggest", "serve", "experiment", "report", "tune"),
        *("data import", "data extend", "data build"),
    ],
)
def test_help_is_a_screen_and_more_is_all(fewnode, words: str) -> None:
    """Of 60 lines with an example; an option that is only named there is explained by `--more`."""
    shown = fewnode(*words.split(), "--help").out
    assert shown.count("\n") <= 60
    assert "Example:" in shown
    _, named, rare = shown.partition(f"`fewnode {words} --more`")
    if named:
        whole = fewnode(*words.split(), "--more").out
        for option in re.findall(r"--[a-z-]+", rare):
            assert re.search(rf"^  {option}\b.*\S", whole, re.MULTILINE), option
