"""Every sloppy table of `sloppy.py` gives what is written there, and every line about it can be read on a terminal."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fewnode.dataset import Dataset
from fewnode.datasets.arrow import AS_USUAL, read_table
from fewnode.datasets.import_report import describe_source, describe_warnings
from fewnode.datasets.tables import read_tables
from fewnode.errors import FewnodeError
from sloppy import CASES, Case, Content, File


def write(folder: Path, name: str, content: Content) -> Path:
    if isinstance(content, File):
        name, content = content
    elif isinstance(content, pa.Table):
        name = f"{name}.parquet"
    else:
        name = f"{name}.csv"
    path = folder / name
    if isinstance(content, pa.Table):
        pq.write_table(content, path)
    else:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def sources(folder: Path, name: str, contents: Any) -> Any:
    if isinstance(contents, Mapping):
        return {kind: write(folder, kind, content) for kind, content in contents.items()}
    if isinstance(contents, list):
        return [write(folder, f"{name}{i}", content) for i, content in enumerate(contents)]
    return write(folder, name, contents)


def found(data: Dataset) -> dict[str, Any]:
    info = data.info
    return {
        "nodes": data.graph.n,
        "edges": data.graph.n_edges,
        "names": data.node_names,
        "classes": data.class_names,
        "unknown": info["labels"]["unknown"],
        "words": info["labels"]["words"],
        "columns": info["columns"],
        "edge_columns": {name: use for table in info["edges"] for name, use in table["columns"].items()},
        "missing": info["missing"],
        "features": data.graph.n_features,
        "loops": sum(table["self_loops"] for table in info["edges"]),
        "ends": sum(table["unknown_ends"] for table in info["edges"]),
        "repeated": info["repeated_edges"],
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_sloppy_tables(case: Case, tmp_path: Path) -> None:
    nodes, edges = sources(tmp_path, "nodes", case.nodes), sources(tmp_path, "edges", case.edges)
    if case.refused is not None:
        with pytest.raises(FewnodeError) as caught:
            read_tables(nodes, edges, **case.options)
        assert case.refused.format(folder=tmp_path) in str(caught.value)
        assert "\n" not in str(caught.value)
        return
    data = read_tables(nodes, edges, **{"min_nodes": 1, **case.options})
    facts = found(data)
    for name, expected in case.gives.items():
        if isinstance(expected, dict) and name != "words":
            assert {key: facts[name][key] for key in expected} == expected
        else:
            assert facts[name] == expected, name
    warnings = data.info["warnings"]
    assert len(warnings) == len(case.warns)
    for warning, words in zip(warnings, case.warns, strict=True):
        assert words in warning
    json.dumps(data.info, allow_nan=False)
    lines = f"{describe_source(data.info)}\n{describe_warnings(data.info)}".splitlines()
    assert max(map(len, lines)) <= 80
    assert all(line.isprintable() for line in lines)
    tables = [*data.info["nodes"], *data.info["edges"]]
    paths = {path.name: path for path in tmp_path.iterdir()}
    assert sorted(table["file"] for table in tables) == sorted(paths)
    of_nodes = case.options.get("dialect", AS_USUAL)
    dialects = {True: of_nodes, False: case.options.get("edge_dialect", of_nodes)}
    for table in tables:
        dialect = dialects[table in data.info["nodes"]]
        header = read_table(paths[table["file"]], "any", dialect=dialect).header
        named = isinstance(case.nodes, Mapping) and table in data.info["nodes"]
        beside = table in data.info["nodes"] and not {"vectors", "encoder"}.isdisjoint(case.options)
        assert tuple(table["columns"])[: len(header)] == header
        assert len(table["columns"]) == len(header) + beside + named


def test_there_are_enough_and_each_is_one_of_its_kind() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 80
