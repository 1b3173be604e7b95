"""Later tables extend a dataset: new nodes, encoded as its own were, and their edges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from fewnode.class_labels import as_members
from fewnode.dataset import Dataset
from fewnode.datasets.arrow import AS_USUAL, TEXT, Dialect, Source
from fewnode.datasets.edges import NO_EDGES, EdgeOptions, EdgeSources, UnknownEnds, read_edges
from fewnode.datasets.encode import Encoding, documents
from fewnode.datasets.growth import EdgeMemory, emptied, grown
from fewnode.datasets.memberships import Classes, ClassRules, choose_classes
from fewnode.datasets.nodes import NodeSources, named_tables, read_nodes
from fewnode.datasets.roles import NOT_USED
from fewnode.datasets.rows import NodeRows
from fewnode.datasets.tables import about_missing, class_warnings, table_warnings
from fewnode.datasets.vector_files import VectorSources, attach, read_vectors
from fewnode.errors import FewnodeError, closest
from fewnode.graph import Attributes, is_sparse
from fewnode.tables.encoder import COLUMN, Encoder, EncoderSource, Progress


def extend(
    data: Dataset,
    nodes: NodeSources,
    edges: EdgeSources | None = None,
    *,
    id: str | None = None,  # noqa: A002
    label: str | None = None,
    labels: Source | None = None,
    source: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    relation: str | None = None,
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
    they are those of the import, and so are the columns `weight` and `relation` of the edges. Edges must be of
    the kinds that `data` has, and their weights are brought to its scale. With `alone` the result is a network of the
    new nodes only. `vectors` are those of new nodes, where the dataset has vectors beside its table. Texts
    go through the encoder of the import: that of its folder, or `encoder`, which must be the same one.

    >>> from fewnode import read_tables
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
    own = (label,) if labels is not None else (label, stored["label"])
    rows = read_nodes(nodes, (id, stored["id"]), own, wanted, dialect, optional, stored.get("kind"))
    rows = attach(rows, beside)
    if _made(stored):
        through = Encoder.of_dataset(stored["encoder"], encoder, data.name)
        rows = attach(rows, {COLUMN: through.vectors(list(documents(rows, encoding.text)), progress)})
    elif encoder is not None:
        raise FewnodeError(f"texts of {data.name} went through no encoder, so those of new nodes cannot")
    old = pa.array(data.node_names or [str(i) for i in range(data.graph.n)], TEXT)
    ids = pa.concat_arrays([old, rows.new_ids(old, data.name)])
    owner = rows.name if alone else f"{data.name} or {rows.name}"
    memory = EdgeMemory.from_json(stored.get("edges"))
    named = edges is not None and any(kind is not None for kind, _ in named_tables(edges))
    relation = relation if named else relation or memory.relation
    weight = weight or memory.weight
    options = EdgeOptions(source, target, unknown_ends, edge_dialect or dialect, weight, relation)
    linked = NO_EDGES if edges is None else read_edges(edges, ids, owner, rows.headers, options)
    x, missing = encoding.encode(rows)
    every, directed = _stack(data.graph.x, x), stored["directed"]
    graph, facts = grown(data.graph, len(ids), every, linked.rows, memory, directed, data.name)
    graph = replace(graph, blocks=data.graph.blocks)
    rules = ClassRules.from_json(stored.get("classes"))
    classes = choose_classes(rows, rules, label, labels, dialect, data.class_names)
    roles = {"text": encoding.text, "numeric": encoding.numeric, "category": encoding.category}
    roles |= {"vector": encoding.vector}
    uses = {column: role for role, columns in roles.items() for column in columns}
    tables = rows.facts({column: uses.get(column, NOT_USED) for column in rows.attributes})
    added = {
        "nodes": tables,
        "columns": {column: use for table in tables for column, use in table["columns"].items()},
        "why": {column: f"no attribute of {data.name}" for column in rows.attributes if column not in uses},
        "missing": missing,
        **about_missing(rows, encoding),
        "labels": classes.facts,
        "edges": linked.tables,
        "repeated_edges": facts.repeated,
        "new_classes": list(classes.names[len(data.class_names) :]),
        "warnings": [*table_warnings(rows, linked, linked.rows.proper), *class_warnings(classes, rules)],
    }
    return replace(
        data,
        graph=graph,
        y=np.concatenate([data.y, classes.y]),
        class_names=classes.names,
        node_names=tuple(ids.to_pylist()),
        info={**data.info, "extended": [*data.info.get("extended", []), added]},
        **_memberships(data, classes),
        **_node_kinds(data, rows),
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


def _memberships(data: Dataset, classes: Classes) -> dict[str, Any]:
    """Those of old and new nodes, if some are in several classes."""
    if data.labels is None and classes.labels is None:
        return {}
    old, new = (
        as_members(y, found, len(classes.names)) for y, found in ((data.y, data.labels), (classes.y, classes.labels))
    )
    return {"labels": sp.vstack([old, new], format="csr")}


def _node_kinds(data: Dataset, rows: NodeRows) -> dict[str, Any]:
    if data.kind is None:
        return {}
    new, names = rows.kinds_of_nodes(data.kind_names)
    more = np.zeros(len(rows), np.int64) if new is None else new
    return {"kind": np.concatenate([data.kind, more]), "kind_names": names or data.kind_names}


def _checked(stored: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is stored beside the encoding of columns; it may come from anybody."""
    lists = [stored.get("optional"), stored.get("missing") or []]
    words = [word for each in lists if isinstance(each, list) for word in each]
    maybe = [stored.get("label"), stored.get("decimal"), stored.get("kind")]
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


def _emptied(data: Dataset) -> Dataset:
    """The dataset without its nodes: classes, split and encoding are what is left."""
    labels, kind = (None if each is None else each[:0] for each in (data.labels, data.kind))
    graph = replace(emptied(data.graph), blocks=data.graph.blocks)
    return replace(data, graph=graph, y=data.y[:0], node_names=(), labels=labels, kind=kind)


def _stack(above: Attributes, below: Attributes) -> Attributes:
    if is_sparse(above) or is_sparse(below):
        return sp.vstack([sp.csr_array(above), sp.csr_array(below)], format="csr")
    return np.concatenate([above, below])
