"""Tables that are read from disk to disk give the same dataset, and the same refusals, as those read into memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fewnode.dataset import Dataset
from fewnode.datasets.scratch import Scratch
from fewnode.datasets.tables import read_tables
from fewnode.errors import FewnodeError
from fewnode.storage.io import save_dataset


def read(nodes: object, edges: object, disk: Scratch | None, **options: object) -> Dataset | str:
    try:
        return read_tables(nodes, edges, disk=disk, **options)  # type: ignore[arg-type]
    except FewnodeError as error:
        return str(error)


def same_bytes(one: Dataset, other: Dataset, folder: Path) -> bool:
    for name, data in (("one", one), ("other", other)):
        save_dataset(data, folder / name)
    files = ("dataset.json", "dataset.safetensors")
    return all((folder / "one" / file).read_bytes() == (folder / "other" / file).read_bytes() for file in files)


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


KINDS = {"relation": "kind", "directed": ["pays"]}


@pytest.mark.parametrize(
    "options", [{}, {"directed": True}, {"weight": "amount"}, {**KINDS, "weight": "amount"}, KINDS]
)
def test_many_pieces_give_the_same_bytes(options: dict[str, object], tmp_path: Path) -> None:
    nodes, edges = tables(tmp_path)
    whole, mapped = (read(nodes, edges, disk, **options) for disk in (None, Scratch(tmp_path, 500_000, rows=64)))
    assert isinstance(whole, Dataset)
    assert isinstance(mapped, Dataset)
    assert same_bytes(whole, mapped, tmp_path)


def test_what_does_not_fit_is_refused_with_the_remedy(tmp_path: Path) -> None:
    nodes, edges = tables(tmp_path)
    with pytest.raises(FewnodeError, match=r"names of 700 nodes take about 1 GB of memory; say --memory 1G or more"):
        read_tables(nodes, edges, disk=Scratch(tmp_path, 1 << 12))
    with pytest.raises(FewnodeError, match="3,000 edges with weights or kinds take about 1 GB"):
        read_tables(nodes, edges, weight="amount", disk=Scratch(tmp_path, 280_000))


def test_json_lines_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FewnodeError, match="JSON lines are read whole; make it"):
        read_tables(tmp_path / "a.jsonl", tmp_path / "edges.csv", disk=Scratch(tmp_path, 1 << 30))
