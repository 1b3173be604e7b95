"""Views of a node: what it says itself and its place in the structure, each diffused in several ways."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, NamedTuple, TypeAlias

from fewnode.embedding.diffusion import WALK, Diffusion
from fewnode.embedding.kinds import KIND_VIEWS
from fewnode.embedding.projection import AS_IT_IS
from fewnode.embedding.sources import STRUCTURE

Place: TypeAlias = tuple[str, str]
"""A source and the name of a diffusion."""
ATTRIBUTE_VIEWS: dict[str, Diffusion] = {
    "itself": Diffusion(0),
    "two steps": Diffusion(2),
    "near": Diffusion(6, 0.5),
    "far": Diffusion(10, 0.15),
    "farther": Diffusion(20, 0.05),
    "neighbours' neighbours": Diffusion(2, over=WALK),
}
STRUCTURE_VIEWS: dict[str, Diffusion] = {
    "itself": Diffusion(0),
    "near": Diffusion(10, 0.15),
    "far": Diffusion(20, 0.05, WALK),
    "farther": Diffusion(40, 0.02, WALK),
}
RANKS = (AS_IT_IS, 64, 32, 16, 8)
"""A view as it is, or with its leading axes stressed until its effective rank is this."""


class View(NamedTuple):
    """What is diffused, how, and with which effective rank."""

    source: str
    name: str
    rank: int

    @property
    def place(self) -> Place:
        return self.source, self.name

    @property
    def diffusion(self) -> Diffusion:
        return diffusions(self.source)[self.name]


def diffusions(source: str) -> dict[str, Diffusion]:
    """Of the plain union, then those over weights, kinds and directions of edges."""
    return {**(STRUCTURE_VIEWS if source == STRUCTURE else ATTRIBUTE_VIEWS), **KIND_VIEWS}


def all_views(sources: Sequence[str], kinds: Sequence[str] = (), ranks: Sequence[int] = RANKS) -> list[View]:
    """Every view of these sources; `kinds` names those beside the plain ones that there are."""
    return [
        View(source, name, rank)
        for source in sources
        for name in diffusions(source)
        if name not in KIND_VIEWS or name in kinds
        for rank in ranks
    ]


@cache
def prior() -> Mapping[str, Any]:
    """The tables of the file."""
    return tomllib.loads(resources.files("fewnode.embedding").joinpath("prior.toml").read_text(encoding="utf-8"))


def prior_weights(sources: Sequence[str], kinds: Sequence[str] = ()) -> dict[View, float]:
    """The weight τ of each view that counts, for a network with these sources; blocks of attributes share theirs.

    `kinds` are the views over edges that there are. Nothing is known of them before classes are, except that weights
    mean something: views by weight share with the plain ones.
    """
    views, own = prior()["views"], [source for source in sources if source != STRUCTURE]
    found = {
        View(source, name, views["rank"]): tau / len(own) for source in own for name, tau in views["attributes"].items()
    }
    if STRUCTURE in sources:
        found |= {View(STRUCTURE, name, views["structure_rank"]): tau for name, tau in views[STRUCTURE].items()}
    for view, tau in list(found.items()):
        if f"{view.name} by weight" in kinds:
            found |= {view: tau / 2, view._replace(name=f"{view.name} by weight"): tau / 2}
    return found
