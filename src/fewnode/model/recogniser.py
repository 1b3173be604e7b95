"""A fitted method and a support set: any nodes can be asked about, over and over."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from fewnode.dataset import Dataset
from fewnode.episodes import Described, Task
from fewnode.errors import FewnodeError, closest
from fewnode.graph import Attributes, Graph, Ints, is_sparse
from fewnode.method import Probabilities
from fewnode.model.fitted_method import FittedMethod, finite
from fewnode.nodes import Labels, Nodes, classes, label_list, node_rows, refuse_twice, support_rows
from fewnode.recognition.class_bias import biased, checked_shares, in_proportion
from fewnode.recognition.evidence import (
    IMPOSSIBLE,
    along,
    background,
    learned_direction,
    left_out_nearness,
    log_odds,
    remaining,
)
from fewnode.recognition.labelled import DOUBTED
from fewnode.recognition.prepared import PreparedSupport
from fewnode.recognition.prototypes import Explanation, Prototypical

NO_DESCRIPTIONS: Mapping[Hashable, Attributes] = MappingProxyType({})
NO_REJECTED: Mapping[Hashable, Nodes] = MappingProxyType({})
NONE = "none of these"
"""The label of a node that looks like none of the classes."""
DIGITS = 6
"""Of a probability that is shown."""


class Recogniser:
    """A model and a support set, made ready once: then any nodes can be asked about, over and over."""

    def __init__(
        self,
        fitted: FittedMethod,
        network: Graph | Dataset,
        graph: Graph,
        support: Nodes,
        support_y: Labels,
        described: Mapping[Hashable, Attributes] = NO_DESCRIPTIONS,
        several: bool = False,
        rejected: Mapping[Hashable, Nodes] = NO_REJECTED,
    ) -> None:
        """`network` is what the caller means by nodes, `graph` the same as the method reads it.

        `described` are rows of attributes that stand for classes, too, or alone. If `several`, a support node may be
        in several classes: that is for `IndependentClasses`. `rejected`: for some classes, nodes that are not in them.
        """
        self.fitted, self.network, self.graph = fitted, network, graph
        self._method = fitted.method
        if described and not getattr(self._method, "reads_descriptions", False):
            raise FewnodeError(f"{fitted.name} cannot read descriptions of classes; gpn-plus can")
        self.classes = classes([*label_list(support_y), *described])
        self.support, self._support_y = support_rows(self.network, support, support_y, self.classes, several)
        self._described = self._rows_of(described)
        self.rejected = self._checked_rejected(rejected)
        self._remembered: dict[str, Any] = {}

    def _checked_rejected(self, rejected: Mapping[Hashable, Nodes]) -> dict[int, Ints]:
        """By the place of the class, the rows of nodes that are not in it."""
        found: dict[int, Ints] = {}
        for name, nodes in rejected.items():
            rows = np.unique(node_rows(self.network, nodes, "rejected"))
            if not rows.size:
                continue
            if name not in self.classes:
                known = [str(each) for each in self.classes]
                raise FewnodeError(f"rejected: {name!r} is none of the classes{closest(str(name), known)}")
            if not isinstance(self._method, Prototypical):
                raise FewnodeError(f"{self.fitted.name} cannot learn from rejected nodes; gpn-plus can")
            place = self.classes.index(name)
            if (both := np.intersect1d(rows, self.support[self._support_y == place])).size:
                node = self.network.node_name(int(both[0])) if isinstance(self.network, Dataset) else int(both[0])
                raise FewnodeError(f"node {node!r} is given for class {name!r}, and as not in it; withdraw one of them")
            found[place] = rows
        return found

    def _rows_of(self, described: Mapping[Hashable, Attributes]) -> Described | None:
        if not described:
            return None
        rows = list(described.values())
        x = sp.vstack(rows, format="csr") if is_sparse(rows[0]) else np.concatenate(rows)
        return Described(x, np.array([self.classes.index(name) for name in described], np.int64))

    def elsewhere(self, network: Dataset, method: Any) -> Recogniser:
        """The same support set, made ready already, among other nodes: `network` begins with those of this one.

        `method` is the same one, for the nodes of that network.
        """
        if self._prepared is not None and self.cannot_tell is None:
            _ = self._share  # computed once, for all copies
        _ = self._directions
        found = copy.copy(self)
        found._remembered = {}
        found.network, found.graph, found._method = network, network.graph, method
        found.fitted = replace(self.fitted, method=method)
        return found

    def rejecting(self, rejected: Mapping[Hashable, Nodes]) -> Recogniser:
        """The same classes with other rejected nodes: what does not depend on these is not computed again."""
        found = copy.copy(self)
        found.__dict__.pop("_directions", None)
        found.rejected = self._checked_rejected(rejected)
        return found

    def task(self, query: Ints) -> Task:
        """The question about these nodes."""
        return Task(self.support, self._support_y, query, self._described)

    def rows(self, query: Nodes) -> Ints:
        """The rows of the nodes that are asked about."""
        return node_rows(self.network, query, "query")

    @cached_property
    def _prepared(self) -> PreparedSupport | None:
        if not isinstance(self._method, Prototypical):
            return None
        return self._method.prepare(self.graph, self.support, self._support_y, self._described)

    @property
    def labelled_z(self) -> Float[Tensor, "k d"] | None:
        """z of what stands for the classes: of the support nodes, then of descriptions; None without an embedding."""
        return None if self._prepared is None else self._prepared.z

    @property
    def disagreeing(self) -> list[Hashable]:
        """Classes whose description their labelled nodes disagree with."""
        prepared = self._prepared
        if self._described is None or prepared is None or prepared.count is None:
            return []
        worth = prepared.count[len(self.support) :]
        least = DOUBTED * getattr(self._method, "worth_", 1.0)
        return [self.classes[c] for c, w in zip(self._described.y.tolist(), worth.tolist(), strict=True) if w < least]

    def predict_proba(self, query: Nodes, transductive: bool = False) -> Probabilities:
        """As that of `Estimator`."""
        return self.member(query)[:, None] if len(self.classes) == 1 else self.among(query, transductive)

    def among(self, query: Nodes, transductive: bool = False) -> Probabilities:
        """P(class) of nodes that are in one of the classes; rows sum to 1."""
        asked = self.rows(query)
        found, shift = self._among(asked, transductive), self.shift(asked)
        return found if shift is None else biased(found, shift)

    def _among(self, asked: Ints, transductive: bool = False) -> Probabilities:
        """The same, whatever was rejected."""
        if len(self.classes) == 1:
            return np.ones((asked.size, 1), np.float32)
        if transductive or not isinstance(self._method, Prototypical):
            return self.fitted.predict_tasks(self.graph, [self.task(asked)], transductive)[0]
        return self._alone(self._method, self.graph, asked)

    def _alone(self, method: Prototypical, graph: Graph, asked: Ints) -> Probabilities:
        """The same for nodes of that graph, each on its own."""
        prepared = self._prepared
        if len(self.classes) == 1 or prepared is None:
            return np.ones((asked.size, 1), np.float32)
        fitted = replace(self.fitted, method=method)
        return fitted.tempered(graph, method.answer(graph, prepared, asked), self.task(asked), prepared=prepared)

    # --- what was rejected ---

    def shift(self, query: Nodes) -> NDArray[np.float64] | None:
        """What rejected nodes add to the log-odds of each class, a column each; None if there are none."""
        if self._directions is None or not isinstance(self._method, Prototypical):
            return None
        asked = self.rows(query)
        own, found = list(self.rejected), np.zeros((asked.size, len(self.classes)))
        with torch.inference_mode():
            found[:, own] = along(self._method.rows(self.graph, asked), self._directions).cpu().numpy()
        for place, rows in self.rejected.items():
            found[np.isin(asked, rows), place] = IMPOSSIBLE
        return found

    @cached_property
    def _directions(self) -> Float[Tensor, "d n"] | None:
        """Along which nodes become more likely in each class that has rejected nodes."""
        method, prepared = self._method, self._prepared
        if not self.rejected or not isinstance(method, Prototypical) or prepared is None:
            return None
        with torch.inference_mode():
            found = [self._direction(method, prepared, c, no) for c, no in self.rejected.items()]
        return torch.stack(found, dim=1).to(prepared.z.device)

    def _direction(self, method: Prototypical, prepared: PreparedSupport, c: int, no: Ints) -> Float[Tensor, " d"]:
        """That of one class. It is remembered: what is rejected for another class does not change it."""
        key, asked = f"direction {c}", no.tobytes()
        if key in self._remembered and self._remembered[key][0] == asked:
            return cast(Tensor, self._remembered[key][1])
        there, graph = (method, self.graph) if method.of_all is None else method.of_all
        some = background(graph.n)
        usual = self._usual(there, graph, some)[:, c]
        yes = self.support[self._support_y == c]
        near = left_out_nearness(prepared, self.task(some).labels, c, method.distance)[: len(yes)]
        prior = [self._before(method, self.graph, yes, near)[:, c], self._before(method, self.graph, no)[:, c], usual]
        target = torch.cat([torch.ones(len(yes)), torch.zeros(len(no)), usual])
        z = [method.rows(self.graph, yes), method.rows(self.graph, no), there.rows(graph, some)]
        found = learned_direction(torch.cat(z).cpu(), log_odds(torch.cat(prior)), target)
        self._remembered[key] = (asked, found)
        return found

    def _usual(self, method: Prototypical, graph: Graph, some: Ints) -> Float[Tensor, "q n"]:
        """`_before` of the nodes that stand for all: the same for every class, whatever was rejected."""
        if "usual" not in self._remembered:
            self._remembered["usual"] = self._before(method, graph, some)
        return cast(Tensor, self._remembered["usual"])

    def _before(
        self, method: Prototypical, graph: Graph, nodes: Ints, near: Float[Tensor, "q n"] | None = None
    ) -> Float[Tensor, "q n"]:
        """P(a node is in a class), a column each, whatever was rejected; `near`: how near they are to prototypes."""
        found = torch.from_numpy(self._alone(method, graph, nodes)).double()
        if self.cannot_tell is not None or self._prepared is None:
            return found
        if near is None:
            near = method.nearness(graph, self._prepared, nodes)
        member = method.knows().probability(near, self._prepared.shots, method.crowd(graph, nodes), self._share)
        return found * member.cpu().double()[:, None]

    # --- answers ---

    def judge(
        self,
        query: Nodes,
        transductive: bool = False,
        closed_set: bool = False,
        proportions: Mapping[str, float] | None = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        """P(a node is in a class), a column each, and P(it is in any), which is their sum; in a closed set that is 1.

        The latter is None where it cannot be told: then the set is taken for closed. A support node is in its class.
        All are rounded, once and for whoever shows them: so they are the same everywhere. `proportions` are the shares
        that the classes are known to have among the members of these nodes.
        """
        shares = None if proportions is None else checked_shares(self.classes, proportions)
        asked = self.rows(query)
        found, member = self._judged(asked, transductive)
        if shares is not None:
            weight = np.ones(asked.size) if member is None or closed_set else member
            found = self._in_proportion(asked, found, shares, weight)
        if member is not None and not closed_set:
            found *= member[:, None]
        label = dict(zip(self.support.tolist(), self._support_y.tolist(), strict=True))
        for row in np.flatnonzero(np.isin(asked, self.support)):
            found[row] = np.arange(len(self.classes)) == label[int(asked[row])]
            if member is not None:
                member[row] = 1.0
        return found.round(DIGITS), None if member is None else member.round(DIGITS)

    def _judged(self, asked: Ints, transductive: bool) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        """P(class) among the classes, and P(it is in any of them) if that can be told."""
        found, member = self._judged_before(asked, transductive)
        shift = self.shift(asked)
        if shift is None:
            return found.astype(np.float64), member
        member = None if member is None else remaining(member, found, shift)
        return biased(found, shift).astype(np.float64), member

    def _judged_before(self, asked: Ints, transductive: bool) -> tuple[Probabilities, NDArray[np.float64] | None]:
        """The same, whatever was rejected. Of all nodes it is remembered: a rejection asks for it again."""
        whole = asked.size == self.graph.n and not transductive and np.array_equal(asked, np.arange(asked.size))
        if whole and self._remembered.get("graph") is self.graph:
            found, member = self._remembered["answers"]
            return found, None if member is None else member.copy()
        found = self._among(asked, transductive)
        member = self._familiar(asked, self._share).astype(np.float64) if self.cannot_tell is None else None
        if whole:
            self._remembered |= {"graph": self.graph, "answers": (found, None if member is None else member.copy())}
        return found, member

    def _in_proportion(
        self, asked: Ints, found: NDArray[np.float64], shares: NDArray[np.float64], weight: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Support nodes among those asked about have their classes: others share what these leave."""
        known = np.isin(asked, self.support)
        label = dict(zip(self.support.tolist(), self._support_y.tolist(), strict=True))
        taken = np.bincount([label[node] for node in asked[known].tolist()], minlength=shares.size)
        left = np.maximum(shares * (weight[~known].sum() + taken.sum()) - taken, 0)
        if left.sum():
            found[~known] = in_proportion(found[~known], left / left.sum(), weight[~known])
        return found

    @property
    def cannot_tell(self) -> str | None:
        """Why it cannot be told whether a node is in any of the classes, and what would help; None if it can."""
        better = "" if self.fitted.name == "gpn-plus" else "train with --method gpn-plus, or "
        remedy = f"{better}give a second class" if len(self.classes) == 1 else f"{better}label more classes"
        if not isinstance(self._method, Prototypical):
            return f"{Path(self.fitted.name).name} cannot tell whether a node is in none of the classes; {remedy}"
        if self._method.membership is None:
            return f"there were too few known classes to learn from what is in none, three are needed; {remedy}"
        return None

    def member(self, query: Nodes) -> Probabilities:
        """P(a node is in one of the classes), whatever else is asked about."""
        return self.familiar(query, self._share)

    @cached_property
    def _share(self) -> float:
        method, prepared = self.telling()
        return method.share_of_members(self.graph, prepared)

    def familiar(self, query: Nodes, share: float = 0.5) -> Probabilities:
        """The same, if that share of the network is in the classes."""
        asked = self.rows(query)
        found, shift = self._familiar(asked, share), self.shift(asked)
        return found if shift is None else remaining(found, self._among(asked), shift).astype(np.float32)

    def _familiar(self, asked: Ints, share: float) -> Probabilities:
        """The same, whatever was rejected."""
        method, prepared = self.telling()
        return finite(method.familiar_to(self.graph, prepared, asked, share))

    def telling(self) -> tuple[Prototypical, PreparedSupport]:
        """The method and what it made of the support set, if it can tell what is in none of the classes."""
        if self.cannot_tell or not isinstance(self._method, Prototypical) or self._prepared is None:
            raise FewnodeError(str(self.cannot_tell))
        return self._method, self._prepared

    @property
    def embeds(self) -> bool:
        """Whether there is an embedding of nodes."""
        return isinstance(self._method, Prototypical)

    def embedding(self, query: Nodes) -> NDArray[np.float32]:
        """z of the nodes, a row each."""
        if not isinstance(self._method, Prototypical):
            raise FewnodeError(f"{self.fitted.name} has no embedding of nodes")
        return np.asarray(self._method.embedding(self.graph)[0].cpu().numpy()[self.rows(query)], np.float32)

    def explain(self, query: Nodes) -> Explanation:
        if not isinstance(self._method, Prototypical) or self._prepared is None:
            raise FewnodeError(f"{self.fitted.name} has no prototypes to explain its answers by")
        return self._method.explain(self.graph, self._prepared, self.rows(query))


def task_rows(network: Graph | Dataset, task: Task) -> Task:
    """The task with row numbers. Its nodes may be names or masks, too; then labels count where the mask is true."""
    support, support_y = _rows(network, task.support, task.support_y, "support")
    refuse_twice(network, support, support_y.tolist())
    return Task(support, support_y, node_rows(network, task.query, "query"), task.described)


def _rows(network: Graph | Dataset, nodes: Ints, y: Ints, what: str) -> tuple[Ints, Ints]:
    return node_rows(network, nodes, what), y[nodes] if nodes.dtype == bool else y
