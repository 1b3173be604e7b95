"""A kill at any moment, or a failure of any single write, costs no more than the work since the last checkpoint."""

from __future__ import annotations

import mmap
import os
import random
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from itertools import product
from pathlib import Path

import pytest

from fewnode._system.files import exclusive
from fewnode.dataset import Dataset
from fewnode.episodes import EpisodeSampler
from fewnode.experiment.grid import read_grid
from fewnode.experiment.ledger import read_ledger
from fewnode.experiment.results import TABLE
from fewnode.experiment.run import experiment
from fewnode.formats.checkpoint import Checkpoints
from fewnode.formats.directory import load_dataset, save_dataset, write_record
from fewnode.methods.gpn import GPN
from fewnode.model.estimator import Estimator
from fewnode.model.model_files import load_model
from fewnode.train import History, Schedule
from sizes import Figure, in_child, sizes

EPISODES, INTERVAL = 60, Schedule().validate_every
SEEN = mmap.mmap(-1, 16)
"""Shared with forks: the first and the last step of the last child, counted over all trainings that a fit has."""
PARTS = [f"dropout-{rate}" for rate in GPN.DROPOUTS]


def train(data: Dataset, out: Path, episodes: int = EPISODES, die_at: int = 0) -> None:
    """A training as `fewnode train --resume` runs it, but the last checkpoint stays to be compared."""

    def note(episode: int, loss: float, history: History) -> None:
        step = PARTS.index(history.part) * episodes + episode
        if step == die_at:
            os.kill(os.getpid(), 9)
        first = int.from_bytes(SEEN[:8], "little") or step
        SEEN[:16] = first.to_bytes(8, "little") + step.to_bytes(8, "little")

    SEEN[:16] = bytes(16)
    with exclusive(out):
        samplers = (EpisodeSampler(data, part, 3, 2, 2) for part in ("train", "valid"))
        gpn = GPN(episodes=episodes, patience=99).fit_in_steps(data.graph, *samplers, Checkpoints(out, on_step=note))
        if not (out / "model.json").exists():
            write_record(out, "model", {"history": asdict(gpn.history_)}, gpn.state())


def seen() -> tuple[int, int]:
    """What `SEEN` holds, once: a child that is killed before its first line has seen nothing."""
    first, last = int.from_bytes(SEEN[:8], "little"), int.from_bytes(SEEN[8:], "little")
    SEEN[:16] = bytes(16)
    return first, last


def contents(directory: Path) -> dict[str, bytes]:
    return {str(p.relative_to(directory)): p.read_bytes() for p in sorted(directory.rglob("*")) if p.is_file()}


@pytest.fixture(scope="module")
def whole(planted: Dataset, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """An uninterrupted training in a fork of its own, and the seconds it takes."""
    out = tmp_path_factory.mktemp("whole")
    train(planted, out / "first", 10)  # what is compiled is compiled now
    start = time.perf_counter()
    assert in_child(lambda: train(planted, out / "run")) == 0
    return out / "run", time.perf_counter() - start


@sizes(6, 150, 5000)
def test_a_training_killed_at_random_ends_with_the_same_bits(
    planted: Dataset, whole: tuple[Path, float], tmp_path: Path, figure: Figure, count: int
) -> None:
    rng, kills, runs, most, lost = random.Random(count), 0, 0, 0, 0
    reference = contents(whole[0])
    while kills < count or most <= INTERVAL:  # else all kills came before anything was trained
        out, last, runs, patience = tmp_path / str(runs), 0, runs + 1, whole[1]
        seen()
        while in_child(lambda: train(planted, out), rng.uniform(0, 1.2) * patience) != 0:  # noqa: B023
            kills, patience = kills + 1, 1.1 * patience  # the machine may be busier than it was
            first, end = seen()
            if first and last:
                lost = max(lost, last - first + 1)
            last = max(last, end)
        assert contents(out) == reference, "weights, optimiser, log and no other file"
        most = max(most, last)
        shutil.rmtree(out)
    assert lost <= INTERVAL
    figure("crash.train", f"{kills} kills in {runs} trainings: same bytes; at most {lost} episodes trained twice")


METHOD = """
import numpy as np

class Guess:
    def __init__(self, seed=0):
        self.seed = seed

    def fit(self, graph, train, valid):
        return self

    def predict_proba(self, graph, task):
        found = np.random.default_rng([self.seed, *task.query]).random((task.query.size, task.n_way))
        return (found / found.sum(axis=1, keepdims=True)).astype(np.float32)
"""
GRID = """
[[compare]]
datasets = "planted"
methods = "method.py:Guess"
tasks = 40
seeds = 20
way = [2, 3]
shot = [2, 3]
"""


@sizes(4, 50, 2000)
def test_a_grid_killed_at_random_ends_with_the_same_table(
    planted: Dataset, tmp_path: Path, figure: Figure, count: int
) -> None:
    save_dataset(planted, tmp_path / "planted")
    (tmp_path / "grid.toml").write_text(GRID)
    (tmp_path / "method.py").write_text(METHOD)

    def run(out: Path) -> Callable[[], object]:
        return lambda: experiment(read_grid(tmp_path / "grid.toml"), out)

    start = time.perf_counter()
    assert in_child(run(tmp_path / "whole")) == 0
    seconds = time.perf_counter() - start
    table, names = (tmp_path / "whole" / TABLE).read_bytes(), sorted(contents(tmp_path / "whole"))
    rng, kills, runs, again = random.Random(count), 0, 0, 0
    while kills < count:
        out, runs, kept, patience = tmp_path / f"out{runs}", runs + 1, 0, seconds
        while in_child(run(out), rng.uniform(0, 1.2) * patience) != 0:
            kills, patience = kills + 1, 1.1 * patience
            found = len(read_ledger(out)[0]) if out.exists() else 0
            assert found >= kept, "a finished cell is never lost"
            kept = found
        again = max(again, kept)
        assert (out / TABLE).read_bytes() == table
        assert sorted(contents(out)) == names, "a stray file"
        shutil.rmtree(out)
    figure("crash.grid", f"{kills} kills in {runs} grids of 80 cells: same table, no cell lost, no stray file")


# --- every single write, fsync and rename of a save ---------------------------------------------------------------

CALLS = "write,pwrite64,writev,fsync,fdatasync,rename,renameat,renameat2,ftruncate,unlink,unlinkat,openat"
FAULTS = ("error=ENOSPC", "error=EDQUOT", "error=EIO", "signal=KILL")


def traced(work: Callable[[], object], faults: list[str], log: Path) -> int:
    """Run `work` in a fork under strace with faults injected; returns how it ended."""
    wait, go = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(go)
        os.read(wait, 1)
        try:
            work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    os.close(wait)
    arguments = ["strace", "-f", "-y", "-p", str(pid), "-o", str(log), "-e", f"trace={CALLS}"]
    with subprocess.Popen([*arguments, *faults], stderr=subprocess.PIPE, text=True) as strace:
        assert strace.stderr is not None
        said = strace.stderr.readline()
        os.close(go)
        status = os.waitpid(pid, 0)[1]
        strace.wait()
    if "attached" not in said:
        pytest.skip(f"strace may not trace here: {said.strip()}")
    return status


def every_fault(work: Callable[[], object], within: Path, log: Path) -> Iterator[tuple[str, str]]:
    """strace's words for each fault at each call that `work` makes within a directory; the first run is whole.

    Calls are counted by kind from the start of `work`; those elsewhere (compiled kernels, say) are passed over.
    """
    assert traced(work, [], log) == 0
    counts: dict[str, int] = {}
    for line in log.read_text().splitlines():
        if match := re.match(r"\d+\s+(\w+)\((.*)", line):
            call = match[1]
            counts[call] = counts.get(call, 0) + 1
            if str(within) in match[2]:
                for fault in FAULTS:
                    yield call, f"inject={call}:{fault}:when={counts[call]}"


@pytest.mark.check
@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_a_fault_at_every_call_of_a_training_that_ends(
    planted: Dataset, whole: tuple[Path, float], tmp_path: Path, figure: Figure
) -> None:
    """From a checkpoint 10 episodes before the end: a checkpoint and a model are written."""
    reference, out, done = contents(whole[0]), tmp_path / "run", 0
    assert in_child(lambda: train(planted, out, die_at=len(PARTS) * EPISODES - 1)) == 9
    kept = tmp_path / "kept"
    shutil.copytree(out, kept)
    calls = set()
    faults = list(every_fault(lambda: train(planted, out), out, tmp_path / "log"))
    for call, fault in faults:
        shutil.rmtree(out)
        shutil.copytree(kept, out)
        status = traced(lambda: train(planted, out), ["-e", fault], tmp_path / "log")
        assert status != 0 or contents(out) == reference, f"{fault}: ended well, but wrong"
        assert in_child(lambda: train(planted, out)) == 0, f"{fault}: cannot go on"
        assert contents(out) == reference, fault
        done += 1
        calls.add(call)
    assert {"write", "fsync", "rename"} <= calls
    figure(
        "crash.faults.train", f"{done} faults at {done // len(FAULTS)} calls ({', '.join(sorted(calls))}): same bytes"
    )


@pytest.mark.check
@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_a_fault_at_every_call_of_a_dataset_being_saved(planted: Dataset, tmp_path: Path, figure: Figure) -> None:
    out, done = tmp_path / "data", 0
    save_dataset(planted, tmp_path / "whole")
    reference = contents(tmp_path / "whole")
    for _, fault in list(every_fault(lambda: save_dataset(planted, out), out, tmp_path / "log")):
        shutil.rmtree(out)
        traced(lambda: save_dataset(planted, out), ["-e", fault], tmp_path / "log")
        if not (out / "dataset.json").exists():
            save_dataset(planted, out)
        assert load_dataset(out).sha256 == planted.sha256
        assert contents(out) == reference, fault
        done += 1
    figure("crash.faults.dataset", f"{done} faults: whole or absent, saved again without a stray file")


def test_a_fault_in_a_save(planted: Dataset, tmp_path: Path) -> None:
    """The same without strace, for the calls that Python makes by name."""
    model = Estimator("propagation", 3, 2, steps=1, teleport=0.0, scaling="l2", centre=False, distance="cosine")
    model.fit(planted)
    for name, place, killed in product(("fsync", "replace", "open"), range(1, 5), (False, True)):
        out = tmp_path / f"{name} {place} {killed}"
        ended = in_child(lambda: faulty_save(model, out, name, place, killed))  # noqa: B023
        assert ended != 0 or place > 2, "there are two renames, and a lock"
        if not (out / "model.json").exists():
            model.save(out)
        assert sorted(p.name for p in out.iterdir()) == ["model.json", "model.safetensors"]
        assert load_model(out).method == "propagation"


def faulty_save(model: Estimator, out: Path, name: str, place: int, killed: bool) -> None:
    call, calls = getattr(os, name), iter(range(1, 100))

    def faulty(*arguments: object, **more: object) -> object:
        if next(calls) == place:
            if killed:
                os.kill(os.getpid(), 9)
            raise OSError(5, "Input/output error")
        return call(*arguments, **more)

    setattr(os, name, faulty)
    model.save(out)
