"""A user's own network: tables of nodes and of edges become a dataset, and later tables extend it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from fewnode.dataset import Dataset
from fewnode.datasets.arrow import AS_USUAL, TEXT, Dialect
from fewnode.datasets.beside import VectorSources, attach, read_vectors
from fewnode.datasets.edges import EdgeOptions, Edges, EdgeSources, UnknownEnds, describe_near_miss, read_edges
from fewnode.datasets.encode import Encoding, Words, documents
from fewnode.datasets.encoder import COLUMN, Encoder, EncoderSource, Progress
from fewnode.datasets.labels import read_labels, several_in_a_cell
from fewnode.datasets.nodes import IDS, LABELS, NodeSources, read_nodes
from fewnode.datasets.roles import NOT_USED, ColumnUse, column_uses, given_roles
from fewnode.datasets.rows import NodeRows
from fewnode.datasets.splits import SHARES, Split, choose_split
from fewnode.errors import FewnodeError, closest
from fewnode.graph import Attributes, Graph, is_sparse


def read_tables(
    nodes: NodeSources,
    edges: EdgeSources,
    *,
    id: str | None = None,  # noqa: A002
    label: str | None = None,
    text: str | Sequence[str] = (),
    numeric: str | Sequence[str] = (),
    category: str | Sequence[str] = (),
    vector: str | Sequence[str] = (),
    vectors: VectorSources = None,
    encoder: EncoderSource | None = None,
    source: str | None = None,
    target: str | None = None,
    directed: bool = False,
    unknown_ends: UnknownEnds = "refuse",
    split: Split = SHARES,
    seed: int = 0,
    min_nodes: int = 10,
    words: Words | None = None,
    dialect: Dialect = AS_USUAL,
    edge_dialect: Dialect | None = None,
    name: str | None = None,
    progress: Progress = lambda done, total: None,
) -> Dataset:
    """A dataset from tables of nodes and of edges: files, pandas frames, Arrow tables or mappings of columns.

    Each may be a list of tables; `edges` may also be a mapping from kinds of edges to tables. `id` is the column of
    node names (by default `id`, `node`, `name` or else the first) and `label` that of classes (by default `label` or
    `class`; without one nobody is labelled); an empty cell is an unknown class. The columns in `text`, `numeric`,
    `category` and `vector` become attributes; if none is named, every other column is used as what it looks like.
    `vectors` are beside the table: a matrix or an .npy file with a row for each node, or several by name. `encoder` is
    a function from a list of texts to a matrix, or the folder of a model; its vectors join the words of the text, and
    `progress` is told of texts that are encoded.
    `source` and `target` are by default columns of that name or else the first two. `split` is shares `50/20/30`,
    class counts `40,17,20`, or lists of class names under `train`, `valid` and `test`. `dialect` says how files of
    text are written, `edge_dialect` if those of edges are written in another way. What became of each column, and what
    was not used, is in the result's `info`.

    >>> data = read_tables({"id": ["x", "y", "z"], "size": [1, 2, 3]}, {"a": ["x", "y"], "b": ["y", "z"]})
    >>> print(data.graph)
    3 nodes, 2 edges, 1 attributes
    """
    given = given_roles(text=text, numeric=numeric, category=category, vector=vector)
    beside = read_vectors(vectors)
    rows = attach(read_nodes(nodes, (id, *IDS), (label, *LABELS), list(given), dialect), beside)
    options = EdgeOptions(source, target, unknown_ends, edge_dialect or dialect)
    linked = read_edges(edges, rows.ids, rows.name, rows.headers, options)
    if not any(table["rows"] for table in linked.tables):
        raise FewnodeError(f"{' and '.join(table['file'] for table in linked.tables)}: no edge in it")
    y, class_names, unknown = read_labels(rows)
    uses = column_uses(rows, given, y) | {column: ColumnUse("vector", "beside the table") for column in beside}
    through = None if encoder is None else Encoder.of(encoder)
    if through is not None:
        rows, uses[COLUMN] = _encoded(rows, uses, through, progress)
    roles = {column: use.role for column, use in uses.items() if use.role != NOT_USED}
    encoding = Encoding.learn(rows, roles, words or Words())
    x, missing = encoding.encode(rows)
    graph = Graph.from_edges(linked.edge_index, len(rows), x, directed=directed, blocks=encoding.blocks)
    tables = rows.facts({column: use.role for column, use in uses.items()})
    warnings = [use.warning for use in uses.values() if use.warning]
    return Dataset(
        graph=graph,
        y=y,
        split=choose_split(y, class_names, split, seed, min_nodes),
        class_names=class_names,
        node_names=tuple(rows.ids.to_pylist()),
        feature_names=encoding.feature_names or None,
        name=name or tables[0]["file"].split(".")[0],
        info={
            "nodes": tables,
            "columns": {column: use for table in tables for column, use in table["columns"].items()},
            "why": {column: use.why for column, use in uses.items() if use.why},
            "attributes": encoding.counts,
            "missing": missing,
            **_about_missing(rows, encoding),
            "labels": unknown,
            "edges": linked.tables,
            "repeated_edges": linked.proper - _count_edges(graph, directed),
            "warnings": [*warnings, *_warnings(rows, linked), *filter(None, [several_in_a_cell(y, class_names)])],
        },
        encoding={
            "id": rows.parts[0].id,
            "label": next((part.label for part in rows.parts if part.label), None),
            "directed": directed,
            "optional": [column for column in rows.partial if column in roles],
            "decimal": dialect.decimal,
            "missing": None if dialect.missing is None else list(dialect.missing),
            **({"encoder": through.to_json()} if through else {}),
            **encoding.to_json(),
        },
    )


def _encoded(
    rows: NodeRows, uses: Mapping[str, ColumnUse], encoder: Encoder, progress: Progress
) -> tuple[NodeRows, ColumnUse]:
    """The rows with one more column, the vectors of their texts, and what there is to tell of it."""
    columns = [column for column, use in uses.items() if use.role == "text"]
    if not columns:
        raise FewnodeError(f"{rows.name}: an encoder needs text, and no column is; name one: --text COLUMN")
    vectors = encoder.vectors(list(documents(rows, columns)), progress)
    if np.isnan(vectors).all():
        raise FewnodeError(f"{rows.name}: no text to encode in {', '.join(columns)}")
    return attach(rows, {COLUMN: vectors}), ColumnUse("vector", f"{', '.join(columns)} through {encoder.name}")


def extend(
    data: Dataset,
    nodes: NodeSources,
    edges: EdgeSources | None = None,
    *,
    id: str | None = None,  # noqa: A002
    label: str | None = None,
    source: str | None = None,
    target: str | None = None,
    unknown_ends: UnknownEnds = "refuse",
    dialect: Dialect = AS_USUAL,
    edge_dialect: Dialect | None = None,
    alone: bool = False,
    vectors: VectorSources = None,
    encoder: EncoderSource | None = None,
    progress: Progress = lambda done, total: None,
) -> Dataset:
    """The dataset with more nodes behind its own, encoded with its vocabulary and scaling; its models work on it.

    Ids must be new; edges may join new nodes with each other and with old ones. The class split stays as it is: a class
    name that `data` does not have becomes a class outside the split, and without a label column the classes of the new
    nodes are unknown. Where `dialect` does not say which decimal mark and words for missing values the tables have,
    they are those of the import. With `alone` the result is a network of the new nodes only. `vectors` are those of
    new nodes, where the dataset has vectors beside its table. Texts go through the encoder of the import: that of its
    folder, or `encoder`, which must be the same one.

    >>> data = read_tables({"id": ["x", "y", "z"], "size": [1, 2, 3]}, {"a": ["x", "y"], "b": ["y", "z"]})
    >>> more = extend(data, {"id": ["w"], "size": [2]}, {"a": ["w"], "b": ["x"]})
    >>> more.node_names
    ('x', 'y', 'z', 'w')
    """
    if not data.encoding:
        raise FewnodeError(f"{data.name} was not imported from tables, so how to encode new rows is not known")
    stored, encoding = _checked(data.encoding), Encoding.from_json(data.encoding)
    if len(encoding.feature_names) != data.graph.n_features:
        raise FewnodeError(
            f"{data.name}: the stored encoding has {len(encoding.feature_names):,} attributes and the graph "
            f"{data.graph.n_features:,}; import the tables again"
        )
    data = _emptied(data) if alone else data
    dialect = as_imported(dialect, stored)
    optional = [column for column in encoding.columns if column in stored["optional"]]
    beside = _needed(read_vectors(vectors), encoding, data.name)
    wanted = [column for column in encoding.columns if column not in beside and column != _made(stored)]
    rows = read_nodes(nodes, (id, stored["id"]), (label, stored["label"]), wanted, dialect, optional)
    rows = attach(rows, beside)
    if _made(stored):
        through = Encoder.of_dataset(stored["encoder"], encoder, data.name)
        rows = attach(rows, {COLUMN: through.vectors(list(documents(rows, encoding.text)), progress)})
    elif encoder is not None:
        raise FewnodeError(f"texts of {data.name} went through no encoder, so those of new nodes cannot")
    old = pa.array(data.node_names or [str(i) for i in range(data.graph.n)], TEXT)
    ids = pa.concat_arrays([old, rows.new_ids(old, data.name)])
    owner = rows.name if alone else f"{data.name} or {rows.name}"
    options = EdgeOptions(source, target, unknown_ends, edge_dialect or dialect)
    none = Edges(np.zeros((2, 0), np.int64), [])
    linked = none if edges is None else read_edges(edges, ids, owner, rows.headers, options)
    x, missing = encoding.encode(rows)
    directed = stored["directed"]
    every = np.concatenate([data.graph.edge_index(), linked.edge_index], axis=1)
    every_x, blocks = _stack(data.graph.x, x), data.graph.blocks
    graph = Graph.from_edges(every, len(ids), every_x, directed=directed, blocks=blocks)
    y, class_names, unknown = read_labels(rows, data.class_names)
    roles = {"text": encoding.text, "numeric": encoding.numeric, "category": encoding.category}
    roles |= {"vector": encoding.vector}
    uses = {column: role for role, columns in roles.items() for column in columns}
    tables = rows.facts({column: uses.get(column, NOT_USED) for column in rows.attributes})
    added = {
        "nodes": tables,
        "columns": {column: use for table in tables for column, use in table["columns"].items()},
        "why": {column: f"no attribute of {data.name}" for column in rows.attributes if column not in uses},
        "missing": missing,
        **_about_missing(rows, encoding),
        "labels": unknown,
        "edges": linked.tables,
        "repeated_edges": linked.proper + _count_edges(data.graph, directed) - _count_edges(graph, directed),
        "new_classes": list(class_names[len(data.class_names) :]),
        "warnings": [*_warnings(rows, linked), *filter(None, [several_in_a_cell(y, class_names)])],
    }
    return replace(
        data,
        graph=graph,
        y=np.concatenate([data.y, y]),
        class_names=class_names,
        node_names=tuple(ids.to_pylist()),
        info={**data.info, "extended": [*data.info.get("extended", []), added]},
    )


def _made(stored: Mapping[str, Any]) -> str | None:
    """The column that an encoder makes, if there is one."""
    return COLUMN if stored.get("encoder") is not None else None


def _needed(vectors: dict[str, Any], encoding: Encoding, owner: str) -> dict[str, Any]:
    """Vectors beside the table of new nodes; each must be a column of the dataset."""
    if unknown := [name for name in vectors if name not in encoding.vector]:
        known = ", ".join(encoding.vector) or "none"
        raise FewnodeError(
            f"{owner} has no vectors {unknown[0]!r}{closest(unknown[0], encoding.vector)}; it has {known}"
        )
    return vectors


def _about_missing(rows: NodeRows, encoding: Encoding) -> dict[str, Any]:
    """Which words said that a value is missing, and which columns have a flag that says so."""
    words = {column: rows.missing_words(column) for column in encoding.columns}
    return {"missing_words": {column: found for column, found in words.items() if found}, "flags": [*encoding.flags]}


def _checked(stored: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is stored beside the encoding of columns; it may come from anybody."""
    lists = [stored.get("optional"), stored.get("missing") or []]
    words = [word for each in lists if isinstance(each, list) for word in each]
    maybe = [stored.get("label"), stored.get("decimal")]
    fits = isinstance(stored.get("id"), str) and isinstance(stored.get("directed"), bool)
    fits &= all(isinstance(each, list) for each in lists) and all(isinstance(word, str) for word in words)
    fits &= isinstance(stored.get("encoder", {}), dict)
    if not fits or not all(each is None or isinstance(each, str) for each in maybe):
        raise FewnodeError("the stored encoding of its columns is not one that fewnode wrote")
    return stored


def as_imported(dialect: Dialect, stored: Mapping[str, Any]) -> Dialect:
    """The dialect, with what it does not say about values as it was when the dataset was made."""
    decimal, missing = stored.get("decimal"), stored.get("missing")
    return replace(
        dialect,
        decimal=decimal if dialect.decimal is None else dialect.decimal,
        missing=missing and tuple(missing) if dialect.missing is None else dialect.missing,
    )


def _warnings(rows: NodeRows, edges: Edges) -> list[str]:
    """What may not be as the user thinks, though nothing is wrong with the tables."""
    found = []
    spaced = pc.sum(pc.not_equal(pc.utf8_trim_whitespace(rows.ids), rows.ids)).as_py()
    if spaced:
        names = "node id has spaces around it" if spaced == 1 else "node ids have spaces around them"
        found.append(f"{spaced:,} {names}; ids are compared as they are written")
    for table in edges.tables:
        found += [f"{table['file']}: {describe_near_miss(each)}; not matched" for each in table["near_misses"]]
    if edges.tables and not edges.proper:
        found.append("no edge is left, so no node has a neighbour")
    if any(table["kind"] for table in edges.tables):
        found.append("kinds of edges are not used yet: all are joined into one")
    return found


def _emptied(data: Dataset) -> Dataset:
    """The dataset without its nodes: classes, split and encoding are what is left."""
    no_edges = np.zeros((2, 0), np.int64)
    graph = Graph.from_edges(no_edges, 0, data.graph.x[:0], blocks=data.graph.blocks)
    return replace(data, graph=graph, y=data.y[:0], node_names=())


def _stack(above: Attributes, below: Attributes) -> Attributes:
    if is_sparse(above) or is_sparse(below):
        return sp.vstack([sp.csr_array(above), sp.csr_array(below)], format="csr")
    return np.concatenate([above, below])


def _count_edges(graph: Graph, directed: bool) -> int:
    """As `Graph.n_edges`, for one of which we know whether it is directed."""
    return int(graph.adj.nnz) if directed else int(graph.adj.nnz) // 2
