"""Figures as SVG text that takes its colours from the page around it, so that light and dark both work."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fewnode.experiment.results import ResultRow, Section
from fewnode.methods.table import written

INK = "#010203"
"""Stands for the page's own text colour; no other thing is drawn in it."""
BLUE, WARM, GREY = "#3b82c9", "#d9673f", "#8a929c"
"""One colour for the paper's method, one for ours, and grey for what they are measured against."""
OWN_COLOURS = {"gpn": BLUE, "gpn-plus": WARM}
PARTS = {"train": "#4477aa", "valid": "#ccbb44", "test": "#ee6677"}
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")
"""Paul Tol's bright scheme: distinct to colour-blind eyes, on white and on black."""
STYLE: Any = {"svg.fonttype": "none", "svg.hashsalt": "fewnode", "font.family": "sans-serif", "font.size": 10}
"""Text as text, and the same bytes for the same figure."""
SIZE = (4.2, 3.0)
AXIS = {"way": "N: classes a task", "shot": "K: support nodes a class", "query": "M: queries a class in training"}
NUMBERED = re.compile(r' id="[A-Za-z.]+\w*_\d+"')
"""What matplotlib calls its parts: on one page such names would clash."""


def svg(figure: Figure) -> str:
    """The figure as an <svg> element without a fixed size; text stays text, black becomes the page's colour."""
    buffer = io.StringIO()
    metadata = {"Date": None, "Creator": None}
    with rc_context(STYLE):
        figure.savefig(buffer, format="svg", transparent=True, metadata=metadata, bbox_inches="tight")
    text = buffer.getvalue()
    return NUMBERED.sub("", text[text.index("<svg") :]).replace(INK, "currentColor")


def axes(size: tuple[float, float] = SIZE, **labels: Any) -> tuple[Figure, Any]:
    """An empty figure in the house style. `labels` are matplotlib's own, such as `xlabel`."""
    with rc_context({**STYLE, "text.parse_math": False, "axes.labelcolor": INK}):
        figure = Figure(figsize=size)
        ax = figure.add_subplot()
    ax.set(**labels)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["bottom", "left"]].set_color(INK)
    ax.tick_params(colors=INK, labelcolor=INK)
    return figure, ax


def legend(ax: Any) -> None:
    """Beside the axes. A dollar in a name is a dollar, not the beginning of a formula."""
    place: Any = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
    for text in ax.legend(frameon=False, labelcolor=INK, fontsize=8, **place).get_texts():
        text.set_parse_math(False)


def sweep_curve(section: Section, dataset: str) -> Figure | None:
    """Accuracy along the axis of a sweep, with bands of 95 %; None without a number."""
    along = section.part.along or "way"
    figure, ax = axes(xlabel=AXIS[along], ylabel="accuracy, %")
    ticks: set[int] = set()
    for number, label in enumerate(section.labels):
        points = [(getattr(entry.row, along), entry["accuracy"]) for entry in section.of(dataset, label)]
        curve = sorted((x, 100 * value.mean, 100 * value.ci95) for x, value in points if value)
        if not curve:
            continue
        x, mean, band = (np.array(column) for column in zip(*curve, strict=True))
        ink, ticks = OWN_COLOURS.get(label, GREY), ticks | {x for x, _, _ in curve}
        rival: Any = {"lw": 1.3, "marker": "s^DvPX"[number % 6], "ls": "--"}
        style: Any = {"lw": 2, "marker": "o"} if label in OWN_COLOURS else rival
        ax.plot(x, mean, color=ink, ms=4, label=written(label), **style)
        ax.fill_between(x, (mean - band).clip(0, 100), (mean + band).clip(0, 100), color=ink, alpha=0.16, lw=0)
    if not ticks:
        return None
    ax.set_xticks(sorted(ticks))
    legend(ax)
    return figure


def accuracy_against_seconds(entries: Sequence[ResultRow]) -> Figure | None:
    """What a method is worth against what it costs: mean over settings, seconds to train once; None without numbers."""
    figure, ax = axes(xlabel="processor seconds to train", ylabel="accuracy, %", xscale="log")
    scored = [entry for entry in entries if entry["accuracy"]]
    for place, label in enumerate(dict.fromkeys(entry.label for entry in scored)):
        own = [(entry.seconds, 100 * entry.scores["accuracy"].mean()) for entry in scored if entry.label == label]
        seconds, accuracy = np.mean(own, axis=0).tolist()
        point = max(seconds, 0.01), accuracy
        ax.plot(*point, "o", ms=7 if label in OWN_COLOURS else 5, color=OWN_COLOURS.get(label, GREY))
        style: Any = {"color": INK, "fontsize": 8.5, "va": "center", "parse_math": False}
        ax.annotate(written(label), point, (6, 7 * (-1) ** place), textcoords="offset points", **style)
    ax.margins(x=0.22, y=0.12)
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter("")
    return figure if scored else None


# --- the case study -----------------------------------------------------------------------------------------------


def case_study(dataset: str, cases: Mapping[str, Any]) -> list[tuple[str, Figure]]:
    """One task of a network as each method (written as people do) sees it, with captions; class sizes once."""
    figures = [(f"{dataset}, {label}: similarity", similarity_matrix(case)) for label, case in cases.items()]
    figures += [(f"{dataset}, {label}: embedding", embedding_map(case)) for label, case in cases.items()]
    weighed = {label: case for label, case in cases.items() if case["beta"]}
    figures += [(f"{dataset}, {label}: β against degree", beta_against_degree(c)) for label, c in weighed.items()]
    figures += [(f"The long tail of {dataset}", long_tail(case["class_sizes"])) for case in [*cases.values()][:1]]
    return figures


def similarity_matrix(case: Mapping[str, Any]) -> Figure:
    """Negative Euclidean distance of support (rows) and query nodes (columns), a K x M block a pair of classes."""
    matrix, classes = np.array(case["similarity"]), [_short(name) for name in case["classes"]]
    figure, ax = axes((3.6, 3.6), xlabel="query nodes", ylabel="support nodes")
    low, high = np.percentile(matrix, [5, 100])  # one far-away node would wash out the rest
    ax.imshow(matrix, cmap="Blues", vmin=low, vmax=high, interpolation="none", aspect="equal")
    rows, columns = (side // len(classes) for side in matrix.shape)
    for c in range(1, len(classes)):
        ax.axhline(c * rows - 0.5, color="white", lw=1.5)
        ax.axvline(c * columns - 0.5, color="white", lw=1.5)
    middle = np.arange(len(classes)) + 0.5
    ax.set_xticks(middle * columns - 0.5, classes, rotation=30, ha="right", parse_math=False)
    ax.set_yticks(middle * rows - 0.5, classes, parse_math=False)
    ax.tick_params(length=0, labelsize=8)
    ax.spines[:].set_visible(False)
    return figure


def embedding_map(case: Mapping[str, Any]) -> Figure:
    """Two principal axes of the embedding: nodes of the task's classes, its support nodes and its prototypes."""
    drawn, classes = case["map"], case["classes"]
    share = [f"{100 * part:.0f} %" for part in drawn["share"]]
    labels = {"xlabel": f"first axis, {share[0]} of the variance", "ylabel": f"second axis, {share[-1]}"}
    figure, ax = axes((SIZE[0], 3.4), **labels, xticks=[], yticks=[])
    cloud, support, prototypes = (
        np.array(drawn[name], np.float64).reshape(-1, 2) for name in ("cloud", "support", "prototypes")
    )
    shots, cloud_y = len(support) // len(classes), np.array(drawn["cloud_y"])
    for c, name in enumerate(classes):
        ink = COLOURS[c % len(COLOURS)]
        ax.plot(*cloud[cloud_y == c].T, "o", ms=3, color=ink, alpha=0.45, mew=0, label=_short(name))
        ax.plot(*support[c * shots : (c + 1) * shots].T, "o", ms=7, mfc="none", mec=ink, mew=1.6)
        ax.plot(*prototypes[c], "*", ms=15, color=ink, mec=INK, mew=0.8)
    points = np.concatenate([cloud, support, prototypes])
    low, high = np.percentile(points, [1, 99], axis=0)  # one far-away node would hide all the others
    margin = np.where(high > low, 0.08 * (high - low), 1.0)
    ax.set_xlim(low[0] - margin[0], high[0] + margin[0])
    ax.set_ylim(low[1] - margin[1], high[1] + margin[1])
    legend(ax)
    return figure


def beta_against_degree(case: Mapping[str, Any]) -> Figure:
    """How much the valuator lets a support node weigh, by how many neighbours it has."""
    degree, beta = np.array(case["beta"]["degree"]), np.array(case["beta"]["beta"])
    figure, ax = axes(xscale="log", xlabel="degree + 1", ylabel="β")
    ax.axhline(case["beta"]["even"], color=GREY, lw=1, ls="--")
    ax.plot(degree + 1, beta, "o", ms=3.5, color=BLUE, alpha=0.5, mew=0)
    ax.xaxis.set_major_formatter("{x:g}")
    return figure


def long_tail(sizes: Mapping[str, Sequence[int]]) -> Figure:
    """Labelled nodes a class, largest first, coloured by what the class is for: the paper's Figure 1."""
    figure, ax = axes(xlabel="classes, by size", ylabel="labelled nodes", yscale="log")
    ordered = sorted(((count, part) for part in PARTS for count in sizes.get(part, [])), reverse=True)
    for part, ink in PARTS.items():
        bars = [(place, count) for place, (count, own) in enumerate(ordered) if own == part]
        if bars:
            ax.bar(*zip(*bars, strict=True), width=0.85, color=ink, label=f"{part} classes")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.legend(frameon=False, labelcolor=INK, fontsize=8)
    return figure


def _short(name: str, most: int = 16) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"
