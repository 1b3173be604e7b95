"""The figures of a grid's report. Each is one small SVG for one network, so that a page can set them side by side."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from fewnode.experiment.results import ResultRow, Section
from fewnode.report.figures import INK, PARTS, axes, label_points, svg
from fewnode.report.names import ACCENT, CLASSES, GREY, colour, written

WIDTH, HEIGHT = 4.2, 3.0
DASHES = ("--", ":", "-.", (0, (6, 2, 1, 2, 1, 2)))
MARKERS = ("s", "^", "D", "v", "P", "X")
BLUES = LinearSegmentedColormap.from_list("blues", ["#f4f6f9", "#9cc2e6", ACCENT, "#173a5e"])
AXIS = {"way": "N: classes a task", "shot": "K: support nodes a class", "query": "M: queries a class in training"}

_NUMBERED = re.compile(r' id="[A-Za-z.]+\w*_\d+"')


def drawn(figure: Figure) -> str:
    """The figure as SVG without the numbers that matplotlib gives its parts: on one page they would clash."""
    return _NUMBERED.sub("", svg(figure))


def sweep_curve(section: Section, dataset: str) -> Figure | None:
    """Accuracy along the axis of a sweep, with bands of 95 %."""
    along = section.along or "way"
    figure, ax = axes(WIDTH, HEIGHT)
    ends = []
    for number, label in enumerate(section.labels):
        entries = sorted((e for e in section.of(dataset, label) if e["accuracy"]), key=lambda e: getattr(e, along))
        if not entries:
            continue
        x = [getattr(entry, along) for entry in entries]
        found = [entry["accuracy"] for entry in entries]
        mean = np.array([100 * f.mean for f in found if f])
        band = np.array([100 * f.ci95 for f in found if f])
        strong = colour(label) != GREY
        style: Any = {"color": colour(label), "lw": 2 if strong else 1.3, "ms": 4}
        style |= {"marker": "o", "ls": "-"} if strong else {"marker": MARKERS[number % 6], "ls": DASHES[number % 4]}
        ax.plot(x, mean, **style, zorder=3 if strong else 2)
        low, high = (mean - band).clip(0, 100), (mean + band).clip(0, 100)
        ax.fill_between(x, low, high, color=colour(label), alpha=0.16, lw=0)
        ends.append((float(mean[-1]), written(label), colour(label)))
    if not ends:
        return None
    ax.set(xlabel=AXIS[along], ylabel="accuracy, %")
    ax.set_xticks(sorted({getattr(entry, along) for entry in section.of(dataset) if entry["accuracy"]}))
    _label_ends(ax, ends)
    return figure


def _label_ends(ax: Any, ends: Sequence[tuple[float, str, str]]) -> None:
    """The name of each curve beside its last point, moved apart where they would touch."""
    low, high = ax.get_ylim()
    gap = 0.075 * (high - low)
    places: list[float] = []
    for y, _, _ in sorted(ends):
        places.append(max(y, places[-1] + gap) if places else y)
    for place, (_, name, ink) in zip(places, sorted(ends), strict=True):
        style: Any = {"color": INK if ink == GREY else ink, "va": "center", "fontsize": 9, "parse_math": False}
        ax.text(1.02, (place - low) / (high - low), name, transform=ax.transAxes, **style)


def accuracy_against_seconds(entries: Sequence[ResultRow]) -> Figure | None:
    """What a method is worth against what it costs: mean over settings, seconds to train once."""
    points = []
    for label in dict.fromkeys(entry.label for entry in entries):
        own = [e for e in entries if e.label == label and e["accuracy"] and e.seconds is not None]
        if own:
            seconds = float(np.mean([entry.seconds for entry in own if entry.seconds is not None]))
            points.append((max(seconds, 0.01), 100 * float(np.mean([_mean(entry) for entry in own])), label))
    if not points:
        return None
    figure, ax = axes(WIDTH, HEIGHT)
    for x, y, label in points:
        ax.plot(x, y, "o", ms=7 if colour(label) != GREY else 5, color=colour(label))
    ax.set(xscale="log", xlabel="processor seconds to train", ylabel="accuracy, %")
    ax.margins(x=0.22, y=0.12)
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter("")
    inks = [INK if colour(label) == GREY else colour(label) for _, _, label in points]
    label_points(figure, ax, [(x, y) for x, y, _ in points], [written(label) for _, _, label in points], inks)
    return figure


def _mean(entry: ResultRow) -> float:
    found = entry["accuracy"]
    return found.mean if found else float("nan")


# --- the case study -----------------------------------------------------------------------------------------------


def similarity_matrix(case: dict[str, Any]) -> Figure:
    """Negative Euclidean distance of support (rows) and query nodes (columns), a K x M block a pair of classes."""
    matrix, classes = np.array(case["similarity"]), case["classes"]
    figure, ax = axes(3.6, 3.6)
    low, high = np.percentile(matrix, [5, 100])  # one far-away node would wash out the rest
    ax.imshow(matrix, cmap=BLUES, vmin=low, vmax=high, interpolation="none", aspect="equal")
    rows, columns = (side // len(classes) for side in matrix.shape)
    for c in range(1, len(classes)):
        ax.axhline(c * rows - 0.5, color="white", lw=1.5)
        ax.axvline(c * columns - 0.5, color="white", lw=1.5)
    short = [_short(name) for name in classes]
    ax.set_xticks([(c + 0.5) * columns - 0.5 for c in range(len(classes))], short, rotation=30, ha="right")
    ax.set_yticks([(c + 0.5) * rows - 0.5 for c in range(len(classes))], short)
    _plain_labels(ax)
    ax.set(xlabel="query nodes", ylabel="support nodes")
    ax.tick_params(length=0, labelsize=8)
    for side in ax.spines.values():
        side.set_visible(False)
    return figure


def embedding_map(case: dict[str, Any]) -> Figure:
    """Two principal axes of the embedding: nodes of the task's classes, its support nodes and its prototypes."""
    found, classes = case["map"], case["classes"]
    figure, ax = axes(WIDTH, 3.4)
    cloud, cloud_y = _points(found["cloud"]), np.array(found["cloud_y"])
    support, prototypes = _points(found["support"]), _points(found["prototypes"])
    shots = len(support) // len(classes)
    for c, name in enumerate(classes):
        ink = CLASSES[c % len(CLASSES)]
        ax.plot(*cloud[cloud_y == c].T, "o", ms=3, color=ink, alpha=0.45, mew=0, label=_short(name))
        ax.plot(*support[c * shots : (c + 1) * shots].T, "o", ms=7, mfc="none", mec=ink, mew=1.6)
        ax.plot(*prototypes[c], "*", ms=15, color=ink, mec=INK, mew=0.8)
    _zoom(ax, np.concatenate([cloud, support, prototypes]))
    share = [f"{100 * s:.0f} %" for s in found["share"]]
    ax.set(xlabel=f"first axis, {share[0]} of the variance", ylabel=f"second axis, {share[-1]}", xticks=[], yticks=[])
    legend = ax.legend(frameon=False, labelcolor=INK, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    for text in legend.get_texts():
        text.set_parse_math(False)
    for handle in legend.legend_handles:
        handle.set(alpha=1, markersize=6)
    return figure


def beta_against_degree(case: dict[str, Any]) -> Figure:
    """How much the valuator lets a support node weigh, by how many neighbours it has."""
    degree, beta = np.array(case["beta"]["degree"]), np.array(case["beta"]["beta"])
    figure, ax = axes(WIDTH, HEIGHT)
    ax.axhline(case["beta"]["even"], color=GREY, lw=1, ls="--")
    ax.plot(degree + 1, beta, "o", ms=3.5, color=ACCENT, alpha=0.5, mew=0)
    ax.set(xscale="log", xlabel="degree + 1", ylabel="β")
    ax.xaxis.set_major_formatter("{x:g}")
    return figure


def long_tail(sizes: dict[str, list[int]]) -> Figure:
    """Labelled nodes a class, largest first, coloured by what the class is for: the paper's Figure 1."""
    figure, ax = axes(WIDTH, HEIGHT)
    flat = sorted(((size, part) for part in PARTS for size in sizes.get(part, [])), reverse=True)
    for part, ink in PARTS.items():
        inside = [(place, size) for place, (size, own) in enumerate(flat) if own == part]
        if inside:
            ax.bar(*zip(*inside, strict=True), width=0.85, color=ink, label=f"{part} classes")
    ax.set(xlabel="classes, by size", ylabel="labelled nodes", yscale="log")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.legend(frameon=False, labelcolor=INK, fontsize=8)
    return figure


def _zoom(ax: Any, points: NDArray[np.float64]) -> None:
    """Leave the outermost two percent of points out of sight: one far-away node would hide all the others."""
    for side, set_limits in enumerate((ax.set_xlim, ax.set_ylim)):
        low, high = np.percentile(points[:, side], [1, 99])
        margin = 0.08 * (high - low) or 1.0
        set_limits(low - margin, high + margin)


def _points(pairs: list[list[float]]) -> NDArray[np.float64]:
    return np.array(pairs, dtype=np.float64).reshape(-1, 2)


def _short(name: str, most: int = 16) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"


def _plain_labels(ax: Any) -> None:
    """A dollar in a class name is a dollar, not the beginning of a formula."""
    for text in (*ax.get_xticklabels(), *ax.get_yticklabels()):
        text.set_parse_math(False)
