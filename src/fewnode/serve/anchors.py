"""The network that was embedded as a whole last, kept so that a restart need not embed it again.

Beside z, which `embedding_cache` keeps, that is what rows of new nodes are made from and the state of the service at
that time: what has changed since gets new rows. It is in the user's cache, by the place of the service's state, and
says of which model and network it is. One of another network is made anew.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.estimator import Estimator
from fewnode.machine.files import cache_directory
from fewnode.predict.embedding_cache import fingerprint, shrink
from fewnode.represent.mixture import MixedViews
from fewnode.represent.new_rows import Kept, StoredViews
from fewnode.represent.projection import ViewFusion, ViewProjection
from fewnode.serve.state import State
from fewnode.storage.io import read_record, write_record
from fewnode.vectors import Floats

KIND = "anchor"
SAID = "state"


def keep_anchor(home: Path, model: Estimator, data: Dataset, views: StoredViews, state: State) -> None:
    """Write it. Without room for it the next start takes as long as this one did."""
    arrays, places = _arrays(views)
    arrays[SAID] = np.frombuffer(_told(state).encode(), np.uint8)
    with suppress(OSError):
        write_record(_place(home), KIND, {"places": places, "made_of": fingerprint(model, data)}, arrays)
        shrink(_place(home).parent)


def recall_state(home: Path) -> State | None:
    """The state of the network that is kept, if there is one.

    It is checked by what is made of it: `recall_views` compares the network.
    """
    try:
        _, arrays = read_record(_place(home), KIND, check=False)
        told = json.loads(arrays[SAID].tobytes())
        return State(
            nodes=told["nodes"],
            removed=frozenset(told["removed"]),
            edges={(source, target): present for source, target, present in told["edges"]},
            ties={(source, target, kind): amount for source, target, kind, amount in told["ties"]},
            labels=told["labels"],
        )
    except (FewnodeError, OSError, KeyError, ValueError, TypeError):
        return None


def recall_views(home: Path, model: Estimator, data: Dataset) -> StoredViews | None:
    """What `keep_anchor` wrote for this model and this network, mapped."""
    try:
        meta, arrays = read_record(_place(home), KIND)
        if meta["made_of"] != fingerprint(model, data):
            return None
        return _views(model.method_.mixture_, arrays, meta["places"])
    except (FewnodeError, OSError, KeyError, ValueError, TypeError):
        return None


def _told(state: State) -> str:
    edges = [[*edge, present] for edge, present in state.edges.items()]
    ties = [[*tie, amount] for tie, amount in state.ties.items()]
    rest = {"removed": sorted(state.removed), "edges": edges, "ties": ties, "labels": dict(state.labels)}
    return json.dumps({"nodes": dict(state.nodes), **rest})


def _place(home: Path) -> Path:
    return cache_directory("services") / hashlib.sha256(str(home.resolve()).encode()).hexdigest()


def _arrays(views: StoredViews) -> tuple[dict[str, NDArray[Any]], list[Any]]:
    """As named arrays, and the names that do not go into those of arrays."""
    kept = [[name] if isinstance(name, str) else list(name) for name in views.kept]
    places, sides = [list(place) for place in views.projections], list(views.fusions)
    arrays: dict[str, NDArray[Any]] = {f"kept.{i}": rows for i, rows in enumerate(views.kept.values())}
    for i, projection in enumerate(views.projections.values()):
        parts = {"mean": projection.mean, "axes": projection.axes, "variance": projection.variance}
        arrays |= {f"projection.{i}.{name}": np.ascontiguousarray(part) for name, part in parts.items()}
    for i, fusion in enumerate(views.fusions.values()):
        parts = {"mean": fusion.mean, "projection": fusion.projection}
        parts |= {} if fusion.metric is None else {"metric": fusion.metric}
        arrays |= {f"fusion.{i}.{name}": np.ascontiguousarray(part) for name, part in parts.items()}
    return arrays, [kept, places, sides]


def _views(mixture: MixedViews, arrays: dict[str, NDArray[Any]], places: list[Any]) -> StoredViews:
    kept, projected, sides = places

    projections = {
        (source, name): ViewProjection(*(arrays[f"projection.{i}.{part}"] for part in ("mean", "axes", "variance")))
        for i, (source, name) in enumerate(projected)
    }
    fusions = {}
    for i, side in enumerate(sides):
        metric = arrays.get(f"fusion.{i}.metric")
        fusions[side] = ViewFusion(arrays[f"fusion.{i}.mean"], arrays[f"fusion.{i}.projection"], metric)
    rows: dict[Kept, Floats] = {}
    for i, name in enumerate(kept):
        rows[name[0] if len(name) == 1 else (name[0], name[1])] = arrays[f"kept.{i}"]
    return StoredViews(mixture, projections, fusions, rows)
