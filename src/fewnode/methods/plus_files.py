"""What GPN+ learned, as named tensors for a file, and back with every shape checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewnode.embedding.attributes import SCALINGS
from fewnode.embedding.directions import Axes
from fewnode.embedding.kinds import FEW_RELATIONS, MOST_ODDS, LearnedRelations, width_of
from fewnode.embedding.mixture import MixedViews
from fewnode.embedding.projection import ViewFusion, ViewProjection
from fewnode.embedding.sources import STRUCTURE, AttributeSource, source_names
from fewnode.embedding.views import RANKS, Place, View, diffusions
from fewnode.formats.directory import need_shapes
from fewnode.graph import KINDS as BLOCK_KINDS

KINDS = ("", *BLOCK_KINDS)
PARTS = ("mean", "axes", "variance")
"""Of a `ViewProjection`."""
Array = NDArray[Any]


def mixture_state(mixture: MixedViews) -> dict[str, Array]:
    """A tensor a name. `views` has a row a view: its source (-1: structure), its diffusion and its effective rank."""
    names = [*(source.name for source in mixture.sources), STRUCTURE]
    number = {name: i for i, name in enumerate(names)} | {STRUCTURE: -1}
    views = [[number[view.source], _place(view.place), RANKS.index(view.rank)] for view in mixture.weight]
    found: dict[str, Array] = {
        "views": np.array(views, np.int64).reshape(-1, 3),
        "tau": np.array(list(mixture.weight.values()), np.float32),
    }
    if (learned := mixture.relations).odds:
        found["relations.odds"] = np.array(learned.odds, np.float32)
        found["relations.chosen"] = np.array([int(learned.in_structure), *learned.chosen], np.int64)
    for i, source in enumerate(mixture.sources):
        numbers = [KINDS.index(source.kind), source.start, source.stop, SCALINGS.index(source.axes.scaling)]
        own: dict[str, Array] = {
            "columns": np.array(numbers, np.int64),
            "directions": source.axes.directions,
            "mean": source.mean,
        }
        own |= {} if source.axes.idf is None else {"idf": source.axes.idf}
        found |= {f"source.{i}.{name}": tensor for name, tensor in own.items()}
    for place, projection in mixture.projections.items():
        at = f"projection.{number[place[0]]}.{_place(place)}"
        found |= {f"{at}.{part}": getattr(projection, part) for part in PARTS}
    if mixture.fusion is not None:
        found |= {"fusion.mean": mixture.fusion.mean, "fusion.projection": mixture.fusion.projection}
        found |= {} if mixture.fusion.metric is None else {"fusion.metric": mixture.fusion.metric}
    return {name: np.ascontiguousarray(array) for name, array in found.items()}


def _place(place: Place) -> int:
    """The number of a diffusion among those of its source."""
    return list(diffusions(place[0])).index(place[1])


def restored_mixture(state: Mapping[str, Array], n_features: int, rank: int, seed: int) -> MixedViews:
    """The mixture that `mixture_state` was given; tensors of other shapes or with other numbers are refused."""
    shapes: dict[str, tuple[int, ...]] = {"modes": (2,)}
    count = sum(name.startswith("source.") and name.endswith(".columns") for name in state)
    numbers = [_whole(state[f"source.{i}.columns"], (4,)) for i in range(count)]
    kinds, end = [KINDS[kind] for kind, *_ in numbers], 0
    sources: dict[str, AttributeSource] = {}
    for i, (name, (_, start, stop, scaling)) in enumerate(zip(source_names(kinds), numbers, strict=True)):
        if not end <= start < stop <= n_features:
            raise ValueError(f"source {i} is columns {start} to {stop} of {n_features}")
        end, at, mean = stop, f"source.{i}", state[f"source.{i}.mean"]
        shapes |= {f"{at}.columns": (4,), f"{at}.directions": (stop - start, mean.size), f"{at}.mean": (mean.size,)}
        if f"{at}.idf" in state:
            shapes[f"{at}.idf"] = (stop - start,)
        axes = Axes(SCALINGS[scaling], state[f"{at}.directions"], state.get(f"{at}.idf"))
        sources[name] = AttributeSource(name, kinds[i], start, stop, axes, mean)

    views = _views(state["views"], list(sources))
    shapes |= {"views": (len(views), 3), "tau": (len(views),)}
    weight = {view: float(tau) for view, tau in zip(views, state["tau"].tolist(), strict=True)}
    if not weight or min(weight.values()) < 0 or len(weight) < len(views):
        raise ValueError("views are there twice, or have no weight")

    own = [(width_of(view.diffusion, sources[view.source].mean.size), view) for view in views if view.source in sources]
    projections = {}
    for d, view in own:
        at = f"projection.{list(sources).index(view.source)}.{_place(view.place)}"
        shapes |= {f"{at}.mean": (d,), f"{at}.axes": (d, d), f"{at}.variance": (d,)}
        projections[view.place] = ViewProjection(*(state[f"{at}.{part}"] for part in PARTS))
    fusion = None
    if own:
        joined, kept = sum(d for d, _ in own), state["fusion.projection"].shape[-1]
        shapes |= {"fusion.mean": (joined,), "fusion.projection": (joined, kept)}
        shapes |= {"fusion.metric": (kept, kept)} if "fusion.metric" in state else {}
        fusion = ViewFusion(state["fusion.mean"], state["fusion.projection"], state.get("fusion.metric"))
    relations = LearnedRelations()
    if "relations.odds" in state:
        relations = _relations(state["relations.odds"].ravel().tolist(), state["relations.chosen"])
        shapes |= {"relations.odds": (len(relations.odds),), "relations.chosen": (1 + len(relations.chosen),)}
    need_shapes(state, shapes)
    return MixedViews(tuple(sources.values()), weight, rank, seed, relations, projections=projections, fusion=fusion)


def _relations(odds: Sequence[float], numbers: Array) -> LearnedRelations:
    in_structure, *chosen = _whole(numbers, (1 + min(FEW_RELATIONS, len(odds)),))
    if any(not 1 / MOST_ODDS <= each <= MOST_ODDS for each in odds):
        raise ValueError("odds of relations are out of range")
    if in_structure > 1 or max(chosen, default=0) >= len(odds) or len(set(chosen)) < len(chosen):
        raise ValueError("relations are there twice, or are none")
    return LearnedRelations(tuple(odds), tuple(chosen), bool(in_structure))


def _views(rows: Array, sources: Sequence[str]) -> list[View]:
    found = []
    for number, place, rank in rows.tolist():
        if not number >= -1 or min(place, rank) < 0:
            raise ValueError(f"view {number}, {place}, {rank}: expected numbers from 0 on")
        name = STRUCTURE if number == -1 else sources[number]
        found.append(View(name, list(diffusions(name))[place], RANKS[rank]))
    return found


def _whole(numbers: Array, shape: tuple[int, ...]) -> list[int]:
    if numbers.shape != shape or numbers.dtype != np.int64 or int(numbers.min()) < 0:
        raise ValueError(f"numbers are {numbers.dtype} {numbers.shape}, expected int64 {shape} from 0 on")
    return [int(number) for number in numbers.tolist()]
