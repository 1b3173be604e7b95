"""A dataset out as plain tables, for every tool that reads Parquet or CSV."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from fewnode.dataset import Dataset
from fewnode.edges.relations import UNNAMED
from fewnode.errors import FewnodeError
from fewnode.graph import is_sparse
from fewnode.machine.files import atomic_write, need_no_file
from fewnode.machine.sheets import FORMULA, NUMBER, harmless


def export_tables(data: Dataset, directory: Path, format: str = "parquet") -> list[Path]:  # noqa: A002
    """Write `nodes` (id, label), `edges` (source, target), `classes` (class, part, nodes) and `attributes`.

    Sparse attributes are one row a value (id, attribute, value); dense ones a column each beside the id. Where there
    are weights and kinds, `edges` has columns `weight` and `relation`, and `nodes` a column `kind`. Where nodes are in
    several classes, `labels` (node, class) has a row for each.
    """
    if format not in ("parquet", "csv"):
        raise FewnodeError(f"unknown format {format!r}, expected parquet or csv")
    tables = {
        "nodes": _nodes_table(data),
        "edges": _edges_table(data),
        "classes": _classes_table(data),
        "attributes": _attributes_table(data),
        **({} if data.labels is None else {"labels": _labels_table(data)}),
    }
    need_no_file(directory)
    paths = [directory / f"{name}.{format}" for name in tables]
    for path in paths:
        if path.exists():
            raise FewnodeError(f"{path} is there already; choose another directory")
    for path, table in zip(paths, tables.values(), strict=True):
        with atomic_write(path) as file:
            if format == "csv":
                pyarrow.csv.write_csv(_harmless(table), file)
            else:
                pyarrow.parquet.write_table(table, file)
    return paths


def _harmless(table: pa.Table) -> pa.Table:
    """No text in it is a formula to a spreadsheet. Parquet, which no spreadsheet runs, stays exact."""
    columns = [_no_formulas(column) if pa.types.is_string(column.type) else column for column in table.columns]
    return pa.table(columns, [harmless(name) for name in table.column_names])


def _no_formulas(column: pa.ChunkedArray) -> pa.ChunkedArray:
    formula = pc.and_not(pc.match_substring_regex(column, FORMULA), pc.match_substring_regex(column, NUMBER))
    return pc.if_else(formula, pc.binary_join_element_wise("'", column, ""), column)


def _names(data: Dataset) -> pa.Array:
    return pa.array(data.node_names or [str(i) for i in range(data.graph.n)], pa.string())


def _nodes_table(data: Dataset) -> pa.Table:
    labels = pc.take(pa.array(data.class_names, pa.string()), pa.array(data.y, mask=data.y < 0))
    if data.kind is None:
        return pa.table({"id": _names(data), "label": labels})
    kinds = pc.take(pa.array(data.kind_names, pa.string()), pa.array(data.kind))
    return pa.table({"id": _names(data), "label": labels, "kind": kinds})


def _labels_table(data: Dataset) -> pa.Table:
    node, label = data.labels.tocoo().coords  # type: ignore[union-attr]
    classes = pc.take(pa.array(data.class_names, pa.string()), pa.array(label))
    return pa.table({"node": pc.take(_names(data), pa.array(node)), "class": classes})


def _edges_table(data: Dataset) -> pa.Table:
    if data.graph.relations:
        return _relations_table(data)
    source, target = data.graph.edge_index()
    if not data.graph.directed:
        once = source < target
        source, target = source[once], target[once]
    names = _names(data)
    return pa.table({"source": pc.take(names, pa.array(source)), "target": pc.take(names, pa.array(target))})


def _relations_table(data: Dataset) -> pa.Table:
    """Every edge with its weight, if any has one, and its relation, if there are names."""
    names, tables = _names(data), []
    weighted = any(relation.weighted for relation in data.graph.relations)
    for relation in data.graph.relations:
        target, source = relation.adj.tocoo().coords
        once = np.ones(source.size, bool) if relation.directed else source < target
        columns = {end: pc.take(names, pa.array(ids[once])) for end, ids in (("source", source), ("target", target))}
        if weighted:
            columns["weight"] = pa.array(relation.adj.data[once])
        if len(data.graph.relations) > 1 or relation.name != UNNAMED:
            columns["relation"] = pa.array([relation.name] * int(once.sum()), pa.string())
        tables.append(pa.table(columns))
    return pa.concat_tables(tables)


def _classes_table(data: Dataset) -> pa.Table:
    part = {c: part for part in ("train", "valid", "test") for c in data.split.part(part)}
    parts = pa.array([part.get(c) for c in range(len(data.class_names))], pa.string())
    return pa.table({"class": pa.array(data.class_names, pa.string()), "part": parts, "nodes": data.class_sizes})


def _attributes_table(data: Dataset) -> pa.Table:
    x = data.graph.x
    names = list(data.feature_names or [str(j) for j in range(data.graph.n_features)])
    if not is_sparse(x):
        return pa.table([_names(data), *(pa.array(column) for column in x.T)], names=["id", *names])
    row = np.repeat(np.arange(data.graph.n), np.diff(x.indptr))
    attribute = pc.take(pa.array(names, pa.string()), pa.array(x.indices))
    return pa.table({"id": pc.take(_names(data), pa.array(row)), "attribute": attribute, "value": pa.array(x.data)})
