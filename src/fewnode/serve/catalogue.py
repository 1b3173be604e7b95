"""What there is: the model and its network, nodes that are searched for, attributes, the map, classes to try."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import fewnode
from fewnode.class_labels import UNKNOWN
from fewnode.classes.description import MAX_LENGTH
from fewnode.errors import FewnodeError
from fewnode.experiment.names import written
from fewnode.recognition.calibration import MODES
from fewnode.serve.bodies import CLASSES, NODES, SHOTS
from fewnode.serve.dialogue_bodies import Wanted
from fewnode.serve.examples import examples
from fewnode.serve.projection import map_file
from fewnode.serve.rows import RowReader
from fewnode.serve.search import nearest
from fewnode.serve.session import Session
from fewnode.serve.snapshot import NotFound

NAMED = 2_000
"""Names of nodes a request."""
FORM = 50
"""Attributes that the form for a new node shows, where there was no table."""


class Catalogue:
    """What can be looked at, whatever the classes are."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def about(self) -> dict[str, Any]:
        now = self.session.now
        network = now.network
        model, data = network.model, network.data
        return {
            "method": model.method.rsplit("/", 1)[-1],
            "method_name": written(model.method),
            "way": model.way,
            "shot": model.shot,
            "data": {
                "name": data.name,
                "nodes": data.graph.n,
                "edges": data.graph.n_edges,
                "features": data.graph.n_features,
                "labelled": int((data.y != UNKNOWN).sum()),
                "attached": now.n_attached,
            },
            "modes": list(MODES) if network.embeds else [MODES[0]],
            "mode": self.session.mode,
            "open_set": network.open_set,
            "explains": network.embeds,
            "suggests": network.embeds,
            "map": network.embeds,
            "classes": {
                part: [data.class_names[c] for c in data.split.part(part)] for part in ("train", "valid", "test")
            },
            "describes": network.describes,
            "online": self.session.refresh.told(now.online),
            "trained": self.session.trained,
            "limits": {"classes": CLASSES, "shots": SHOTS, "nodes": NODES, "description": MAX_LENGTH},
            "fewnode": fewnode.__version__,
            "version": now.version,
        }

    def nodes(self, wanted: Wanted) -> dict[str, Any]:
        now, network = self.session.now, self.session.now.network
        search, degree = network.search, network.data.graph.degree
        hits = search.find(wanted.search, wanted.where)
        if wanted.attribute:
            hits = search.having(hits, wanted.attribute, wanted.value)
        if wanted.near:
            if not network.embeds:
                raise FewnodeError(f"{network.model.method} has no embedding of nodes, so none is near another")
            hits = nearest(network.projection.z, now.node(wanted.near), hits)
        page = slice(wanted.offset, wanted.offset + wanted.limit)
        found = [
            {
                **network.brief(row),
                "degree": int(degree[row]),
                "matched": matched,
                "words": search.words(hits, row),
                **({"similarity": hits.similarity[row]} if wanted.near else {}),
            }
            for row, matched in zip(hits.rows[page].tolist(), hits.matched[page].tolist(), strict=True)
        ]
        return {"total": int(hits.rows.size), "offset": wanted.offset, "nodes": found}

    def attributes(self, search: str, limit: int) -> dict[str, Any]:
        return self.session.now.network.search.attributes.listed(search, limit)

    def columns(self) -> dict[str, Any]:
        """What a new node can be given by: the columns of the table or, where there was none, the usual attributes."""
        index, reader = self.session.now.network.search.attributes, self.session.base.reader
        if not isinstance(reader, RowReader):
            usual = index.listed("", FORM)["attributes"]
            return {"columns": [{"name": each["name"], "kind": each["kind"]} for each in usual], "way": reader.way}
        told: list[dict[str, Any]] = []
        for name in reader.used:
            column = index.columns.get(name)
            told.append({"name": name, "kind": "text"})
            if column is not None:
                told[-1] |= {"kind": column.kind, **index.values(column)}
        if reader.label:
            names = self.session.base.data.class_names
            told.append({"name": reader.label, "kind": "label", "values": list(names)})
        return {"columns": told, "way": reader.way}

    def examples(self) -> dict[str, Any]:
        network = self.session.now.network
        found = examples(network.data, network.projection.z, self.session.trained) if network.embeds else []
        return {"examples": found}

    def names(self, rows: Sequence[int]) -> dict[str, Any]:
        data = self.session.now.network.data
        if len(rows) > NAMED:
            raise FewnodeError(f"{len(rows):,} rows, {NAMED:,} at most")
        if (beyond := max(rows)) >= data.graph.n:
            raise NotFound(f"there is no row {beyond}; there are {data.graph.n:,}")
        return {"names": [data.node_name(row) for row in rows]}

    def map_file(self) -> bytes:
        now = self.session.now
        if not now.network.embeds:
            raise FewnodeError(f"{now.network.model.method} has no embedding of nodes, so there is no map of them")
        return map_file(now.network.data, now.network.projection.xy, now.version)

    def node(self, name: str) -> dict[str, Any]:
        now = self.session.now
        return now.network.about(self.session.row(now, name))
