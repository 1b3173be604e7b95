"""The long tail of class sizes, as the paper's Figure 1 shows it: how many classes have how few labelled nodes."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.ticker import MaxNLocator

from fewnode.errors import FewnodeError
from fewnode.files import atomic_write
from fewnode.report.figures import INK, PARTS, axes


def write_long_tail(facts: dict[str, Any], path: Path) -> None:
    """Draw the class sizes in `statistics` of a dataset into an SVG or PNG file."""
    kind = path.suffix.lower()[1:]
    if kind not in ("svg", "png"):
        raise FewnodeError(f"{path}: expected a file name that ends in .svg or .png")
    figure, ax = axes()
    bins, few = facts["class_size_histogram"], facts["few_shot_classes"]
    colours = [PARTS["test" if each["to"] < few["under"] else "train"] for each in bins]
    bars = ax.bar(range(len(bins)), [each["count"] for each in bins], color=colours)
    ax.bar_label(bars, color=INK)
    ax.set_xticks(range(len(bins)), [f"{each['from']:,}–\n{each['to']:,}" for each in bins])
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(xlabel="labelled nodes of a class", ylabel="classes")
    share = f"{100 * few['share']:.0f} % of {len(facts['class_sizes'])} classes have under {few['under']} nodes"
    ax.set_title(f"{facts['name']}: {share}", pad=16, color=INK, parse_math=False)  # a dollar in a name is a dollar
    buffer = io.BytesIO()
    with rc_context({"svg.hashsalt": "fewnode"}):  # the same figure is the same bytes
        metadata = {"Date": None} if kind == "svg" else {}
        figure.savefig(buffer, format=kind, metadata=metadata, bbox_inches="tight", dpi=150)
    with atomic_write(path) as file:
        file.write(buffer.getvalue())
