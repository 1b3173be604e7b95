"""Answers as pictures: a map of the nodes, how far probabilities can be trusted, what is found and what is missed."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fewnode.dataset import Dataset
from fewnode.embedding.projection import Plane
from fewnode.errors import FewnodeError, closest
from fewnode.recognition.answers import NONE, Answers

if TYPE_CHECKING:
    from matplotlib.figure import Figure


KINDS = ("map", "calibration", "precision-recall")
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#999933", "#882255")
"""Paul Tol's bright scheme: distinct to colour-blind eyes."""
OTHERS = "#bbbbbb"
MOST = 20_000
"""Nodes on a map: beyond, every so-manieth of those in no class is left out."""
BINS = 10


def draw(found: Answers, kind: str, truth: Dataset | Sequence[str | None] | None) -> Figure:
    """One of the pictures."""
    if kind not in KINDS:
        raise FewnodeError(f"there is no picture {kind!r}{closest(str(kind), KINDS)}; there are {', '.join(KINDS)}")
    if kind == "map":
        return _map(found)
    if found.multi_label:
        raise FewnodeError(f"a {kind} picture is of answers with one class a node, not of several (multi_label)")
    if truth is None:
        raise FewnodeError(f"a {kind} picture compares answers with the truth: give truth=, a class for each node")
    if isinstance(truth, Dataset):
        labels = [int(truth.y[truth.node(name)]) for name in found.nodes]
        truth = [truth.class_names[label] if label >= 0 else None for label in labels]
    if len(truth) != len(found.nodes):
        raise FewnodeError(f"{len(truth)} classes in truth for {len(found.nodes)} nodes; expected one a node, or None")
    return _calibration(found, truth) if kind == "calibration" else _precision_recall(found, truth)


def _axes(title: str) -> tuple[Figure, Any]:
    from matplotlib.figure import Figure  # takes a second to import

    class Picture(Figure):
        """A figure that a notebook shows by itself, without `pyplot`."""

        def _repr_png_(self) -> bytes:
            buffer = io.BytesIO()
            self.savefig(buffer, format="png", dpi=110)
            return buffer.getvalue()

    figure = Picture(figsize=(6, 4.5), layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _map(found: Answers) -> Figure:
    if found.embedding is None:
        raise FewnodeError("there is no map: the method has no embedding of nodes, or these are a part of the answer")
    figure, axes = _axes("nodes by their embedding")
    z, label = found.embedding(), np.array(found.labels)
    xy = Plane.of(z).place(z)
    others = np.flatnonzero(label == NONE)
    others = others[:: max(1, len(others) // MOST)]
    axes.scatter(*xy[others].T, s=4, color=OTHERS, label=NONE, rasterized=True)
    several = [name for name in dict.fromkeys(label.tolist()) if name not in (*found.classes, NONE)]
    for place, name in enumerate([*found.classes, *several]):  # a class has the same colour in every picture
        if (label == name).any():
            axes.scatter(*xy[label == name].T, s=12, color=COLOURS[place % len(COLOURS)], label=name, rasterized=True)
    given = {name for name, _ in found.support}
    mine = [i for i, name in enumerate(found.nodes) if name in given]
    if mine:
        axes.scatter(*xy[mine].T, s=60, facecolors="none", edgecolors="black", label="given")
    axes.set_axis_off()
    _legend(axes)
    return figure


def _calibration(found: Answers, truth: Sequence[str | None]) -> Figure:
    """Where answers are as often right as they say, points are on the line."""
    known = np.array([name is not None for name in truth])
    if not known.any():
        raise FewnodeError("none of the nodes has a known class, so there is nothing to compare with")
    right = [a == b or (a == NONE and b not in found.classes) for a, b in zip(found.labels, truth, strict=True)]
    said, hits = found.probability[known], np.array(right)[known]
    place = np.minimum((said * BINS).astype(int), BINS - 1)
    figure, axes = _axes("how often answers are right")
    axes.plot([0, 1], [0, 1], color=OTHERS, lw=1)
    filled = [b for b in range(BINS) if (place == b).any()]
    x, y = ([float(values[place == b].mean()) for b in filled] for values in (said, hits))
    axes.plot(x, y, color=COLOURS[0], lw=1)
    axes.scatter(x, y, s=[20 + 180 * float((place == b).mean()) for b in filled], color=COLOURS[0])
    axes.set(xlabel="probability that was said", ylabel="share that was right", xlim=(0, 1.02), ylim=(0, 1.02))
    return figure


def _precision_recall(found: Answers, truth: Sequence[str | None]) -> Figure:
    """For each class: of those that are claimed, how many are members; of all members, how many are claimed."""
    from sklearn.metrics import average_precision_score, precision_recall_curve

    known = np.array([name is not None for name in truth])
    figure, axes = _axes("what is found, and what is missed")
    for place, name in enumerate(found.classes):
        member = np.array([each == name for each in truth])[known]
        if not member.any():
            continue
        score, colour = found.probabilities[known, place], COLOURS[place % len(COLOURS)]
        precision, recall, _ = precision_recall_curve(member, score)
        label = f"{name}: average precision {average_precision_score(member, score):.2f}"
        axes.plot(recall, precision, color=colour, label=label)
    if not axes.lines:
        raise FewnodeError("truth has no node of any of the classes: " + ", ".join(found.classes[:BINS]))
    axes.set(xlabel="recall", ylabel="precision", xlim=(0, 1.02), ylim=(0, 1.02))
    _legend(axes)
    return figure


def _legend(axes: Any) -> None:
    """Names are somebody's text: a dollar in one is a dollar."""
    for text in axes.legend(frameon=False, fontsize="small").get_texts():
        text.set_parse_math(False)
