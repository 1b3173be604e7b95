"""Disks that are full, limited, read-only or hold something else: exit 3 or 2, one line, and what was there stays."""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fewnode._system.files import exclusive
from fewnode.dataset import Dataset
from fewnode.formats.checkpoint import CHECKPOINT
from fewnode.formats.directory import save_dataset
from fewnode.model.model_files import load_model
from sizes import Figure, command, in_child

TRAIN = ("--method", "gpn", "--way", 3, "--shot", 2, "--episodes", 20, "-q")


@pytest.fixture(scope="module")
def home(planted: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset, a trained run, a support table and a grid."""
    home = tmp_path_factory.mktemp("home")
    home.chmod(0o755)
    save_dataset(planted, home / "data")
    assert in_child(command(home / "said", "train", "--data", home / "data", "--out", home / "run", *TRAIN)) == 0
    names = [f"{planted.node_name(v)},{planted.y[v]}" for v in range(12)]
    (home / "support.csv").write_text("node,class\n" + "\n".join(names) + "\n")
    (home / "grid.toml").write_text(
        '[[compare]]\ndatasets = "data"\nmethods = "gpn"\nway = 3\nshot = 2\ntasks = 4\n'
        "[methods.gpn]\noptions = { episodes = 10 }\n"
    )
    return home


def commands(home: Path, out: Path) -> dict[str, tuple[object, ...]]:
    """Everything that writes."""
    asked = ("--run", home / "run", "--support", home / "support.csv")
    return {
        "train": ("train", "--data", home / "data", "--out", out / "run", *TRAIN),
        "predict": ("predict", *asked, "--all", "--out", out / "p.csv", "-q"),
        "suggest": ("suggest", *asked, "--out", out / "s.csv", "-q"),
        "pool": ("evaluate", "--run", home / "run", "--tasks", 9, "--save-pool", out / "pool.jsonl", "-q"),
        "experiment": ("experiment", home / "grid.toml", "--out", out / "grid", "-q"),
    }


def refused(home: Path, arguments: tuple[object, ...], before: Any = lambda: None, **more: Any) -> tuple[int, str]:
    """The exit code, and the one line that was said."""
    status = in_child(command(home / "said", *arguments, before=before, **more))
    said = (home / "said").read_text()
    assert os.waitstatus_to_exitcode(status) in (2, 3), said
    assert said.count("\n") == 1, said
    assert said.startswith("fewnode: "), said
    assert "Traceback" not in said
    return os.waitstatus_to_exitcode(status), said


def limit_files(bytes_: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_, bytes_))


def powerless() -> None:
    """Root may write anywhere; without its capabilities it may do what the owner may. Imports go on."""
    if os.getuid() == 0:
        version, mine, none = 0x20080522, 0, bytes(24)
        if ctypes.CDLL(None).capset(struct.pack("Ii", version, mine), none):
            raise OSError("capabilities could not be dropped")


WRITERS = ("train", "predict", "suggest", "pool", "experiment")


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_size_limit(home: Path, tmp_path: Path, name: str) -> None:
    code, said = refused(home, commands(home, tmp_path)[name], limit_files(150))
    assert code == 3
    assert "File too large" in said
    assert not [p for p in tmp_path.rglob("*") if p.name.startswith(".") and p.name != ".lock"]


@pytest.mark.parametrize("name", ["train", "predict"])
def test_a_directory_that_may_not_be_written_to(home: Path, tmp_path: Path, name: str) -> None:
    tmp_path.chmod(0o555)
    code, said = refused(home, commands(home, tmp_path)[name], powerless)
    tmp_path.chmod(0o755)
    assert code == 3
    assert "Permission denied" in said


@contextmanager
def mounted(at: Path, size: str) -> Iterator[Path]:
    at.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", at], capture_output=True).returncode:
        pytest.skip("may not mount a tmpfs here")
    try:
        yield at
    finally:
        subprocess.run(["umount", at], check=True)


@pytest.mark.check
def test_a_full_disk(home: Path, tmp_path: Path, figure: Figure) -> None:
    with mounted(tmp_path / "disk", "16k") as disk:
        (disk / "filler").write_bytes(bytes(16 << 10))
        for name, arguments in commands(home, disk).items():
            code, said = refused(home, arguments)
            assert (code, "No space left on device" in said) == (3, True), (name, said)
            for path in disk.iterdir():
                if path.is_dir():
                    shutil.rmtree(path)
    figure("disk.full", f"{len(WRITERS)} commands on a full tmpfs: exit 3, one line")


@pytest.mark.check
def test_a_disk_that_fills_up_in_a_training_keeps_the_checkpoint(home: Path, tmp_path: Path, figure: Figure) -> None:
    """The run begins well; then no more than the last checkpoint fits."""
    with mounted(tmp_path / "disk", "200k") as disk:
        begin = ("train", "--data", home / "data", "--out", disk / "run", *TRAIN[:-1], "--episodes", 9000)
        begin = (*begin, "--option", "patience=9999", "--resume", "-q")

        def train_until(good: Callable[[], bool]) -> None:
            for seconds in (3, 10, 30, 90):
                if not good():
                    in_child(command(home / "said", *begin), kill_after=seconds)
            assert good()

        train_until((disk / "run" / CHECKPOINT).exists)
        checkpoint = (disk / "run" / CHECKPOINT).read_bytes()
        (disk / "filler").write_bytes(bytes(os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize))
        code, _ = refused(home, begin)
        assert code == 3
        assert (disk / "run" / CHECKPOINT).read_bytes() == checkpoint
        assert sorted(p.name for p in (disk / "run").iterdir()) == [".lock", CHECKPOINT]
        (disk / "filler").unlink()
        train_until(lambda: (disk / "run" / CHECKPOINT).read_bytes() != checkpoint)
    figure("disk.fills", f"exit {code}, the old checkpoint is intact and continued from")


@pytest.mark.check
def test_a_read_only_disk(home: Path, tmp_path: Path, figure: Figure) -> None:
    with mounted(tmp_path / "disk", "1m") as disk:
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        for arguments in commands(home, disk).values():
            code, said = refused(home, arguments)
            assert (code, "Read-only file system" in said) == (3, True)
    figure("disk.readonly", f"{len(WRITERS)} commands: exit 3, one line")


def test_standard_output_on_a_full_disk(home: Path) -> None:
    asked = ("predict", "--run", home / "run", "--support", home / "support.csv", "--all")
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    code, said = refused(home, asked, stdout="/dev/full")
    assert (code, "No space left" in said) == (3, True)


@pytest.mark.parametrize("kind", ["directory", "pipe"])
@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("train", f"run/dropout-0.0/{CHECKPOINT}"),
        ("train", "run/model.safetensors"),
        ("train", "run/.lock"),
        ("predict", "p.csv"),
        ("experiment", "grid/cells.jsonl"),
        ("experiment", "grid/layout.json"),
    ],
)
def test_something_else_where_a_file_should_be(home: Path, tmp_path: Path, name: str, place: str, kind: str) -> None:
    path = tmp_path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir() if kind == "directory" else os.mkfifo(path)
    arguments = commands(home, tmp_path)[name]
    refused(home, (*arguments, "--resume") if name == "train" else arguments)
    assert path.is_dir() if kind == "directory" else path.is_fifo(), "it was replaced"


@pytest.mark.parametrize("kind", ["directory", "pipe"])
@pytest.mark.parametrize("place", ["model.json", "model.safetensors"])
def test_something_else_where_a_model_should_be(home: Path, tmp_path: Path, place: str, kind: str) -> None:
    shutil.copytree(home / "run", tmp_path / "run")
    (tmp_path / "run" / place).unlink()
    path = tmp_path / "run" / place
    path.mkdir() if kind == "directory" else os.mkfifo(path)
    code, said = refused(home, ("evaluate", "--run", tmp_path / "run", "-q"))
    assert (code, "not a regular file" in said) == (2, True)


def test_a_device_is_not_replaced(home: Path, tmp_path: Path) -> None:
    """As root, a rename over /dev/null would take it away from everybody."""
    asked = ("predict", "--run", home / "run", "--support", home / "support.csv", "--all", "-q", "--out", "/dev/null")
    assert "not a regular file" in refused(home, asked)[1]
    assert not Path("/dev/null").is_file()


def test_two_trainings_in_one_directory(home: Path, tmp_path: Path) -> None:
    arguments = commands(home, tmp_path)["train"]
    with exclusive(tmp_path / "run"):
        code, said = refused(home, arguments)
    assert (code, "another process is writing to it" in said) == (2, True)
    assert in_child(command(home / "said", *arguments)) == 0, "once it is free"
    assert load_model(tmp_path / "run").method == "gpn"
    assert "there is a run already" in refused(home, arguments)[1]


def test_a_finished_run_is_cleared_of_what_a_kill_left(home: Path, tmp_path: Path) -> None:
    """Killed after the model was written, before its checkpoints were removed."""
    out = tmp_path / "run"
    shutil.copytree(home / "run", out)
    left = [out / CHECKPOINT, out / "dropout-0.5" / CHECKPOINT, out / ".model.json.0123abcd.fewnode-part"]
    for path in left:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"half")
    assert in_child(command(home / "said", *commands(home, tmp_path)["train"], "--resume")) == 0
    assert sorted(p.name for p in out.iterdir()) == [".lock", "model.json", "model.safetensors"]


def test_a_part_that_is_being_written_is_left_alone(tmp_path: Path) -> None:
    from fewnode._system.files import atomic_write

    with atomic_write(tmp_path / "run" / "big") as file:
        with exclusive(tmp_path / "run"):
            pass
        file.write(b"whole")
    assert (tmp_path / "run" / "big").read_bytes() == b"whole"
