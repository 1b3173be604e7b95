"""The answer for some nodes, as columns: a label, its probability, one a class, and that of being in any."""

from __future__ import annotations

import math
import numbers
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewnode._system.files import write_text
from fewnode._system.sheets import csv_text
from fewnode.dataset import Dataset
from fewnode.display import SHOWN, Shown, table_html
from fewnode.errors import FewnodeError, closest
from fewnode.graph import Ints
from fewnode.recognition.space import Explanation

NONE = "none of these"
"""The label of a node that looks like none of the classes."""
DESCRIPTION = "(description)"
"""What stands in place of a node where a description is named as the reason of an answer."""
SEPARATOR = "|"
"""Between the classes of a node in a table of answers."""
DIGITS = 6
"""Of a probability that is shown."""
COLUMNS = ("node", "label", "probability", "member", "nearest", "words", "because")
"""What a table of answers has beside a column a class."""
STEPS, CLOSE = 2_000, 1e-6
"""Of `in_proportion`: rounds at most, and how far shares may be from those asked for."""
Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Answers(Shown):
    """The answer for some nodes: a label, its probability, one a class, that of being in any and, if asked, why.

    `probabilities` has a row a node and a column a class: P(the node is in that class). A row's sum is `member`, the
    probability of being in any of them. Where `closed_set` is true, every node is taken to be in one of them: then the
    sum is 1, `reason` says why it is so, and `member` is None where it cannot be told. If it is None and the set is not
    closed, nothing tells how many nodes are in a class: columns only rank nodes. If `multi_label`, each class is judged
    on its own: a row need not sum to anything, and `member` is the probability of at least one.

    >>> found = Answers(["a", "b"], ["mail", "vpn"], np.array([[0.7, 0.2], [0.1, 0.1]]), np.array([0.9, 0.2]), [])
    >>> found.labels, found.probability.tolist()
    (['mail', 'none of these'], [0.7, 0.8])
    """

    nodes: list[str]
    classes: list[str]
    probabilities: Doubles
    member: Doubles | None
    support: list[tuple[str, str]]
    why: Explanation | None = None
    closed_set: bool = False
    reason: str = ""
    threshold: float = 0.5
    multi_label: bool = False
    claimed_from: tuple[float, ...] = ()
    """If `multi_label` and nobody gave a threshold, that of each class: what it claims has the highest expected F1."""
    top: int = 0
    """How many nodes of each class have its label beside the given ones, whatever the threshold; 0: as it decides."""
    left_out: Mapping[str, float] = field(default_factory=dict)
    """By class, the median rank among all nodes of an example that is left out; without base classes."""
    words: list[str] | None = None
    """The words that each node shares with the description of its class, if there is one."""
    because: list[str] | None = None
    """A sentence for each node with a label: what it shares with the examples of its class, and who is like it."""
    embedding: Callable[[], NDArray[np.float32]] | None = None
    """Gives z of each node, for a map; None if the method has none."""

    def __post_init__(self) -> None:
        for column in (self.probabilities.sum(axis=1), self.member):
            if column is not None and (bad := ~np.isfinite(column)).any():
                raise FewnodeError(
                    f"node {self.nodes[int(bad.argmax())]!r}: its probability is not a finite number; look for numbers "
                    "too large in the model or in the attributes of the node"
                )

    @cached_property
    def labels(self) -> list[str]:
        """The most likely class; none of these where being in any of them is less likely than the threshold.

        If `multi_label`, all classes that are at least as likely as the threshold, joined by `|`; each has one of its
        own, `claimed_from`, unless one is given for all.
        """
        if self.multi_label:
            return [SEPARATOR.join(own) or NONE for own in self._several]
        names = [*self.classes, NONE]
        return [names[place] for place in self.places.tolist()]

    @property
    def _several(self) -> list[list[str]]:
        claimed = self.probabilities >= (self.claimed_from or self.threshold)
        return [[self.classes[c] for c in np.flatnonzero(row).tolist()] for row in claimed]

    @cached_property
    def places(self) -> Ints:
        """The place of each node's label among the classes; -1 for none of these. Not for `multi_label`."""
        best, top = self.probabilities.argmax(axis=1), reduce(np.maximum, self.probabilities.T)
        if self.closed_set:
            return np.where(top <= 0, -1, best)
        if self.member is not None and not self.top:
            return np.where((self.member < self.threshold) | (top <= 0), -1, best)  # 0 is said by somebody
        known = top == 1  # where nodes are only ranked, the given ones alone are known
        for c in range(len(self.classes)):
            others = np.flatnonzero((best == c) & ~known)
            known[others[np.argsort(-top[others], kind="stable")[: self.top]]] = True
        return np.where(known, best, -1)

    @property
    def check(self) -> str:
        """How well examples are found again, in a sentence; nothing where none was left out."""
        ranks = [f"{rank:,.0f} ({name})" for name, rank in self.left_out.items() if rank == rank]
        some = f"left out, an example ranks {', '.join(ranks[:SHOWN])} among all nodes (median)" if ranks else ""
        return "; ".join(filter(None, [some, "" if self.closed_set or self.member is not None else self.reason]))

    @cached_property
    def probability(self) -> Doubles:
        """Of the label that each node has; of none of these it is 1 - member.

        If `multi_label`, of the likeliest class, whatever the label.
        """
        top: Doubles = reduce(np.maximum, self.probabilities.T)  # sooner than by rows, which are short
        if self.multi_label or self.closed_set or self.member is None:
            return top
        return np.where(self.places < 0, np.round(1 - self.member, DIGITS), top)

    def in_proportion(self, shares: Mapping[str, float]) -> Answers:
        """The answers if the classes have these shares among those of the nodes that are in any.

        Each class gets one factor, and `member` stays as it is. Given nodes keep their classes; the others share what
        these leave. Wrong shares do harm: give those that you know.
        """
        if self.multi_label:
            raise FewnodeError("several classes a node: each is judged on its own, so their shares sum to nothing")
        wanted, label = checked_shares(self.classes, shares), dict(self.support)
        given = np.array([node in label for node in self.nodes], bool)
        total = self.probabilities.sum(axis=1, keepdims=True)
        weight = np.ones(len(self.nodes)) if self.member is None or self.closed_set else self.member
        own = [self.classes.index(label[self.nodes[i]]) for i in np.flatnonzero(given)]
        taken = np.bincount(own, minlength=wanted.size)
        left = np.maximum(wanted * (weight[~given].sum() + taken.sum()) - taken, 0)
        found = self.probabilities.copy()
        if left.sum():
            among = self.probabilities[~given] / np.maximum(total[~given], 1e-12)
            found[~given] = in_proportion(among, left / left.sum(), weight[~given]) * total[~given]
        return replace(self, probabilities=found.round(DIGITS))

    # --- tables ---

    @property
    def nearest(self) -> list[list[str]]:
        """The support nodes nearest to each node, nearest first; empty unless explained."""
        return [[self.support[i][0] for i in row] for row in self.why.nearest] if self.why else []

    @property
    def _reasons(self) -> dict[str, list[Any]]:
        """The columns that say why, those that there are."""
        reasons = {"nearest": self.nearest if self.why else None, "words": self.words, "because": self.because}
        return {name: column for name, column in reasons.items() if column is not None}

    @property
    def columns(self) -> dict[str, Any]:
        """`node`, `label`, `probability`, one a class, `member` (NaN: not known) and, if explained, why."""
        named: dict[str, Any] = {"node": self.nodes, "label": self.labels, "probability": self.probability}
        named |= dict(zip(class_columns(self.classes), self.probabilities.T, strict=True))
        named["member"] = np.full(len(self.nodes), np.nan) if self.member is None else self.member
        return named | self._reasons

    def to_csv(self) -> str:
        """The columns as text; `member` is empty where it is not known."""
        named = self.columns
        cells = [_cells(column) for column in named.values()]
        return csv_text([list(named), *map(list, zip(*cells, strict=True))])

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` with the columns of `to_csv`."""
        import pandas as pd

        return pd.DataFrame(dict(self.columns))

    def to_arrow(self) -> Any:
        """A `pyarrow.Table` with the columns of `to_csv`."""
        import pyarrow  # half a second to import

        return pyarrow.table(self.columns)

    def to_json(self) -> dict[str, Any]:
        """The answers as an object; `probabilities` by the name of the class, `member` null where it is not known."""
        rows: dict[str, list[Any]] = {"node": self.nodes, "label": self.labels}
        rows["probability"] = self.probability.tolist()
        rows["probabilities"] = [dict(zip(self.classes, row, strict=True)) for row in self.probabilities.tolist()]
        rows["member"] = [None] * len(self.nodes) if self.member is None else self.member.tolist()
        rows |= self._reasons | ({"labels": self._several} if self.multi_label else {})
        predictions = [dict(zip(rows, cells, strict=True)) for cells in zip(*rows.values(), strict=True)]
        beta = [{"beta": beta} for beta in self.why.beta.tolist()] if self.why else [{}] * len(self.support)
        given = zip(self.support, beta, strict=True)
        support = [{"node": node, "class": label, **weight} for (node, label), weight in given]
        mode: dict[str, Any] = {"why": self.reason} if self.closed_set else {"threshold": self.threshold}
        mode |= {"multi_label": True} if self.multi_label else {}
        mode |= {"claimed_from": dict(zip(self.classes, self.claimed_from, strict=True))} if self.claimed_from else {}
        ranks = {name: rank for name, rank in self.left_out.items() if rank == rank}
        mode |= {"left_out": ranks} if ranks else {}
        told = {"classes": self.classes, "closed_set": self.closed_set, **mode}
        return {**told, "support": support, "predictions": predictions}

    def support_csv(self) -> str:
        """`node,class,beta`: the weight of each support node in its class's prototype."""
        return csv_text([["node", "class", "beta"], *([*pair, f"{beta:.6f}"] for pair, beta in self._weighted)])

    def support_table(self) -> str:
        """These weights for people: the heaviest support node of each class first."""
        rows = sorted(self._weighted, key=lambda row: (row[0][1], -row[1]))
        width = max([len(node) for (node, _), _ in rows], default=0)
        return "\n".join(f"  {node.ljust(width)}  β = {beta:.3f}  {label}" for (node, label), beta in rows)

    @property
    def _weighted(self) -> list[tuple[tuple[str, str], float]]:
        return list(zip(self.support, self.why.beta.tolist() if self.why else [], strict=False))

    def write(self, path: Path) -> None:
        write_text(path, self.to_csv())
        if self.why:
            write_text(path.with_suffix(".support.csv"), self.support_csv())

    def plot(self, kind: str = "map", truth: Dataset | Sequence[str | None] | None = None) -> Any:
        """A picture, a matplotlib `Figure` that notebooks show: `map`, `calibration` or `precision-recall`.

        The map shows the nodes by their embedding. The other two need the `truth`: a class for each node (None:
        unknown), or a dataset that has them.
        """
        from fewnode.review.answer_plots import draw  # which brings matplotlib

        return draw(self, kind, truth)

    def facts(self) -> dict[str, object]:
        """How many nodes have each label."""
        counts = Counter(self.labels)
        return {"nodes": f"{len(self.nodes):,}", **{name: f"{count:,}" for name, count in counts.most_common(SHOWN)}}

    def _repr_html_(self) -> str:
        """The nodes that are surest to be in a class."""
        sure = self.probabilities.max(axis=1) if self.member is None else self.member
        first = np.argsort(-sure, kind="stable")[:SHOWN].tolist()
        member = ["" if self.member is None else f"{sure[i]:.3f}" for i in first]
        some = zip(first, member, strict=True)
        rows = [[self.nodes[i], self.labels[i], f"{self.probability[i]:.3f}", m] for i, m in some]
        title = ", ".join(f"{name} {count}" for name, count in self.facts().items())
        return table_html(title, COLUMNS[:4], rows, len(self.nodes))


def class_columns(classes: Sequence[str]) -> list[str]:
    """A column name for each class, none of them equal to another or to one of `COLUMNS`.

    A class called like one of those is p(NAME); and so is one called p(…), or it could be taken for that.

    >>> class_columns(["mail", "node", "p(node)"])
    ['mail', 'p(node)', 'p(p(node))']
    """
    return [f"p({c})" if c in COLUMNS or (c.startswith("p(") and c.endswith(")")) else c for c in classes]


def _cells(column: Any) -> list[str]:
    if isinstance(column, np.ndarray):
        return ["" if value != value else f"{value:.{DIGITS}f}" for value in column.tolist()]
    return [" ".join(value) if isinstance(value, list) else value for value in column]


def in_proportion(probability: Doubles, shares: Doubles, weight: Doubles) -> Doubles:
    """The answers with the factor per class that gives classes these shares on average, rows counting by their weight.

    Iterative scaling (Sinkhorn, 1967) finds these factors, which are unique up to a constant: log-odds of two classes
    change by the same for every row, so nodes that looked alike still do.

    >>> in_proportion(np.array([[0.5, 0.5], [0.5, 0.5]]), np.array([0.75, 0.25]), np.ones(2)).round(2).tolist()
    [[0.75, 0.25], [0.75, 0.25]]
    """
    p, total = np.maximum(probability, 1e-30), weight.sum()  # a 0 was rounded: unlikely, not impossible
    if not total:
        return probability
    factor = np.ones(p.shape[1])
    for _ in range(STEPS):
        found = factor * ((weight / (p @ factor)) @ p) / total
        if np.abs(found - shares).max() < CLOSE:
            break
        factor *= shares / np.maximum(found, 1e-300)
    scaled: Doubles = p * factor
    scaled /= scaled.sum(axis=1, keepdims=True)
    return scaled


def checked_shares(classes: Sequence[str], proportions: Mapping[str, float]) -> Doubles:
    """The share of each class, in the order of `classes`; what cannot be shares of them is refused."""
    if len(classes) == 1:
        raise FewnodeError(f"proportions are those of several classes; {classes[0]!r} is given alone")
    for name, share in proportions.items():
        if name not in classes:
            raise FewnodeError(f"proportions: {name!r} is none of the classes{closest(str(name), classes)}")
        if not isinstance(share, numbers.Real) or not math.isfinite(share) or share < 0:
            raise FewnodeError(f"proportions: the share of {name!r} is {share!r}, expected a number from 0 to 1")
    if missing := [name for name in classes if name not in proportions]:
        raise FewnodeError(f"proportions: class {missing[0]!r} has no share; give one for every class, if only 0")
    shares = np.array([proportions[name] for name in classes], np.float64)
    if abs(shares.sum() - 1) > 0.01:
        raise FewnodeError(f"proportions: the shares sum to {shares.sum():g}, expected 1, such as 0.3 and 0.7")
    return np.asarray(shares / shares.sum())
