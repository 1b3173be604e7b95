"""The model card: what a person, or a model hub, wants to know of a run before using it.

Hubs read the lines between the two `---` as facts, and the rest is for people. Names in it come from somebody's data,
so they are quoted for the former and made plain for the latter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

SHOWN = 40
"""Class names of a part that are listed; the manifest has them all."""


def model_card(meta: Mapping[str, Any]) -> str:
    """A card in Markdown from a model's manifest."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # who only reads a model needs none of it

    environment = Environment(  # nosec B701
        loader=PackageLoader("fewnode", "model"),
        autoescape=False,  # noqa: S701 - Markdown: names go through `plain`, or are quoted
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=False,
    )
    environment.filters |= {"plain": plain, "listed": _listed}
    trained = meta["trained"]
    way = min(meta["way"], len(trained["classes"]["valid"]))
    name = meta["method"].rpartition("/")[2]  # where somebody's files are is nobody's business
    return environment.get_template("card.md").render(meta=meta, trained=trained, way=way, name=name)


def short_facts(trained: Mapping[str, Any]) -> dict[str, object]:
    """What a notebook shows of a model: the record that is kept with it, in a few lines."""
    if not trained:
        return {"fitted": "not yet"}
    accuracy = ", ".join(f"{100 * value:.1f} % with {shots}" for shots, value in trained["validated"].items())
    return {
        "fitted": f"on {trained['data']['name']}, {trained['data']['nodes']:,} nodes, in {trained['seconds']:.1f} s",
        "base classes": f"{len(trained['classes']['train'])} training, {len(trained['classes']['valid'])} validation",
        "validation accuracy": f"{accuracy} labels a class" if accuracy else None,
        "none of these": "can be told" if trained["membership"] else "cannot be told",
    }


def plain(text: str) -> str:
    """Text without line breaks whose signs mean nothing in Markdown or HTML."""
    return re.sub(r"([\\`*_{}\[\]<>#|&])", r"\\\1", " ".join(text.split()))


def _listed(names: Sequence[str]) -> str:
    more = f", and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{len(names)} classes: {', '.join(plain(name) for name in names[:SHOWN])}{more}."
