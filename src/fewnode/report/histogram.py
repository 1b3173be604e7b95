"""A dataset as a picture: the long tail of class sizes, as in the paper's Figure 1, and the kinds of edges."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fewnode.errors import FewnodeError
from fewnode.machine.files import atomic_write
from fewnode.report.figures import INK, PARTS, styled


def write_picture(facts: dict[str, Any], path: Path) -> None:
    """Draw the `statistics` of a dataset into an SVG or PNG file."""
    kind = path.suffix.lower()[1:]
    if kind not in ("svg", "png"):
        raise FewnodeError(f"{path}: expected a file name that ends in .svg or .png")
    relations = facts.get("relations") or []
    heights = [3.0] + ([0.8 + 0.35 * len(relations)] if relations else [])
    figure = Figure(figsize=(7.0, sum(heights)), layout="constrained")
    first, *rest = figure.subplots(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    _draw_classes(styled(first), facts)
    if rest:
        _draw_relations(styled(rest[0]), relations)
    buffer = io.BytesIO()
    with rc_context({"svg.hashsalt": "fewnode"}):  # the same figure is the same bytes
        metadata = {"Date": None} if kind == "svg" else {}
        figure.savefig(buffer, format=kind, metadata=metadata, bbox_inches="tight", dpi=150)
    with atomic_write(path) as file:
        file.write(buffer.getvalue())


def _draw_classes(ax: Any, facts: dict[str, Any]) -> None:
    """How many classes have how few labelled nodes."""
    bins, few = facts["class_size_histogram"], facts["few_shot_classes"]
    colours = [PARTS["test" if each["to"] < few["under"] else "train"] for each in bins]
    bars = ax.bar(range(len(bins)), [each["count"] for each in bins], color=colours)
    ax.bar_label(bars, color=INK)
    ax.set_xticks(range(len(bins)), [f"{each['from']:,}–\n{each['to']:,}" for each in bins])
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(xlabel="labelled nodes of a class", ylabel="classes")
    share = f"{100 * few['share']:.0f} % of {len(facts['class_sizes'])} classes have under {few['under']} nodes"
    ax.set_title(f"{facts['name']}: {share}", pad=16, color=INK, parse_math=False)  # a dollar in a name is a dollar


def _draw_relations(ax: Any, relations: list[dict[str, Any]]) -> None:
    """Edges of each kind, those within a class in colour; of what is not known to be either, the bar is light."""
    edges = [each["edges"] for each in relations]
    inside = [each["edges"] * (each["homophily"] or 0.0) for each in relations]
    place = range(len(relations))
    ax.barh(place, edges, color=PARTS["train"], alpha=0.3)
    ax.barh(place, inside, color=PARTS["train"])
    for i, each in enumerate(relations):
        ax.text(edges[i], i, f" {_said(each)}", va="center", color=INK, parse_math=False)
    ax.set_yticks(place, [each["name"][:30] + (" →" if each["directed"] else "") for each in relations])
    for label in ax.get_yticklabels():
        label.set_parse_math(False)
    ax.invert_yaxis()
    ax.margins(x=0.3)
    ax.set_xlabel("edges; dark: within a class")


def _said(relation: dict[str, Any]) -> str:
    same = "" if relation["homophily"] is None else f", same class {relation['homophily']:.2f}"
    weights = relation["weights"]
    spread = "" if weights is None else f", weights {weights['min']:.2g} to {weights['max']:.2g}"
    return f"{relation['edges']:,}{same}{spread}"
