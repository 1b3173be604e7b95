"""Tables that are read from disk to disk give the same dataset, and the same refusals, as those read into memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from datasets.test_sloppy import sources
from fewnode.dataset import Dataset
from fewnode.datasets.scratch import Scratch
from fewnode.datasets.tables import read_tables
from fewnode.errors import FewnodeError
from fewnode.io import save_dataset
from sloppy import CASES, Case

WHOLE = ("JSON lines are read whole", "vectors of a file or of an encoder")


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


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_on_the_disk_tables_give_the_same_bytes(case: Case, tmp_path: Path) -> None:
    nodes, edges = sources(tmp_path, "nodes", case.nodes), sources(tmp_path, "edges", case.edges)
    options = {"min_nodes": 1, **case.options}
    whole = read(nodes, edges, None, **options)
    mapped = read(nodes, edges, Scratch(tmp_path / "room", 1 << 30, rows=3), **options)
    if isinstance(mapped, str) and any(each in mapped for each in WHOLE):
        return
    if isinstance(whole, str) or isinstance(mapped, str):
        assert mapped == whole
    else:
        assert same_bytes(whole, mapped, tmp_path)
    assert not list((tmp_path / "room").glob("*"))
