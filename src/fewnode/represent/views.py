"""Views of a node: what it says itself and its place in the structure, each diffused in several ways."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from fewnode.represent.diffusion import Diffusion
from fewnode.represent.kinds import KIND_VIEWS
from fewnode.represent.projection import AS_IT_IS
from fewnode.represent.sources import STRUCTURE

Place: TypeAlias = tuple[str, str]
"""A source and the name of a diffusion."""
ATTRIBUTE_VIEWS: dict[str, Diffusion] = {
    "itself": Diffusion(0),
    "two steps": Diffusion(2),
    "near": Diffusion(6, 0.5),
    "far": Diffusion(10, 0.15),
    "farther": Diffusion(20, 0.05),
    "neighbours' neighbours": Diffusion(2, walk=True),
}
STRUCTURE_VIEWS: dict[str, Diffusion] = {
    "itself": Diffusion(0),
    "near": Diffusion(10, 0.15),
    "far": Diffusion(20, 0.05, walk=True),
    "farther": Diffusion(40, 0.02, walk=True),
}
RANKS = (AS_IT_IS, 64, 32, 16, 8)
"""A view as it is, or with its leading axes stressed until its effective rank is this."""


class View(NamedTuple):
    """What is diffused, how, and with which effective rank."""

    source: str
    name: str
    rank: int

    @property
    def diffusion(self) -> Diffusion:
        return diffusions(self.source)[self.name]

    def __str__(self) -> str:
        return f"{self.source}, {self.name}" + (f", rank {self.rank}" if self.rank else "")


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
