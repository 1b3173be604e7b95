"""Figures as SVG text that takes its colours from the page around it, so that light and dark both work."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from fewnode.dataset import Dataset
from fewnode.train import Point

INK = "#010203"
"""Stands for the page's own text colour; no other thing is drawn in it."""
PARTS = {"train": "#4477aa", "valid": "#ccbb44", "test": "#ee6677"}
"""Paul Tol's bright scheme: distinct to colour-blind eyes, on white and on black."""


def svg(figure: Figure) -> str:
    """The figure as an <svg> element without a fixed size; text stays text, black becomes the page's colour."""
    buffer = io.StringIO()
    metadata = {"Date": None, "Creator": None}
    figure.savefig(buffer, format="svg", transparent=True, metadata=metadata, bbox_inches="tight")
    text = buffer.getvalue()
    return text[text.index("<svg") :].replace(INK, "currentColor")


def axes(width: float = 7.0, height: float = 3.0) -> tuple[Figure, Any]:
    """An empty figure in the house style."""
    figure = Figure(figsize=(width, height))
    return figure, styled(figure.add_subplot())


def styled(ax: Any) -> Any:
    """Axes in the house style."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("bottom", "left"):
        ax.spines[side].set_color(INK)
    ax.tick_params(colors=INK, labelcolor=INK)
    for label in (ax.xaxis.label, ax.yaxis.label, ax.title):
        label.set_color(INK)
    return ax


Box = tuple[float, float, float, float]
"""Left, low, right and high, in pixels."""


def label_points(
    figure: Figure,
    ax: Any,
    points: Sequence[tuple[float, float]],
    names: Sequence[str],
    inks: Sequence[str],
    others: Sequence[tuple[float, float]] = (),
) -> None:
    """Names beside points, each on the side where it covers least of other names, of points, and of `others`."""
    scale, to_screen = figure.dpi / 72, ax.transData.transform
    centres = to_screen(np.array(points))
    taken: list[Box] = [(x - 4, y - 4, x + 4, y + 4) for x, y in to_screen(np.array([*points, *others]))]
    taken.append((-1e4, -1e4, ax.get_window_extent().x0, 1e4))  # the axis and its numbers
    for (x, y), point, name, ink in zip(centres, points, names, inks, strict=True):
        w, h, off = 4.9 * scale * len(name), 9 * scale, 6 * scale
        spots: dict[tuple[str, str, float, float], Box] = {
            ("left", "center", off, 0.0): (x + off, y - h / 2, x + off + w, y + h / 2),
            ("right", "center", -off, 0.0): (x - off - w, y - h / 2, x - off, y + h / 2),
            ("center", "bottom", 0.0, off): (x - w / 2, y + off, x + w / 2, y + off + h),
            ("center", "top", 0.0, -off): (x - w / 2, y - off - h, x + w / 2, y - off),
        }
        (ha, va, dx, dy), box = min(spots.items(), key=lambda spot: sum(_overlap(spot[1], other) for other in taken))
        taken.append(box)
        style: Any = {"ha": ha, "va": va, "fontsize": 8.5, "color": ink, "parse_math": False}
        ax.annotate(name, point, (dx / scale, dy / scale), textcoords="offset points", **style)


def _overlap(a: Box, b: Box) -> float:
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    return max(width, 0.0) * max(height, 0.0)


def training_curve(points: Sequence[Point]) -> Figure:
    """Loss and validation accuracy against the episode, with the point whose weights were kept."""
    figure, ax = axes()
    episode = [point.episode for point in points]
    best = max(points, key=lambda point: point.accuracy)
    ax.plot(episode, [point.loss for point in points], color=PARTS["train"], label="training loss")
    ax.set(xlabel="episode", ylabel="loss", ylim=(0, None))
    right = ax.twinx()
    right.plot(episode, [100 * point.accuracy for point in points], color=PARTS["test"], label="validation accuracy")
    right.plot(best.episode, 100 * best.accuracy, "o", color=PARTS["test"], label=f"kept: episode {best.episode}")
    right.set_ylabel("accuracy, %", color=INK)
    right.tick_params(colors=INK, labelcolor=INK)
    for side in right.spines.values():
        side.set_visible(False)
    handles = [*ax.get_legend_handles_labels()[0], *right.get_legend_handles_labels()[0]]
    figure.legend(handles=handles, loc="upper center", ncols=3, frameon=False, labelcolor=INK)
    return figure


def class_histogram(data: Dataset) -> Figure:
    """Nodes a class, largest first, coloured by what the class is for: the long tail of the paper's Figure 1."""
    figure, ax = axes()
    sizes = data.class_sizes
    order = np.argsort(-sizes, kind="stable")
    order = order[sizes[order] > 0]
    for part, colour in PARTS.items():
        inside = np.isin(order, data.split.part(part))
        ax.bar(np.flatnonzero(inside), sizes[order][inside], width=0.9, color=colour, label=f"{part} classes")
    rest = ~np.isin(order, [*data.split.train, *data.split.valid, *data.split.test])
    if rest.any():
        ax.bar(np.flatnonzero(rest), sizes[order][rest], width=0.9, color="#bbbbbb", label="in no part")
    ax.set(xlabel="classes, by size", ylabel="labelled nodes", yscale="log")
    ax.legend(frameon=False, labelcolor=INK)
    return figure
