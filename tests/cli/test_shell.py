"""What a shell does to a command: closed streams, readers that leave, full disks, Ctrl-C at any moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

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


@pytest.mark.parametrize("words", [(), ("data",)])
def test_a_command_of_commands_alone_says_what_there_is_in_lines(fewnode, words: tuple[str, ...]) -> None:
    done = fewnode(*words)
    assert (done.code, done.out) == (2, "")
    assert done.err == fewnode(*words, "--help").out
    assert "\nCommands:\n" in done.err


def test_a_table_that_may_not_be_read_is_the_machines_fault(fewnode, tmp_path: Path, monkeypatch) -> None:
    table = tmp_path / "s.csv"
    table.write_text("node,class\n")
    monkeypatch.setattr(os, "access", lambda *_: False)  # whoever runs tests as root may read everything
    done = fewnode("predict", "--data", "debian", "--support", table, "--all")
    assert (done.code, done.err.count("\n"), "is not readable" in done.err) == (3, 1, True)


def test_the_place_of_a_closed_stream_stays_taken() -> None:
    """The place of a closed stream would go to the next file, and what is printed would go into that."""
    code = "import os, sys; from fewnode.cli import main; sys.argv[1:] = ['--version']\ntry: main()\n"
    code += "except SystemExit: os._exit(10 + os.open(os.devnull, os.O_RDONLY) if sys.stdout and sys.stderr else 1)"
    found = subprocess.run([sys.executable, "-c", code], preexec_fn=closing(0, 1, 2))
    assert found.returncode >= 13


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


def test_what_cannot_be_printed_is_the_machines_fault() -> None:
    with open("/dev/full", "w") as full:
        found = subprocess.run([*COMMAND, "--version"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert (found.returncode, found.stderr.count("\n"), "No space left" in found.stderr) == (3, 1, True)


@pytest.mark.parametrize(("seen", "times"), [("typer", 1), ("fewnode.cli.predict", 1), ("numpy", 2)])
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


def test_an_interrupt_that_a_shell_has_switched_off_stays_so() -> None:
    """As for a command in the background of a script."""
    process = subprocess.Popen(
        [*COMMAND, "--version"],
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        stdout=subprocess.PIPE,
        text=True,
    )
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate()
    assert (process.returncode, out.startswith("fewnode ")) == (0, True)


def test_threads_are_those_of_every_library_that_computes() -> None:
    """NumPy's library is loaded before the option is read, SciPy's and scikit-learn's after it."""
    code = (
        "from fewnode.cli.output import set_threads; set_threads(1)\n"
        "import scipy.linalg, sklearn.linear_model, threadpoolctl\n"
        "print(*(pool['num_threads'] for pool in threadpoolctl.threadpool_info()))"
    )
    free = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    told = subprocess.run([sys.executable, "-c", code], env=free, capture_output=True, text=True, check=True).stdout
    assert len(told.split()) >= 3
    assert set(told.split()) == {"1"}
