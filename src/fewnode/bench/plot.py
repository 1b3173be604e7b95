"""The ratios of a run as a figure."""

from __future__ import annotations

from typing import Any

from fewnode.report.figures import INK, axes, svg
from fewnode.report.names import ACCENT, GREY


def draw(found: dict[str, Any]) -> str:
    """How many times ours the others take, on a logarithmic scale, with the goals as lines."""
    figure, ax = axes(6.0, 2.8)
    labels = found["labels"]
    names = list(found["ratio"]["peak_mb"])
    for place, what in enumerate(labels):
        for shift, name, colour in zip((-0.18, 0.18), names, (ACCENT, GREY), strict=False):
            ratio, goal = found["ratio"][what][name], found["goals"][what].get(name, 0)
            ax.barh(place + shift, ratio, 0.32, color=colour, label=name if place == 0 else None)
            if goal:
                ax.plot([goal, goal], [place + shift - 0.17, place + shift + 0.17], color=INK, lw=1.5)
            text = f"{ratio:.0f}×" if ratio >= 10 else f"{ratio:.1f}×"
            ax.text(1.1 * max(ratio, goal), place + shift, text, va="center", size=8, color=INK)
    ax.set_xscale("log")
    least = min(min(row.values()) for row in found["ratio"].values())
    ax.set_xlim(min(0.5, least / 2), 20 * max(max(row.values()) for row in found["ratio"].values()))
    ax.set_yticks(range(len(labels)), list(labels.values()))
    ax.invert_yaxis()
    made = found["provenance"]
    ax.set_xlabel(f"times fewnode's, {made['nodes']:,} nodes, {made['edges']:,} edges; line: the goal")
    ax.legend(frameon=False, loc="lower right", labelcolor=INK)
    return svg(figure)
