"""The answer for some nodes, as columns: a label, its probability, one a class, and that of being in any."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewnode._system.files import write_text
from fewnode.dataset import Dataset
from fewnode.display import SHOWN, Shown, as_frame
from fewnode.errors import FewnodeError
from fewnode.graph import Ints
from fewnode.recognition import answer_tables as tables
from fewnode.recognition.answer_tables import DIGITS
from fewnode.recognition.class_bias import checked_shares, in_proportion
from fewnode.recognition.space import Explanation

NONE = "none of these"
"""The label of a node that looks like none of the classes."""
DESCRIPTION = "(description)"
"""What stands in place of a node where a description is named as the reason of an answer."""
SEPARATOR = "|"
"""Between the classes of a node in a table of answers."""


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
    probabilities: NDArray[np.float64]
    member: NDArray[np.float64] | None
    support: list[tuple[str, str]]
    why: Explanation | None = None
    closed_set: bool = False
    reason: str = ""
    threshold: float = 0.5
    multi_label: bool = False
    top: int = 0
    """How many nodes of each class have its label beside the given ones, where nodes are only ranked."""
    left_out: Mapping[str, float] = field(default_factory=dict)
    """By class, the median rank among all nodes of an example that is left out; without base classes."""
    words: list[str] | None = None
    """Of each node, the words that it shares with the description of its class, if there is one."""
    because: list[str] | None = None
    """Of each node that has a label, a sentence: what it shares with the examples of its class, and who is like it."""
    embedding: Callable[[], NDArray[np.float32]] | None = None
    """Gives z of each node, for a map; None if the method has none."""

    def __post_init__(self) -> None:
        for numbers in (self.probabilities, self.member):
            if numbers is None:
                continue
            bad = ~np.isfinite(numbers if numbers.ndim == 1 else numbers.sum(axis=1))
            if bad.any():
                name = self.nodes[int(bad.argmax())]
                raise FewnodeError(
                    f"node {name!r}: its probability is not a finite number; look for numbers too large in the model "
                    "or in the attributes of the node"
                )

    @cached_property
    def labels(self) -> list[str]:
        """The most likely class; none of these where being in any of them is less likely than the threshold.

        If `multi_label`, all classes that are at least as likely as the threshold, joined by `|`.
        """
        if self.multi_label:
            chosen = [np.flatnonzero(row >= self.threshold).tolist() for row in self.probabilities]
            return [SEPARATOR.join(self.classes[c] for c in own) or NONE for own in chosen]
        names = [*self.classes, NONE]
        return [names[place] for place in self.places.tolist()]

    @cached_property
    def places(self) -> Ints:
        """Of each node, the place of its label among the classes; -1 for none of these. Not for `multi_label`."""
        best: Ints = self.probabilities.argmax(axis=1)
        if self.closed_set:
            return best
        if self.member is None:  # only ranked: the given nodes alone are known
            known = self.probabilities.max(axis=1) == 1
            for c, column in enumerate(self.probabilities.T):
                others = np.flatnonzero((best == c) & ~known)
                known[others[np.argsort(-column[others], kind="stable")[: self.top]]] = True
            return np.where(known, best, -1)
        refused = reduce(np.maximum, self.probabilities.T) <= 0  # said by somebody; holds at a threshold of 0
        return np.where((self.member < self.threshold) | refused, -1, best)

    @property
    def check(self) -> str:
        """How well examples are found again, in a sentence; nothing where none was left out."""
        ranks = [f"{rank:,.0f} ({name})" for name, rank in self.left_out.items() if rank == rank]
        some = f"left out, an example ranks {', '.join(ranks[:SHOWN])} among all nodes (median)" if ranks else ""
        return "; ".join(filter(None, [some, "" if self.closed_set or self.member is not None else self.reason]))

    @cached_property
    def probability(self) -> NDArray[np.float64]:
        """Of the label that each node has; of none of these it is 1 - member.

        If `multi_label`, of the likeliest class, whatever the label.
        """
        top: NDArray[np.float64] = reduce(np.maximum, self.probabilities.T)  # sooner than by rows, which are short
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
        place = {name: c for c, name in enumerate(self.classes)}
        given = np.array([node in label for node in self.nodes], bool)
        total = self.probabilities.sum(axis=1, keepdims=True)
        weight = np.ones(len(self.nodes)) if self.member is None or self.closed_set else self.member
        taken = np.bincount([place[label[self.nodes[i]]] for i in np.flatnonzero(given)], minlength=wanted.size)
        left = np.maximum(wanted * (weight[~given].sum() + taken.sum()) - taken, 0)
        found = self.probabilities.copy()
        if left.sum():
            among = self.probabilities[~given] / np.maximum(total[~given], 1e-12)
            found[~given] = in_proportion(among, left / left.sum(), weight[~given]) * total[~given]
        return replace(self, probabilities=found.round(DIGITS))

    @property
    def nearest(self) -> list[list[str]]:
        """The support nodes nearest to each node, nearest first; empty unless explained."""
        return [[self.support[i][0] for i in row] for row in self.why.nearest] if self.why else []

    def to_csv(self) -> str:
        """`node,label,probability`, one column a class, `member` (empty: not known) and, if explained, `nearest`."""
        return tables.csv(self)

    def support_csv(self) -> str:
        """`node,class,beta`: the weight of each support node in its class's prototype."""
        return tables.support_csv(self)

    def support_table(self) -> str:
        """The same for people: the heaviest support node of each class first."""
        return tables.support_text(self)

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` with the columns of `to_csv`."""
        return as_frame(tables.columns(self))

    def to_arrow(self) -> Any:
        """A `pyarrow.Table` with the columns of `to_csv`."""
        return tables.arrow(self)

    def to_json(self) -> dict[str, Any]:
        """The same as an object; `probabilities` by the name of the class, `member` null where it is not known."""
        return tables.as_object(self)

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
        return tables.html(self)
