"""A user's own network: tables of nodes and of edges become a dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import scipy.sparse as sp

from fewnode.dataset import Dataset
from fewnode.datasets.arrow import AS_USUAL, Dialect, Source
from fewnode.datasets.edges import EdgeOptions, Edges, EdgeSources, UnknownEnds, read_edges
from fewnode.datasets.encode import Encoding, Words, documents
from fewnode.datasets.graph_files import read_graph_file
from fewnode.datasets.growth import EdgeMemory
from fewnode.datasets.labels import several_in_a_cell
from fewnode.datasets.memberships import Classes, ClassRules, choose_classes, class_rules
from fewnode.datasets.nodes import IDS, LABELS, NodeSources, read_nodes
from fewnode.datasets.roles import NOT_USED, ColumnUse, column_uses, given_roles
from fewnode.datasets.rows import NodeRows
from fewnode.datasets.scratch import Scratch
from fewnode.datasets.splits import SHARES, Split, choose_split
from fewnode.datasets.vector_files import VectorSources, attach, read_vectors
from fewnode.edges.relations import Directed, read_relations
from fewnode.errors import FewnodeError
from fewnode.graph import Attributes, Graph
from fewnode.naming import two_alike
from fewnode.tables.encoder import COLUMN, Encoder, EncoderSource, Progress

MANY = 0.1
"""Share of the texts without a word from which on it is told."""
BLOCK = 100_000
"""Rows that are looked at a time."""


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
    disk: Scratch | None = None,
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
    from 0 on, scaled as `weight_scale` says: `none` or `log`; by default by logarithm if a few are far larger than the
    rest. The weights of repeated edges add up; without weights an edge counts once. `relation` is a column with the
    kind of each edge, and `directed` says whether edges have a direction, or the edges of which kinds.

    `split` is shares `50/20/30`, class counts `40,17,20`, or lists of class names under `train`, `valid` and `test`.
    `dialect` says how files of text are written, `edge_dialect` if those of edges are written in another way. What
    became of each column, and what was not used, is in the result's `info`. With `disk`, files that are larger than
    memory are read into that room, and the arrays of the result are mapped from it.

    >>> data = read_tables({"id": ["x", "y", "z"], "size": [1, 2, 3]}, {"a": ["x", "y"], "b": ["y", "z"]})
    >>> print(data.graph)
    3 nodes, 2 edges, 1 attributes
    """
    given = given_roles(text=text, numeric=numeric, category=category, vector=vector)
    own = (label,) if labels is not None else (label, *LABELS)
    if disk is not None and (vectors is not None or encoder is not None):
        raise FewnodeError(
            "vectors of a file or of an encoder are held in memory; make them a column of the Parquet table, or "
            "leave out --memory"
        )
    beside = read_vectors(vectors)
    rows = attach(read_nodes(nodes, (id, *IDS), own, list(given), dialect, kind=kind, disk=disk), beside)
    if disk is not None:
        disk.check_names(len(rows), rows.name)
    options = EdgeOptions(source, target, unknown_ends, edge_dialect or dialect, weight, relation, disk)
    linked = read_edges(edges, rows.ids, rows.name, rows.headers, options)
    if not any(table["rows"] for table in linked.tables):
        raise FewnodeError(f"{' and '.join(table['file'] for table in linked.tables)}: no edge in it")
    rules = class_rules(label_separator, hierarchy, dialect)
    classes = choose_classes(rows, rules, label, labels, dialect)
    uses = column_uses(rows, given, classes.y)
    uses |= {column: ColumnUse("vector", "beside the table") for column in beside}
    if rows.kind is not None:
        uses[rows.kind] = ColumnUse("category", "the kind of node")
    through = None if encoder is None else Encoder.of(encoder)
    if through is not None:
        rows, uses[COLUMN] = _encoded(rows, uses, through, progress)
    roles = {column: use.role for column, use in uses.items() if use.role != NOT_USED}
    encoding = Encoding.learn(rows, roles, words or Words())
    x, missing = encoding.encode(rows, disk)
    if disk is not None and not linked.rows.is_plain:
        disk.check_edges(len(linked.rows))
    from_edges = Graph.from_edges if disk is None else disk.graph
    graph, facts = read_relations(
        linked.rows, len(rows), x, directed=directed, scale=weight_scale, from_edges=from_edges
    )
    graph = replace(graph, blocks=encoding.blocks)
    tables = rows.facts({column: use.role for column, use in uses.items()})
    warnings = [use.warning for use in uses.values() if use.warning]
    warnings += filter(None, [wordless(rows, encoding, x)])
    kinds, kind_names = rows.kinds_of_nodes()
    memory = EdgeMemory(weight, relation, facts.scalings)
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
            **about_missing(rows, encoding),
            "labels": classes.facts,
            "edges": linked.tables,
            "repeated_edges": facts.repeated,
            **facts.info,
            "warnings": [*warnings, *table_warnings(rows, linked, graph.n_edges), *class_warnings(classes, rules)],
        },
        encoding={
            "id": rows.parts[0].id,
            "label": next((part.label for part in rows.parts if part.label), None),
            "directed": directed if isinstance(directed, bool) else graph.directed,
            "optional": [column for column in rows.partial if column in roles],
            "decimal": dialect.decimal,
            "missing": None if dialect.missing is None else list(dialect.missing),
            **({"encoder": through.stored.model_dump()} if through else {}),
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
    return attach(rows, {COLUMN: vectors}), ColumnUse("vector", f"{', '.join(columns)} through {encoder.stored.name}")


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


# --- what a user should know of the tables, though nothing is wrong with them ---


def about_missing(rows: NodeRows, encoding: Encoding) -> dict[str, Any]:
    """Which words said that a value is missing, and which columns have a flag that says so."""
    words = {column: rows.missing_words(column) for column in encoding.columns}
    return {"missing_words": {column: found for column, found in words.items() if found}, "flags": [*encoding.flags]}


def wordless(rows: NodeRows, encoding: Encoding, x: Attributes) -> str | None:
    """A remark, if of many texts no word is left."""
    if not encoding.text or COLUMN in encoding.vector:
        return None
    texts = np.logical_or.reduce([pc.is_valid(rows.labels(column)).to_numpy() for column in encoding.text])
    parts = [x[at : at + BLOCK, : len(encoding.vocabulary)] for at in range(0, len(rows), BLOCK)]
    words = np.concatenate([np.diff(sp.csr_array(part).indptr) for part in parts])
    count, bare = int(texts.sum()), int((texts & (words == 0)).sum())
    if bare <= MANY * count:
        return None
    why = "left out are words of too few or too many nodes, and stop words (--min-count, --max-share, --stop-words)"
    return f"{bare:,} of {count:,} texts have no word that counts: {why}"


def table_warnings(rows: NodeRows, edges: Edges, left: int) -> list[str]:
    """What may not be as the user thinks, though nothing is wrong with the tables. `left`: edges of the network."""
    found = []
    spaced = pc.sum(pc.not_equal(pc.utf8_trim_whitespace(rows.ids), rows.ids)).as_py()
    if spaced:
        names = "node id has spaces around it" if spaced == 1 else "node ids have spaces around them"
        found.append(f"{spaced:,} {names}; ids are compared as they are written")
    for table in edges.tables:
        if names := table["unknown_names"]:
            found.append(
                f"{table['file']}: no node is called {' or '.join(map(repr, names))}; edges to them are dropped"
            )
        found += [f"{table['file']}: {remark}" for remark in table["without"]]
    if edges.tables and not left:
        found.append("no edge is left, so no node has a neighbour")
    return found


def class_warnings(classes: Classes, rules: ClassRules) -> list[str]:
    told = [two_alike(classes.names)]
    if rules.separator is None and classes.labels is None:
        told.append(several_in_a_cell(classes.y, classes.names))
    return [each for each in told if each]
