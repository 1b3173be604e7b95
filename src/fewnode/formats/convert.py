"""A dataset out as plain tables, for every tool that reads Parquet or CSV."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pandas as pd

from fewnode._system.files import atomic_write, need_no_file
from fewnode._system.sheets import csv_text, harmless
from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.graph import is_sparse
from fewnode.relations import pyg_edges


def export_tables(data: Dataset, directory: Path, format: str = "parquet") -> list[Path]:  # noqa: A002
    """Write `nodes` (id, label), `edges` (source, target), `classes` (class, part, nodes) and `attributes`.

    Sparse attributes are one row a value (id, attribute, value); dense ones a column each beside the id. Where there
    are weights and kinds, `edges` has columns `weight` and `relation`, and `nodes` a column `kind`. Where nodes are in
    several classes, `labels` (node, class) has a row for each.
    """
    if format not in ("parquet", "csv"):
        raise FewnodeError(f"unknown format {format!r}, expected parquet or csv")
    need_no_file(directory)
    tables = _tables(data)
    paths = [directory / f"{name}.{format}" for name in tables]
    if there := next((path for path in paths if path.exists()), None):
        raise FewnodeError(f"{there} is there already; choose another directory")
    for path, table in zip(paths, tables.values(), strict=True):
        with atomic_write(path) as file:
            if format == "parquet":  # which no spreadsheet runs, so it stays exact
                table.to_parquet(file, index=False)
            else:
                safe = table.rename(columns=harmless)
                for column in safe.select_dtypes(["object", "string"]):
                    safe[column] = safe[column].map(harmless, na_action="ignore")
                file.write(csv_text([list(safe)]).encode())
                safe.to_csv(file, index=False, header=False, quoting=csv.QUOTE_NONNUMERIC)  # carriage returns, too
    return paths


def _tables(data: Dataset) -> dict[str, pd.DataFrame]:
    names = np.array(data.node_names or [str(i) for i in range(data.graph.n)], object)
    classes = np.array([*data.class_names, None], object)  # the last one is that of nodes whose class is unknown
    nodes = pd.DataFrame({"id": names, "label": classes[data.y]})
    if data.kind is not None:
        nodes["kind"] = np.array(data.kind_names, object)[data.kind]
    (source, target), held = pyg_edges(data.graph)
    edges = pd.DataFrame({"source": names[source], "target": names[target]})
    kind = held.get("edge_type", np.zeros(source.size, np.int64))
    if "edge_weight" in held:
        edges["weight"] = held["edge_weight"]
    if "relation_names" in held:
        edges["relation"] = np.array(held["relation_names"], object)[kind]
    one_way = np.array([r.directed for r in data.graph.relations] or [data.graph.directed])
    part = {c: part for part in ("train", "valid", "test") for c in data.split.part(part)}
    parts = [part.get(c) for c in range(len(data.class_names))]
    tables = {
        "nodes": nodes,
        "edges": edges[one_way[kind] | (source < target)],
        "classes": pd.DataFrame({"class": classes[:-1], "part": parts, "nodes": data.class_sizes}),
    }
    x, columns = data.graph.x, list(data.feature_names or map(str, range(data.graph.n_features)))
    if is_sparse(x):
        row = np.repeat(np.arange(data.graph.n), np.diff(x.indptr))
        attribute = np.array(columns, object)[x.indices]
        tables["attributes"] = pd.DataFrame({"id": names[row], "attribute": attribute, "value": x.data})
    else:
        tables["attributes"] = pd.concat([pd.Series(names, name="id"), pd.DataFrame(x, columns=columns)], axis=1)
    if data.labels is not None:
        node, label = data.labels.tocoo().coords
        tables["labels"] = pd.DataFrame({"node": names[node], "class": classes[label]})
    return tables
