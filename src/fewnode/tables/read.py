"""A user's own network: tables of nodes and of edges become a dataset, which keeps how they were read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import scipy.sparse as sp
from pydantic import BaseModel, ValidationError

from fewnode._system.files import read_lines
from fewnode._system.memory import parse_size
from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.graph import Attributes
from fewnode.naming import two_alike
from fewnode.relations import Scaling, read_relations
from fewnode.tables.classes import Classes, choose_classes, several_in_a_cell
from fewnode.tables.columns import read_vectors
from fewnode.tables.compact import compact_graph
from fewnode.tables.edges import Edges, EdgeSources, Nodes, read_edges
from fewnode.tables.encode import Encoding, documents, learn
from fewnode.tables.encoder import COLUMN, Encoder, Progress, StoredEncoder
from fewnode.tables.files import Database
from fewnode.tables.roles import ColumnUse, column_uses
from fewnode.tables.rows import NodeSources, Rows, read_nodes, with_vectors
from fewnode.tables.spec import SHARES, ImportSpec
from fewnode.tables.splits import choose_split
from fewnode.tables.words import STOP_WORDS

MANY = 0.1
"""Share of the texts without a word from which on it is told."""
MAX_TEXT = 4_000
"""Characters of a text that are kept for people."""
NAME_BYTES = 300
"""Of memory for the name of a node: as text, in a table that finds it, and as a string of Python."""


class Imported(BaseModel, extra="forbid"):
    """What a dataset keeps of its import, so that new rows are read as its own were."""

    spec: dict[str, Any]
    """The columns of `ImportSpec` that new rows have too, and how their values are written."""
    encoding: Encoding
    optional: list[str]
    """Columns that some table lacked."""
    directed: bool
    encoder: StoredEncoder | None = None
    scalings: dict[str, Scaling] = {}
    """How the weights of each relation were scaled."""

    @classmethod
    def of(cls, data: Dataset) -> Imported:
        """What a dataset, which may be anybody's, says of its import."""
        if not data.encoding:
            raise FewnodeError(f"{data.name} was not imported from tables, so how to encode new rows is not known")
        try:
            kept = cls.model_validate(data.encoding)
            kept.rows_like_these()
        except (ValidationError, FewnodeError):
            raise FewnodeError(
                f"{data.name}: the stored encoding of its columns is not one that fewnode wrote"
            ) from None
        return kept

    def rows_like_these(self, given: Mapping[str, Any] | None = None) -> ImportSpec:
        """How new rows are read: as the old ones, but for what is given."""
        return ImportSpec.of({**self.spec, **{name: v for name, v in (given or {}).items() if v is not None}})

    def scaling(self, relation: str) -> Scaling:
        return self.scalings.get(relation, Scaling())


def read_tables(
    nodes: NodeSources,
    edges: EdgeSources,
    *,
    spec: ImportSpec | None = None,
    progress: Progress = lambda done, total: None,
    room: Path | None = None,
    **options: Any,
) -> Dataset:
    """A dataset from tables of nodes and of edges: files, frames, mappings of columns, or any Arrow stream.

    Each may be a list of tables, or a mapping from kinds of nodes or of edges to tables; `EdgeTable` is a table whose
    ends are in columns of its own. All other arguments are the fields of `ImportSpec`, or `spec` has them. Columns that
    none of them names are used as what they look like, unless `only=True`. Numbers that are missing count as the mean,
    and a flag says so. Several classes a node: `label_separator` between them in a cell, or `labels`, a table of nodes
    and classes. The weights of repeated edges add up; without weights an edge counts once. Identical rows of nodes
    count once. `progress` is told of texts that are encoded. With `memory`, what does not fit waits in the folder
    `room`. What became of each column, and what was not used, is in the result's `info`.

    >>> data = read_tables({"id": ["x", "y", "z"], "size": [1, 2, 3]}, {"a": ["x", "y"], "b": ["y", "z"]})
    >>> print(data.graph)
    3 nodes, 2 edges, 1 attributes
    """
    if spec is not None and options:
        raise FewnodeError(f"{next(iter(options))} beside spec: give one of them")
    spec = spec or ImportSpec.of(options)
    with Database(parse_size(spec.memory) if spec.memory else None, room) as database:
        rows = with_vectors(read_nodes(database, nodes, spec), read_vectors(spec.vectors, spec.vector_files))
        if database.limit and len(rows) * NAME_BYTES > database.limit:
            need = -(-len(rows) * NAME_BYTES // 2**30)
            raise FewnodeError(
                f"{rows.name}: the names of {len(rows):,} nodes take about {need} GB; say `memory` {need}G or more"
            )
        linked = read_edges(database, edges, Nodes(rows.ids, rows.name, rows.headers), spec)
        if not any(table["rows"] for table in linked.tables):
            raise FewnodeError(f"{' and '.join(table['file'] for table in linked.tables)}: no edge in it")
        return _dataset(rows, linked, spec, progress)


def _dataset(rows: Rows, linked: Edges, spec: ImportSpec, progress: Progress) -> Dataset:
    classes = choose_classes(rows)
    if spec.no_label and (classes.y >= 0).any():
        raise FewnodeError(f"{rows.name}: `no_label`, but there are classes in it; leave that option out")
    uses = column_uses(rows, classes.y)
    encoder = None if spec.encoder is None else Encoder.of(spec.encoder)
    if encoder is not None:
        text = [column for column, use in uses.items() if use.role == "text"]
        if not text:
            raise FewnodeError(f"{rows.name}: an encoder needs text, and no column is; name one: `text` COLUMN")
        vectors = encoder.vectors(list(documents([rows.column(column) for column in text])), progress)
        if np.isnan(vectors).all():
            raise FewnodeError(f"{rows.name}: no text to encode in {', '.join(text)}")
        rows = with_vectors(rows, {COLUMN: vectors})
        uses[COLUMN] = ColumnUse("vector", f"{', '.join(text)} through {encoder.stored.name}")
    encoding = learn(rows, uses, _words(spec))
    x, missing = encoding.encode(rows)
    limited = {"from_edges": compact_graph} if rows.database.limit else {}
    graph, facts = read_relations(linked.rows, len(rows), x, directed=spec.directed, scale=spec.weight_scale, **limited)
    kinds, kind_names = rows.kinds_of_nodes()
    info = about(rows, encoding, {column: use.role for column, use in uses.items()}, classes, linked)
    own = {use: column for table in reversed(rows.tables) for column, use in table.uses.items()}
    kept = Imported(
        spec=spec.kept() | own | ({"kind": rows.kind} if rows.kind else {}),
        encoding=encoding,
        optional=[column for column in rows.attributes if column in rows.partial and column in encoding.roles],
        directed=spec.directed if isinstance(spec.directed, bool) else graph.directed,
        encoder=None if encoder is None else encoder.stored,
        scalings=facts.scalings,
    )
    warnings = [*(use.warning for use in uses.values()), _wordless(rows, encoding, x), *info["warnings"]]
    warnings += [] if graph.n_edges else ["no edge is left, so no node has a neighbour"]
    split = spec.class_lists or spec.split or SHARES
    return Dataset(
        graph=replace(graph, blocks=encoding.blocks),
        y=classes.y,
        split=choose_split(classes.every, classes.names, split, spec.seed, spec.min_nodes),
        class_names=classes.names,
        node_names=tuple(rows.ids.to_pylist()),
        feature_names=encoding.feature_names or None,
        name=spec.name or info["nodes"][0]["file"].split(".")[0],
        info={
            **info,
            **({"link": spec.link} if spec.link else {}),
            "why": {column: use.why for column, use in uses.items() if use.why},
            "attributes": encoding.counts,
            "missing": missing,
            "repeated_edges": facts.repeated,
            **facts.info,
            "warnings": list(filter(None, warnings)),
        },
        encoding=kept.model_dump(mode="json"),
        labels=classes.labels,
        kind=kinds,
        kind_names=kind_names,
        texts=None if rows.database.limit else texts_of(rows, encoding),
    )


def texts_of(rows: Rows, encoding: Encoding) -> tuple[str, ...] | None:
    """What the columns of text say of each node, for people to read; None where there is none."""
    if not encoding.text:
        return None
    return tuple(text[:MAX_TEXT] for text in documents([rows.column(column) for column in encoding.text]))


def _words(spec: ImportSpec) -> dict[str, Any]:
    """Which words of the text columns become attributes."""
    stop = {"english": STOP_WORDS, "none": ()}.get(str(spec.stop_words), spec.stop_words)
    if isinstance(stop, (str, Path)):
        stop = [line.strip().lower() for _, line in read_lines(Path(stop))]
    limits = {"size": spec.vocabulary, "min_documents": spec.min_count, "max_share": spec.max_share}
    return {**limits, "stop_words": frozenset(stop)}


# --- what a user should know of the tables, though nothing may be wrong with them ---------------------------------


def about(rows: Rows, encoding: Encoding, uses: Mapping[str, str], classes: Classes, linked: Edges) -> dict[str, Any]:
    """What became of each table: columns, words that said that a value is missing, flags that say so, warnings."""
    tables, spec = rows.facts(uses), rows.spec
    words = {name: rows.column(name).missing_words() for name in encoding.columns if rows.is_read(name)}
    warnings = []
    if spaced := pc.sum(pc.not_equal(pc.utf8_trim_whitespace(rows.ids), rows.ids)).as_py():
        names = "node id has spaces around it" if spaced == 1 else "node ids have spaces around them"
        warnings.append(f"{spaced:,} {names}; ids are compared as they are written")
    for table in linked.tables:
        if names := " or ".join(map(repr, table["unknown_names"])):
            warnings.append(f"{table['file']}: no node is called {names}; edges to them are dropped")
        warnings += [f"{table['file']}: {remark}" for remark in table["without"]]
    warnings.append(two_alike(classes.names) or "")
    if spec.label_separator is None and classes.labels is None:
        warnings.append(several_in_a_cell(classes.y, classes.names) or "")
    return {
        "nodes": tables,
        "columns": {column: use for table in tables for column, use in table["columns"].items()},
        "missing_words": {column: counts for column, counts in words.items() if counts},
        "flags": [*encoding.flags],
        "labels": classes.facts,
        "repeated_rows": rows.repeated,
        "edges": linked.tables,
        "warnings": list(filter(None, warnings)),
    }


def _wordless(rows: Rows, encoding: Encoding, x: Attributes) -> str | None:
    """A remark, if of many texts no word is left."""
    if not encoding.text or COLUMN in encoding.vector:
        return None
    texts = np.logical_or.reduce([pc.is_valid(rows.column(column).labels).to_numpy() for column in encoding.text])
    words = np.diff(sp.csr_array(x[:, : len(encoding.vocabulary)]).indptr)
    count, bare = int(texts.sum()), int((texts & (words == 0)).sum())
    if bare <= MANY * count:
        return None
    why = "left out are words of too few or too many nodes, and stop words (`min_count`, `max_share`, `stop_words`)"
    return f"{bare:,} of {count:,} texts have no word that counts: {why}"
