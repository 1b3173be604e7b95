"""What other networks taught (`prior.toml`): where GPN+ begins, and where it stays without base classes."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from fewnode.represent.sources import STRUCTURE
from fewnode.represent.views import View


@cache
def prior() -> Mapping[str, Any]:
    """The tables of the file."""
    return tomllib.loads(resources.files("fewnode.represent").joinpath("prior.toml").read_text(encoding="utf-8"))


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
