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
from fewnode.embedding.views import RANKS, View, diffusions
from fewnode.formats.directory import need_shapes
from fewnode.graph import KINDS as BLOCK_KINDS

KINDS = ("", *BLOCK_KINDS)
_PARTS = ("mean", "axes", "variance")
Array = NDArray[Any]


def mixture_state(mixture: MixedViews) -> dict[str, Array]:
    """A tensor a name. `views` has a row a view: its source (-1: structure), its diffusion and its effective rank."""
    names = [source.name for source in mixture.sources]
    views = [
        [names.index(view.source) if view.source != STRUCTURE else -1, _place(view), RANKS.index(view.rank)]
        for view in mixture.weight
    ]
    found = {
        "views": np.array(views, np.int64).reshape(-1, 3),
        "tau": np.array(list(mixture.weight.values()), np.float32),
    }
    if (learned := mixture.relations).odds:
        found["relations.odds"] = np.array(learned.odds, np.float32)
        found["relations.chosen"] = np.array([int(learned.in_structure), *learned.chosen], np.int64)
    for i, source in enumerate(mixture.sources):
        found |= {f"source.{i}.{name}": tensor for name, tensor in _source_state(source).items()}
    for (name, view), projection in mixture.projections.items():
        place = f"projection.{names.index(name)}.{list(diffusions(name)).index(view)}"
        found |= {
            f"{place}.mean": projection.mean,
            f"{place}.axes": projection.axes,
            f"{place}.variance": projection.variance,
        }
    if mixture.fusion is not None:
        found |= {"fusion.mean": mixture.fusion.mean, "fusion.projection": mixture.fusion.projection}
        if mixture.fusion.metric is not None:
            found["fusion.metric"] = mixture.fusion.metric
    return {name: np.ascontiguousarray(array) for name, array in found.items()}


def _place(view: View) -> int:
    return list(diffusions(view.source)).index(view.name)


def _source_state(source: AttributeSource) -> dict[str, Array]:
    numbers = [KINDS.index(source.kind), source.start, source.stop, SCALINGS.index(source.axes.scaling)]
    found: dict[str, Array] = {
        "columns": np.array(numbers, np.int64),
        "directions": source.axes.directions,
        "mean": source.mean,
    }
    return found if source.axes.idf is None else {**found, "idf": source.axes.idf}


def restored_mixture(state: Mapping[str, Array], n_features: int, rank: int, seed: int) -> MixedViews:
    """The mixture that `mixture_state` was given; tensors of other shapes or with other numbers are refused."""
    counted = [name for name in state if name.startswith("source.") and name.endswith(".columns")]
    numbers = [_whole(state[f"source.{i}.columns"], (4,)) for i in range(len(counted))]
    shapes: dict[str, tuple[int, ...]] = {"modes": (2,)}
    kinds = [KINDS[kind] for kind, *_ in numbers]
    sources, end = [], 0
    for i, (name, (_, start, stop, scaling)) in enumerate(zip(source_names(kinds), numbers, strict=True)):
        if not end <= start < stop <= n_features:
            raise ValueError(f"source {i} is columns {start} to {stop} of {n_features}")
        end, part = stop, {each: state[f"source.{i}.{each}"] for each in ("directions", "mean")}
        d = part["mean"].size
        shapes |= {f"source.{i}.columns": (4,), f"source.{i}.directions": (stop - start, d), f"source.{i}.mean": (d,)}
        idf = state.get(f"source.{i}.idf")
        if idf is not None:
            shapes[f"source.{i}.idf"] = (stop - start,)
        axes = Axes(SCALINGS[scaling], part["directions"], idf)
        sources.append(AttributeSource(name, kinds[i], start, stop, axes, part["mean"]))
    views = _views(state["views"], [source.name for source in sources])
    shapes |= {"views": (len(views), 3), "tau": (len(views),)}
    weight = {view: float(tau) for view, tau in zip(views, state["tau"].tolist(), strict=True)}
    if not weight or min(weight.values()) < 0 or len(weight) < len(views):
        raise ValueError("views are there twice, or have no weight")
    projections = {}
    for i, source in enumerate(sources):
        for j, (name, diffusion) in enumerate(diffusions(source.name).items()):
            d = width_of(diffusion, source.mean.size)
            if any((view.source, view.name) == (source.name, name) for view in views):
                at = f"projection.{i}.{j}"
                shapes |= {f"{at}.mean": (d,), f"{at}.axes": (d, d), f"{at}.variance": (d,)}
                projections[source.name, name] = ViewProjection(*(state[f"{at}.{p}"] for p in _PARTS))
    fusion = None
    if any(view.source != STRUCTURE for view in views):
        named = {source.name: source for source in sources}
        joined = sum(
            width_of(view.diffusion, named[view.source].mean.size) for view in views if view.source != STRUCTURE
        )
        kept = state["fusion.projection"].shape[-1]
        shapes |= {"fusion.mean": (joined,), "fusion.projection": (joined, kept)}
        if "fusion.metric" in state:
            shapes["fusion.metric"] = (kept, kept)
        fusion = ViewFusion(state["fusion.mean"], state["fusion.projection"], state.get("fusion.metric"))
    relations = _relations(state)
    if relations.odds:
        shapes |= {"relations.odds": (len(relations.odds),), "relations.chosen": (1 + len(relations.chosen),)}
    need_shapes(state, shapes)
    return MixedViews(tuple(sources), weight, rank, seed, relations, projections=projections, fusion=fusion)


def _relations(state: Mapping[str, Array]) -> LearnedRelations:
    if "relations.odds" not in state:
        return LearnedRelations()
    odds = tuple(state["relations.odds"].ravel().tolist())
    numbers = state["relations.chosen"]
    in_structure, *chosen = _whole(numbers, (1 + min(FEW_RELATIONS, len(odds)),))
    if any(not 1 / MOST_ODDS <= each <= MOST_ODDS for each in odds):
        raise ValueError("odds of relations are out of range")
    if in_structure > 1 or max(chosen, default=0) >= len(odds) or len(set(chosen)) < len(chosen):
        raise ValueError("relations are there twice, or are none")
    return LearnedRelations(odds, tuple(chosen), bool(in_structure))


def _views(rows: Array, sources: Sequence[str]) -> list[View]:
    found = []
    for source, place, rank in rows.tolist():
        name = STRUCTURE if source == -1 else sources[_index(source, len(sources))]
        names = list(diffusions(name))
        found.append(View(name, names[_index(place, len(names))], RANKS[_index(rank, len(RANKS))]))
    return found


def _whole(numbers: Array, shape: tuple[int, ...]) -> list[int]:
    if numbers.shape != shape or numbers.dtype != np.int64 or int(numbers.min()) < 0:
        raise ValueError(f"numbers are {numbers.dtype} {numbers.shape}, expected int64 {shape} from 0 on")
    return [int(number) for number in numbers.tolist()]


def _index(number: int, size: int) -> int:
    if not 0 <= number < size:
        raise ValueError(f"number {number} of {size}")
    return int(number)
