"""The network that was embedded as a whole last, kept so that a restart need not embed it again.

Beside z, which `embedding_cache` keeps, that is what rows of new nodes are made from and the state of the service at
that time: what has changed since gets new rows. It is signed, with the model's weights and the network, for answers
depend on it. One that somebody else wrote, or of another network, is made anew.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from fewnode.dataset import Dataset
from fewnode.engine.sparse import as_tensor
from fewnode.errors import FewnodeError
from fewnode.estimator import Estimator
from fewnode.machine import memory
from fewnode.machine.signing import is_signed, sign
from fewnode.predict.embedding_cache import fingerprint
from fewnode.represent.mixture import MixedViews
from fewnode.represent.new_rows import Kept, Rows, StoredViews
from fewnode.represent.projection import ViewFusion, ViewProjection
from fewnode.serve.state import State
from fewnode.storage.io import read_record, write_record

KIND = "anchor"
SAID = "state"


def keep_anchor(home: Path, model: Estimator, data: Dataset, views: StoredViews, state: State) -> None:
    """Write it. Without room for it the next start takes as long as this one did."""
    arrays, places = _arrays(views)
    arrays[SAID] = np.frombuffer(_told(state).encode(), np.uint8)
    with suppress(OSError):
        signature = _signature_parts(model, data, arrays, places)
        write_record(home, KIND, {"places": places, "signature": sign(KIND, *signature)}, arrays)


def recall_state(home: Path) -> State | None:
    """The state of the network that is kept, if there is one.

    It is checked by what is made of it: `recall_views` compares the signature.
    """
    try:
        _, arrays = read_record(home, KIND, check=False)
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
    """What this user's `keep_anchor` wrote for this model and this network, mapped."""
    try:
        meta, arrays = read_record(home, KIND, check=False)  # the signature covers every number
        places = meta["places"]
        if not is_signed(meta.get("signature"), KIND, *_signature_parts(model, data, arrays, places)):
            return None
        return _views(model.method_.mixture_, arrays, places)
    except (FewnodeError, OSError, KeyError, ValueError, TypeError):
        return None


def _told(state: State) -> str:
    edges = [[*edge, present] for edge, present in state.edges.items()]
    ties = [[*tie, amount] for tie, amount in state.ties.items()]
    rest = {"removed": sorted(state.removed), "edges": edges, "ties": ties, "labels": dict(state.labels)}
    return json.dumps({"nodes": dict(state.nodes), **rest})


def _signature_parts(
    model: Estimator, data: Dataset, arrays: dict[str, NDArray[Any]], places: list[Any]
) -> list[bytes | memoryview]:
    told = json.dumps([places, sorted((name, list(array.shape)) for name, array in arrays.items())])
    rows = [part.data for name in sorted(arrays) for part in memory.chunks(np.atleast_1d(arrays[name]))]
    return [fingerprint(model, data).encode(), told.encode(), *rows]


def _arrays(views: StoredViews) -> tuple[dict[str, NDArray[Any]], list[Any]]:
    """As named arrays, and the names that do not go into those of arrays."""
    kept = [[name] if isinstance(name, str) else list(name) for name in views.kept]
    places, sides = [list(place) for place in views.projections], list(views.fusions)
    arrays: dict[str, NDArray[Any]] = {f"kept.{i}": rows for i, rows in enumerate(views.kept.values())}
    for i, projection in enumerate(views.projections.values()):
        parts = {"mean": projection.mean, "axes": projection.axes, "variance": projection.variance}
        arrays |= {f"projection.{i}.{name}": part.contiguous().numpy() for name, part in parts.items()}
    for i, fusion in enumerate(views.fusions.values()):
        parts = {"mean": fusion.mean, "projection": fusion.projection}
        parts |= {} if fusion.metric is None else {"metric": fusion.metric}
        arrays |= {f"fusion.{i}.{name}": part.contiguous().numpy() for name, part in parts.items()}
    return arrays, [kept, places, sides]


def _views(mixture: MixedViews, arrays: dict[str, NDArray[Any]], places: list[Any]) -> StoredViews:
    kept, projected, sides = places

    def tensor(name: str) -> Tensor:
        return as_tensor(arrays[name])

    projections = {
        (source, name): ViewProjection(*(tensor(f"projection.{i}.{part}") for part in ("mean", "axes", "variance")))
        for i, (source, name) in enumerate(projected)
    }
    fusions = {}
    for i, side in enumerate(sides):
        metric = tensor(f"fusion.{i}.metric") if f"fusion.{i}.metric" in arrays else None
        fusions[side] = ViewFusion(tensor(f"fusion.{i}.mean"), tensor(f"fusion.{i}.projection"), metric)
    rows: dict[Kept, Rows] = {}
    for i, name in enumerate(kept):
        rows[name[0] if len(name) == 1 else (name[0], name[1])] = arrays[f"kept.{i}"]
    return StoredViews(mixture, projections, fusions, rows)
