"""A network larger than memory from the command line: the same four commands, with --memory."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
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


def tables(folder: Path, n: int = 700, count: int = 3000) -> tuple[Path, Path]:
    """Text, numbers, categories, vectors with gaps, weights and kinds; edges that are there twice; ids with a space."""
    rng = np.random.default_rng(0)
    words = [f"word{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(300)]
    vectors = [None if i % 9 == 0 else rng.normal(size=5).tolist() for i in range(n)]
    columns = {
        "id": [f" n{i}" if i % 50 == 0 else f"n{i}" for i in range(n)],
        "label": [None if i % 3 else f"c{i % 7}" for i in range(n)],
        "summary": [" ".join(rng.choice(words, 6)) for _ in range(n)],
        "size": [None if i % 11 == 0 else float(i) for i in range(n)],
        "country": [("de", "fr", "NA")[i % 3] for i in rng.integers(0, 3, n)],
        "vector": pa.array(vectors, pa.list_(pa.float32())),
    }
    pq.write_table(pa.table(columns), folder / "nodes.parquet", row_group_size=100)
    ends = [[columns["id"][i] for i in side] for side in rng.integers(0, n, (2, count))]
    amount, kind = rng.lognormal(sigma=2, size=count).round(2), rng.choice(["pays", "owns"], count)
    lines = (f"{a},{b},{w},{k}" for a, b, w, k in zip(*ends, amount, kind, strict=True))
    (folder / "edges.csv").write_text("source,target,amount,kind\n" + "\n".join(lines) + "\n")
    return folder / "nodes.parquet", folder / "edges.csv"


def test_tables_within_memory_are_those_read_whole(fewnode: Command, tmp_path: Path) -> None:
    nodes, edges = tables(tmp_path)
    given = ("data", "import", "--nodes", nodes, "--edges", edges, "--name", "d", "-q")
    for out, limit in (("whole", ()), ("pieces", ("--memory", "2G"))):
        assert fewnode(*given, "--out", tmp_path / out, *limit).code == 0
    for file in ("dataset.safetensors", "dataset.json"):
        assert (tmp_path / "whole" / file).read_bytes() == (tmp_path / "pieces" / file).read_bytes()
    edges.write_text(edges.read_text() + "n1,nobody,1,pays\n")
    refused = fewnode(*given, "--out", tmp_path / "o", "--memory", "2G")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert f"{edges}: data row 3001, column 'target': node 'nobody' is not in {nodes}" in refused.err
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("data", "import", "NPZ", "--out", "o", "--memory", "much"), "expected a size"),
        (("data", "import", "NPZ", "--out", "o", "--memory", "1M"), "at least 512M"),
        (("data", "import", "NPZ", "--out", "o", "--memory", "1G", "--split", "50/20/30"), "class split is that of"),
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


def test_options_that_a_method_does_not_keep_are_named(fewnode: Command, npz: Path, tmp_path: Path) -> None:
    options = ("--memory", "1G", "--workers", 2, "--address", "10.0.0.1:6379")
    mine = Path(__file__).parents[2] / "examples" / "my_method.py"
    done = fewnode("train", "--data", npz, "--method", f"{mine}:MyMethod", "--out", tmp_path / "run", *options)
    assert done.code == 0
    assert "MyMethod holds the whole network in memory: --memory is kept by gpn-plus alone" in done.err
    assert "--address not used: for --backend ray" in done.err
