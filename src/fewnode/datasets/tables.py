"""A user's own network: tables of nodes and of edges become a dataset, and later tables extend it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from fewnode.dataset import Dataset, as_members
from fewnode.datasets.arrow import AS_USUAL, TEXT, Dialect, Source
from fewnode.datasets.beside import VectorSources, attach, read_vectors
from fewnode.datasets.edges import (
    NO_EDGES,
    EdgeOptions,
    Edges,
    EdgeSources,
    UnknownEnds,
    read_edges,
)
from fewnode.datasets.encode import Encoding, Words, documents
from fewnode.datasets.encoder import COLUMN, Encoder, EncoderSource, Progress
from fewnode.datasets.graph_files import read_graph_file
from fewnode.datasets.growth import EdgeMemory, emptied, grown
from fewnode.datasets.labels import several_in_a_cell
from fewnode.datasets.memberships import Classes, ClassRules, class_rules, read_classes, read_label_table
from fewnode.datasets.near_misses import describe_near_miss
from fewnode.datasets.nodes import IDS, LABELS, NodeSources, named_tables, read_nodes
from fewnode.datasets.roles import NOT_USED, ColumnUse, column_uses, given_roles
from fewnode.datasets.rows import NodeRows
from fewnode.datasets.splits import SHARES, Split, choose_split
from fewnode.datasets.times import TimeRules
from fewnode.errors import FewnodeError, closest
from fewnode.graph import Attributes, is_sparse
from fewnode.relations import Directed, EdgeRules, edges_info, read_relations


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
    kind: str | None = None,
    label_separator: str | None = None,
    labels: Source | None = None,
    hierarchy: str | Source | None = None,
    source: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    weight_scale: str | None = None,
    relation: str | None = None,
    time: str | None = None,
    half_life: str | None = None,
    before: str | None = None,
    repeated: str | None = None,
    directed: Directed = False,
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
    """A dataset from tables of nodes and of edges: files, pandas frames, mappings of columns, or any Arrow stream.

    Each may be a list of tables, or a mapping from kinds of nodes or of edges to tables. `id` is the column of
    node names (by default `id`, `node`, `name` or else the first) and `label` that of classes (by default `label` or
    `class`; without one nobody is labelled); an empty cell is an unknown class. The columns in `text`, `numeric`,
    `category` and `vector` become attributes; if none is named, every other column is used as what it looks like.
    `vectors` are beside the table: a matrix or an .npy file with a row for each node, or several by name. `encoder` is
    a function from a list of texts to a matrix, or the folder of a model; its vectors join the words of the text, and
    `progress` is told of texts that are encoded.

    Several classes a node: `label_separator` between them in a cell, or `labels`, a table of nodes and classes.
    `hierarchy` is a mark, such as `/` where a member of `a/b` is one of `a` too, or a table `class,parent`. `kind` is
    a column with the kind of each node.

    `source` and `target` are by default columns of that name or else the first two. `weight` is a column of numbers
    from 0 on, scaled as `weight_scale` says: `none`, `log` or `rank`; by default by logarithm if a few are far larger
    than the rest. `relation` is a column with the kind of each edge, and `directed` says whether edges have a
    direction, or the edges of which kinds. `repeated` edges give the `sum` of their weights, their `count`, or the
    largest weight `once`. `time` is a column of dates: an edge that is a `half_life` such as `30d` older weighs half,
    and only those `before` a date are read.

    `split` is shares `50/20/30`, class counts `40,17,20`, or lists of class names under `train`, `valid` and `test`.
    `dialect` says how files of text are written, `edge_dialect` if those of edges are written in another way. What
    became of each column, and what was not used, is in the result's `info`.

    >>> data = read_tables({"id": ["x", "y", "z"], "size": [1, 2, 3]}, {"a": ["x", "y"], "b": ["y", "z"]})
    >>> print(data.graph)
    3 nodes, 2 edges, 1 attributes
    """
    given = given_roles(text=text, numeric=numeric, category=category, vector=vector)
    own = (label,) if labels is not None else (label, *LABELS)
    beside = read_vectors(vectors)
    rows = attach(read_nodes(nodes, (id, *IDS), own, list(given), dialect, kind=kind), beside)
    when = _time_rules(time, half_life, before)
    options = EdgeOptions(source, target, unknown_ends, edge_dialect or dialect, weight, relation, when)
    linked = read_edges(edges, rows.ids, rows.name, rows.headers, options)
    if not any(table["rows"] for table in linked.tables):
        raise FewnodeError(f"{' and '.join(table['file'] for table in linked.tables)}: no edge in it")
    rules = class_rules(label_separator, hierarchy, dialect)
    classes = _classes(rows, rules, label, labels, dialect)
    uses = column_uses(rows, given, classes.y)
    uses |= {column: ColumnUse("vector", "beside the table") for column in beside}
    if rows.kind is not None:
        uses[rows.kind] = ColumnUse("category", "the kind of node")
    through = None if encoder is None else Encoder.of(encoder)
    if through is not None:
        rows, uses[COLUMN] = _encoded(rows, uses, through, progress)
    roles = {column: use.role for column, use in uses.items() if use.role != NOT_USED}
    encoding = Encoding.learn(rows, roles, words or Words())
    x, missing = encoding.encode(rows)
    graph, facts = read_relations(linked.rows, len(rows), x, EdgeRules(directed, weight_scale, repeated))
    graph = replace(graph, blocks=encoding.blocks)
    tables = rows.facts({column: use.role for column, use in uses.items()})
    warnings = [use.warning for use in uses.values() if use.warning]
    kinds, kind_names = rows.kinds_of_nodes()
    memory = EdgeMemory(weight, relation, when, linked.now, repeated, facts.scalings)
    return Dataset(
        graph=graph,
        y=classes.y,
        split=choose_split(classes.every, classes.names, split, seed, min_nodes),
        class_names=classes.names,
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
            "labels": classes.facts,
            "edges": linked.tables,
            "repeated_edges": facts.repeated,
            **edges_info(facts),
            **({} if half_life is None else {"half_life": half_life}),
            "warnings": [*warnings, *_warnings(rows, linked), *_class_warnings(classes, rules)],
        },
        encoding={
            "id": rows.parts[0].id,
            "label": next((part.label for part in rows.parts if part.label), None),
            "directed": directed if isinstance(directed, bool) else graph.directed,
            "optional": [column for column in rows.partial if column in roles],
            "decimal": dialect.decimal,
            "missing": None if dialect.missing is None else list(dialect.missing),
            **({"encoder": through.to_json()} if through else {}),
            **({} if not graph.relations else {"edges": memory.to_json()}),
            **({} if rules.is_plain else {"classes": rules.to_json()}),
            **({} if rows.kind is None else {"kind": rows.kind}),
            **encoding.to_json(),
        },
        labels=classes.labels,
        kind=kinds,
        kind_names=kind_names,
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


def read_graph(path: Path, *, directed: Directed | None = None, weight: str | None = None, **options: Any) -> Dataset:
    """A dataset from a GraphML or GML file; `options` are those of `read_tables`.

    Edges have a direction if the file says so, and weights if they have an attribute `weight`. What GML calls the
    label of a node is its name.
    """
    dialect = options.get("dialect") or AS_USUAL
    file = read_graph_file(path, dialect.encoding)
    nodes, edges = file.tables(path)
    if weight is None and "weight" in edges.data.column_names and options.get("relation") != "weight":
        weight = "weight"
    options = {"source": "source", "target": "target", "id": "id", "name": path.name.split(".")[0], **options}
    data = read_tables(nodes, edges, weight=weight, directed=file.directed if directed is None else directed, **options)
    return replace(data, info={**data.info, "unused": file.unused}) if file.unused else data


def _time_rules(column: str | None, half_life: str | None, before: str | None) -> TimeRules | None:
    if column is not None:
        return TimeRules(column, half_life, before)
    if half_life is not None or before is not None:
        raise FewnodeError("a half-life and a date before which edges count need the column that says when edges were")
    return None


def _classes(
    rows: NodeRows,
    rules: ClassRules,
    label: str | None,
    table: Source | None,
    dialect: Dialect,
    known: tuple[str, ...] = (),
) -> Classes:
    if table is None:
        return read_classes(rows, rules, known)
    if label is not None:
        raise FewnodeError(f"classes are in column {label!r} or in a table of labels; name one of them")
    return read_label_table(table, rows.ids, rows.name, rules, dialect, known)


def _class_warnings(classes: Classes, rules: ClassRules) -> list[str]:
    if rules.separator is not None or classes.labels is not None:
        return []
    return [told for told in [several_in_a_cell(classes.y, classes.names)] if told]


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
    time: str | None = None,
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
    they are those of the import, and so are the columns `weight`, `relation` and `time` of the edges. Edges must be of
    the kinds that `data` has, and their weights are brought to its scale. With `alone` the result is a network of the
    new nodes only. `vectors` are those of new nodes, where the dataset has vectors beside its table. Texts
    go through the encoder of the import: that of its folder, or `encoder`, which must be the same one.

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
    options = _edge_options(memory, weight, relation if named else relation or memory.relation, time)
    options = options._replace(source=source, target=target, unknown_ends=unknown_ends, dialect=edge_dialect or dialect)
    linked = NO_EDGES if edges is None else read_edges(edges, ids, owner, rows.headers, options)
    x, missing = encoding.encode(rows)
    every, directed = _stack(data.graph.x, x), stored["directed"]
    graph, facts = grown(data.graph, len(ids), every, linked.rows, memory, directed, data.name)
    graph = replace(graph, blocks=data.graph.blocks)
    rules = ClassRules.from_json(stored.get("classes"))
    classes = _classes(rows, rules, label, labels, dialect, data.class_names)
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
        "labels": classes.facts,
        "edges": linked.tables,
        "repeated_edges": facts.repeated,
        "new_classes": list(classes.names[len(data.class_names) :]),
        "warnings": [*_warnings(rows, linked), *_class_warnings(classes, rules)],
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


def _edge_options(memory: EdgeMemory, weight: str | None, relation: str | None, time: str | None) -> EdgeOptions:
    """The columns as they were named now or at the import."""
    when = memory.time if time is None or memory.time is None else memory.time._replace(column=time)
    if time is not None and memory.time is None:
        raise FewnodeError("the dataset was imported without times of edges, so that of new ones says nothing")
    return EdgeOptions(weight=weight or memory.weight, relation=relation, time=when, now=memory.now)


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


def _about_missing(rows: NodeRows, encoding: Encoding) -> dict[str, Any]:
    """Which words said that a value is missing, and which columns have a flag that says so."""
    words = {column: rows.missing_words(column) for column in encoding.columns}
    return {"missing_words": {column: found for column, found in words.items() if found}, "flags": [*encoding.flags]}


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


def _warnings(rows: NodeRows, edges: Edges) -> list[str]:
    """What may not be as the user thinks, though nothing is wrong with the tables."""
    found = []
    spaced = pc.sum(pc.not_equal(pc.utf8_trim_whitespace(rows.ids), rows.ids)).as_py()
    if spaced:
        names = "node id has spaces around it" if spaced == 1 else "node ids have spaces around them"
        found.append(f"{spaced:,} {names}; ids are compared as they are written")
    for table in edges.tables:
        found += [f"{table['file']}: {describe_near_miss(each)}; not matched" for each in table["near_misses"]]
        found += [f"{table['file']}: {each}" for each in table["without"]]
    if edges.tables and not edges.proper:
        found.append("no edge is left, so no node has a neighbour")
    return found


def _emptied(data: Dataset) -> Dataset:
    """The dataset without its nodes: classes, split and encoding are what is left."""
    labels, kind = (None if each is None else each[:0] for each in (data.labels, data.kind))
    graph = replace(emptied(data.graph), blocks=data.graph.blocks)
    return replace(data, graph=graph, y=data.y[:0], node_names=(), labels=labels, kind=kind)


def _stack(above: Attributes, below: Attributes) -> Attributes:
    if is_sparse(above) or is_sparse(below):
        return sp.vstack([sp.csr_array(above), sp.csr_array(below)], format="csr")
    return np.concatenate([above, below])
