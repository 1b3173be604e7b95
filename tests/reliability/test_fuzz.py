"""Every reader on thousands of broken files: only our error, none that hangs, none that takes all memory.

`fuzz/run.py` does the same led by coverage; `make check` runs it on every reader.
"""

from __future__ import annotations

import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

FUZZ = Path(__file__).parents[2] / "fuzz"
sys.path.insert(0, str(FUZZ))
from mutate import mutated  # noqa: E402
from readers import Reader, readers, scratch  # noqa: E402
from sizes import Figure, sizes  # noqa: E402

EXECUTIONS = 1_000_000
"""Of atheris in `make check`, over all readers."""
HANG = 60
"""Seconds of processor time after which a reader is taken to read for ever."""


@pytest.fixture(scope="module")
def all_readers() -> Iterator[dict[str, Reader]]:
    folder = scratch()
    yield readers(folder)
    shutil.rmtree(folder, ignore_errors=True)


class Hung(BaseException):
    pass


def hung(number: int, frame: FrameType | None) -> None:
    raise Hung


def test_what_the_fuzzers_begin_with_is_read(all_readers: dict[str, Reader]) -> None:
    """Else they would look at the first check of a reader and at nothing behind it."""
    refused = [name for name, reader in all_readers.items() for seed in reader.seeds if not reader(seed)]
    assert sorted(set(refused)) == ["papers", "products"]  # too small to be a network, and read to the end


@sizes(25, 400, 20_000)
def test_broken_files_are_refused(all_readers: dict[str, Reader], figure: Figure, count: int) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    signal.signal(signal.SIGVTALRM, hung)
    done = taken = 0
    for name, reader in all_readers.items():
        rng = random.Random(name)
        for _ in range(count * min(reader.share, 8)):
            blob = mutated(rng.choice(reader.seeds), rng)
            try:
                signal.setitimer(signal.ITIMER_VIRTUAL, HANG)
                taken += reader(blob)
            except BaseException as error:
                Path("fuzz-failure").write_bytes(blob)
                raise AssertionError(f"{name}: {type(error).__name__}: {error}: {blob[:200]!r}") from error
            done += 1
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
    assert grown < 512
    figure(
        "readers.mutations",
        f"{done:,} broken files, {taken:,} of them readable all the same, {len(all_readers)} "
        f"readers: only our error, none hung, {grown} MB more memory",
    )


@pytest.mark.check
def test_fuzzing_led_by_coverage(tmp_path: Path, figure: Figure) -> None:
    pytest.importorskip("atheris")
    runs = os.environ.get("FEWNODE_EXECUTIONS", EXECUTIONS)
    command = [sys.executable, FUZZ / "run.py", "--runs", runs]
    found = subprocess.run(list(map(str, command)), cwd=tmp_path, capture_output=True, text=True, errors="replace")
    assert found.returncode == 0, (found.stdout, found.stderr[-3000:])
    counts = [int(n.replace(",", "")) for n in re.findall(r": ([0-9,]+) executions", found.stdout)]
    what = "only our error, none hung, none over 512 MB"
    figure("readers.atheris", f"{sum(counts):,} executions of atheris over {len(counts)} readers: {what}")
