"""A network larger than memory from the command line: the same four commands, with --memory."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from graphs import planted

pytestmark = pytest.mark.usefixtures("opened_anew")
Command = Callable[..., object]
TRAIN = ("train", "--data", "debian", "--method", "gpn", "--out", "o")
PLUS = ("train", "--data", "DIR", "--out", "o")


@pytest.fixture(name="npz")
def _npz(tmp_path: Path) -> Path:
    data = planted()
    parts = {f"{part}_classes": np.array(data.split.part(part)) for part in ("train", "valid", "test")}
    path = tmp_path / "network.npz"
    np.savez(path, edge_index=data.graph.edge_index(), y=data.y, x=data.graph.x.toarray(), **parts)
    return path


def test_from_file_to_predictions_within_a_gigabyte(fewnode: Command, npz: Path, tmp_path: Path) -> None:
    data, run, out = tmp_path / "data", tmp_path / "run", tmp_path / "predictions.csv"
    limit = ("--memory", "1G")
    done = fewnode("data", "import", npz, "--out", data, *limit, "--json")
    assert done.code == 0
    assert done.json["nodes"] == 360
    small = ("--way", 3, "--shot", 3, "--episodes", 10)
    done = fewnode("train", "--data", data, "--method", "gpn", "--out", run, *small, *limit)
    assert done.code == 0
    support = tmp_path / "support.csv"
    support.write_text("node,class\n1,a\n2,a\n3,b\n4,b\n")
    asked = ("predict", "--run", run, "--support", support, "--all")
    assert fewnode(*asked, *limit).code == 2
    assert fewnode(*asked, "--out", out, "--explain", *limit).code == 0
    assert len(out.read_text().splitlines()) == 361
    assert out.with_suffix(".support.csv").exists()
    plain = tmp_path / "plain.csv"
    assert fewnode(*asked, "--out", plain, "--explain", "-q").code == 0
    rows = [[line.split(",") for line in path.read_text().splitlines()[1:]] for path in (out, plain)]
    assert [row[:2] for row in rows[0]] == [row[:2] for row in rows[1]]
    found, expected = (np.array([row[2:4] for row in part], float) for part in rows)
    assert np.abs(found - expected).max() < 1e-5


@pytest.mark.parametrize("sparse", [True, pytest.param(False, marks=pytest.mark.check)])
def test_gpn_plus_from_disk_to_disk_is_what_it_is_in_memory(
    fewnode: Command, npz: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sparse: bool
) -> None:
    if sparse:
        arrays = dict(np.load(npz))
        x = sp.csr_array(arrays.pop("x"))
        parts = {"x_indptr": x.indptr, "x_indices": x.indices, "x_data": x.data, "x_shape": np.array(x.shape)}
        np.savez(npz, **arrays, **parts)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    data, support, limit = tmp_path / "data", tmp_path / "support.csv", ("--memory", "1G")
    assert fewnode("data", "import", npz, "--out", data, "-q").code == 0
    support.write_text("node,class\n1,a\n2,a\n3,b\n4,b\n")
    for run, more in (("here", ()), ("there", limit)):
        assert fewnode("train", "--data", data, "--out", tmp_path / run, *more).code == 0
        asked = ("predict", "--run", tmp_path / run, "--support", support, "--all", "-q", *more)
        assert fewnode(*asked, "--out", tmp_path / f"{run}.csv").code == 0
    for one, other in (("here/model.safetensors", "there/model.safetensors"), ("here.csv", "there.csv")):
        assert (tmp_path / one).read_bytes() == (tmp_path / other).read_bytes()
    shutil.rmtree(tmp_path / "cache" / "fewnode" / "embeddings")  # then the tiles are made again
    assert fewnode(*asked, "--out", tmp_path / "again.csv").code == 0
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "here.csv").read_bytes()


def test_a_disk_that_fills_up_in_the_middle_of_the_views(
    fewnode: Command, npz: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, sync, left = tmp_path / "data", os.fsync, [4]
    fewnode("data", "import", npz, "--out", data, "-q")
    train = ("train", "--data", data, "--out", tmp_path / "run", "--memory", "1G", "-q")

    def full(descriptor: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        done = fewnode(*train)
        assert (done.code, done.err.count("\n")) == (3, 1)
        assert "No space left" in done.err
    assert "continue it with --resume" in fewnode(*train).err
    assert fewnode(*train, "--resume").code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("data", "import", "NPZ", "--out", "o", "--memory", "much"), "expected a size"),
        (("data", "import", "NPZ", "--out", "o", "--memory", "1M"), "at least 512M"),
        (("data", "import", "a.graphml", "--out", "o", "--memory", "1G"), "not used for a.graphml, which is one file"),
        ((*PLUS, "--backend", "ray", "--address", "here"), "--address here: expected HOST:PORT"),
        ((*PLUS, "--backend", "ray", "--address", "127.0.0.1:1"), "no Ray cluster"),
        ((*TRAIN, "--backend", "spark"), "spark"),
        ((*TRAIN, "--method", "maml", "--backend", "ray"), "maml is trained by one process: leave out --backend"),
    ],
)
def test_what_is_wrong_is_one_line(
    fewnode: Command,
    npz: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    if "DIR" in arguments:
        assert fewnode("data", "import", npz, "--out", "d", "-q").code == 0
    done = fewnode(*({"NPZ": str(npz), "DIR": "d"}.get(argument, argument) for argument in arguments))
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert message in done.err
    assert not (tmp_path / "o").exists()
