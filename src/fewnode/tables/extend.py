"""Later tables extend a dataset: new nodes, encoded as its own were, and their edges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from fewnode.class_labels import as_members
from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError, closest
from fewnode.graph import Attributes, Graph, Relation, is_sparse
from fewnode.relations import UNNAMED, EdgeFacts, EdgeRows, Scaling, adjacency
from fewnode.tables.classes import choose_classes
from fewnode.tables.columns import first_row, read_vectors
from fewnode.tables.edges import NO_EDGES, Edges, EdgeSources, Nodes, read_edges
from fewnode.tables.encode import documents
from fewnode.tables.encoder import COLUMN, Encoder, EncoderSource, Progress
from fewnode.tables.files import Database, need_columns
from fewnode.tables.plain import TEXT
from fewnode.tables.read import Imported, about, texts_of
from fewnode.tables.rows import ID, NOT_USED, NodeSources, Rows, named_tables, read_nodes, with_vectors


def extend(
    data: Dataset,
    nodes: NodeSources,
    edges: EdgeSources | EdgeRows | None = None,
    *,
    alone: bool = False,
    encoder: EncoderSource | None = None,
    progress: Progress = lambda done, total: None,
    **options: Any,
) -> Dataset:
    """The dataset with more nodes behind its own, encoded with its vocabulary and scaling; its models work on it.

    Ids must be new; edges may join new nodes with each other and with old ones. The class split stays as it is: a class
    name that `data` does not have becomes a class outside the split, and without a label column the classes of the new
    nodes are unknown. `options` are fields of `ImportSpec`; the columns, the decimal mark and the words for missing
    values are those of the import unless given. Edges must be of the kinds that `data` has, and their weights are
    brought to its scale. With `alone` the result is a network of the new nodes only. `vectors` are those of new nodes,
    where the dataset has vectors beside its table. Edges may be rows of numbers already, old nodes first. Texts go
    through the encoder of the import: that of its folder, or `encoder`, which must be the same one.

    >>> from fewnode import read_tables
    >>> data = read_tables({"id": ["x", "y", "z"], "size": [1, 2, 3]}, {"a": ["x", "y"], "b": ["y", "z"]})
    >>> more = extend(data, {"id": ["w"], "size": [2]}, {"a": ["w"], "b": ["x"]})
    >>> more.node_names
    ('x', 'y', 'z', 'w')
    """
    kept = Imported.of(data)
    encoding = kept.encoding
    if len(encoding.feature_names) != data.graph.n_features:
        raise FewnodeError(
            f"{data.name}: the stored encoding has {len(encoding.feature_names):,} attributes and the graph "
            f"{data.graph.n_features:,}; import the tables again"
        )
    data = _emptied(data) if alone else data
    if options.get("labels") is not None and options.get("label") is None:
        kept.spec.pop("label", None)
    if not isinstance(edges, EdgeRows | None) and any(kind is not None for kind, _ in named_tables(edges)):
        kept.spec.pop("relation", None)
    spec = kept.rows_like_these(options)
    vectors = read_vectors(spec.vectors, spec.vector_files)
    if unknown := [name for name in vectors if name not in encoding.vector]:
        known = ", ".join(encoding.vector) or "none"
        raise FewnodeError(
            f"{data.name} has no vectors {unknown[0]!r}{closest(unknown[0], encoding.vector)}; it has {known}"
        )
    with Database() as database:
        made = {*vectors, *([COLUMN] if kept.encoder else [])}
        wanted = [column for column in encoding.columns if column not in made]
        rows = with_vectors(read_nodes(database, nodes, spec, wanted, kept.optional), vectors)
        need_columns(rows.name, sorted(rows.headers), filter(None, [options.get("label")]))
        if kept.encoder:
            through = Encoder.of_dataset(kept.encoder.model_dump(), encoder, data.name)
            texts = list(documents([rows.column(column) for column in encoding.text]))
            rows = with_vectors(rows, {COLUMN: through.vectors(texts, progress)})
        elif encoder is not None:
            raise FewnodeError(f"texts of {data.name} went through no encoder, so those of new nodes cannot")
        old = pa.array(data.node_names or [str(i) for i in range(data.graph.n)], TEXT)
        ids = pa.concat_arrays([old, _new_ids(rows, old, data.name)])
        owner = rows.name if alone else f"{data.name} or {rows.name}"
        if isinstance(edges, EdgeRows | None):
            linked = NO_EDGES if edges is None else Edges(edges, [])
        else:
            linked = read_edges(database, edges, Nodes(ids, owner, rows.headers), spec)
        x, missing = encoding.encode(rows)
        graph, facts = grown(data, len(ids), _stack(data.graph.x, x), linked.rows, kept.directed, kept.scaling)
        classes = choose_classes(rows, data.class_names)
        uses = {column: encoding.roles.get(column, NOT_USED) for column in rows.attributes}
        added = {
            **about(rows, encoding, uses, classes, linked),
            "why": {column: f"no attribute of {data.name}" for column, use in uses.items() if use == NOT_USED},
            "missing": missing,
            "repeated_edges": facts.repeated,
            "new_classes": list(classes.names[len(data.class_names) :]),
        }
        if edges is not None and not linked.rows.proper:
            added["warnings"].append("no edge is left, so no node has a neighbour")
        fields: dict[str, Any] = {}
        if data.labels is not None or classes.labels is not None:
            width = len(classes.names)
            members = (as_members(each.y, each.labels, width) for each in (data, classes))
            fields["labels"] = sp.vstack(list(members), format="csr")
        if data.kind is not None:
            kinds, names = rows.kinds_of_nodes(data.kind_names)
            kinds = np.zeros(len(rows), np.int64) if kinds is None else kinds
            fields |= {"kind": np.concatenate([data.kind, kinds]), "kind_names": names or data.kind_names}
        return replace(
            data,
            graph=replace(graph, blocks=data.graph.blocks),
            y=np.concatenate([data.y, classes.y]),
            class_names=classes.names,
            node_names=tuple(ids.to_pylist()),
            texts=None if data.texts is None else (*data.texts, *(texts_of(rows, encoding) or ())),
            info={**data.info, "extended": [*data.info.get("extended", []), added]},
            **fields,
        )


def _new_ids(rows: Rows, old: pa.Array, owner: str) -> pa.Array:
    """The names of the nodes, none of which may be in `old`."""
    if (row := first_row(pc.is_in(rows.ids, value_set=old))) is not None:
        raise rows.fault(row, ID, f"node {rows.ids[row].as_py()!r} is in {owner} already, expected new nodes")
    return rows.ids


def _emptied(data: Dataset) -> Dataset:
    """The dataset without its nodes: classes, split and encoding are what is left."""
    none = sp.csr_array((0, 0), dtype=np.float32)
    relations = tuple(Relation(each.name, none, each.directed) for each in data.graph.relations)
    graph = Graph(none, data.graph.x[:0], relations=relations, blocks=data.graph.blocks)
    labels, kind = (None if each is None else each[:0] for each in (data.labels, data.kind))
    texts = None if data.texts is None else ()
    return replace(data, graph=graph, y=data.y[:0], node_names=(), labels=labels, kind=kind, texts=texts)


def _stack(above: Attributes, below: Attributes) -> Attributes:
    if is_sparse(above) or is_sparse(below):
        return sp.vstack([sp.csr_array(above), sp.csr_array(below)], format="csr")
    return np.concatenate([above, below])


# --- new edges: of the relations that there are, on the scales that their weights were brought to -----------------


def grown(
    data: Dataset, n: int, x: Attributes, rows: EdgeRows, directed: bool, scaling: Callable[[str], Scaling]
) -> tuple[Graph, EdgeFacts]:
    """The graph with `n` nodes in all, their attributes `x`, and more edges; what became of those."""
    graph, owner = data.graph, data.name
    if not graph.relations:
        if not rows.is_plain:
            raise FewnodeError(f"{owner} has neither weights nor kinds of edges, so new edges cannot have them")
        every = np.concatenate([graph.edge_index(), rows.edge_index], axis=1)
        new = Graph.from_edges(every, n, x, directed=directed)
        arcs = new.adj.nnz - graph.adj.nnz
        return new, EdgeFacts(repeated=rows.proper - (arcs if directed else arcs // 2))
    facts = EdgeFacts()
    parts = _by_relation(graph, rows, owner)
    relations = []
    for relation in graph.relations:
        relations.append(_with_more(relation, n, parts[relation.name], scaling(relation.name), facts))
    one_way = None if not graph.adj.nnz else graph.directed  # relations of a direction may have a sum without one
    return Graph.from_relations(relations, x, directed=one_way), facts


def _by_relation(graph: Graph, rows: EdgeRows, owner: str) -> dict[str, EdgeRows]:
    """The new edges of each relation."""
    names = [relation.name for relation in graph.relations]
    if rows.kind is None:
        if len(names) > 1 and UNNAMED not in names and len(rows):
            raise FewnodeError(f"{owner} has several kinds of edges: say which the new ones are, {', '.join(names)}")
        rows = replace(rows, names=(UNNAMED if UNNAMED in names else names[0],))
    if unknown := [name for name in rows.names if name not in names]:
        known = f"{owner} has {', '.join(names)}"
        raise FewnodeError(f"unknown relation {unknown[0]!r}{closest(unknown[0], names)}; {known}")
    none = EdgeRows(rows.edge_index[:, :0], None if rows.weight is None else rows.weight[:0])
    return {**dict.fromkeys(names, none), **dict(rows.by_kind())}


def _with_more(relation: Relation, n: int, rows: EdgeRows, scaling: Scaling, facts: EdgeFacts) -> Relation:
    """The relation with more edges. Old ones that none repeats keep their weights, bit by bit."""
    new = facts.sum(rows, n, relation.directed)
    start = np.pad(relation.adj.indptr, (0, n - relation.adj.shape[0]), mode="edge")
    old = sp.csr_array((relation.adj.data, relation.adj.indices, start), shape=(n, n))
    if not new.nnz:
        return Relation(relation.name, old, relation.directed)
    source, target = new.tocoo().coords
    weight = np.asarray(old[target, source], np.float64)  # 0 where there is no edge yet
    facts.repeated += int(np.count_nonzero(weight))
    amounts = np.ones(new.nnz) if rows.weight is None else new.data + scaling.invert(weight)
    more = adjacency(new, scaling.apply(amounts), relation.directed)
    kept = old - old.multiply(more.astype(bool))
    return Relation(relation.name, (kept + more).tocsr(), relation.directed)
