"""scikit-learn's door: `fit(X, y)` on node ids, the graph in the constructor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from fewnode.class_labels import UNKNOWN
from fewnode.column_blocks import Block
from fewnode.dataset import ClassSplit, Dataset
from fewnode.errors import FewnodeError
from fewnode.estimator import Estimator
from fewnode.graph import Graph, Ints
from fewnode.model.recogniser import Recogniser
from fewnode.nodes import Network, as_dataset, node_rows

Array = NDArray[Any]
Rows = NDArray[np.float64]
T = TypeVar("T")


class InvalidInput(FewnodeError, ValueError):
    """What was given cannot be used. scikit-learn expects a `ValueError`."""


class NotFitted(FewnodeError, NotFittedError):  # type: ignore[misc]
    """`fit` comes first."""


class FewNodeClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A few-shot classifier of nodes for scikit-learn: grid searches, cross-validation and pipelines take it.

    `X` holds nodes of `graph`: row numbers or names, as a list or as one column. `y` holds their classes, and -1 (or
    None) for nodes whose class is not known. All nodes of the graph are read in any case. Labels that a `Dataset` has
    of its own are not looked at, or cross-validation would know its answers; with `base=True` the labels of its
    training and validation classes are. Without a `graph`, `X` holds rows of numbers: each is a node, joined to its
    `neighbours` nearest rows.

    `estimator` is the name of a method, an `Estimator`, or a fitted one in scikit-learn's `FrozenEstimator`.
    A grid search reaches its options as `estimator__NAME`. Every node is taken to be in one of the classes;
    `fewnode.recognise` knows "none of these".

    >>> from fewnode import Dataset
    >>> y = np.repeat(range(4), 20)
    >>> data = Dataset.from_scipy(y[:, None] == y, np.eye(4)[y], y)
    >>> model = FewNodeClassifier(data).fit([0, 1, 25, 26], ["mail", "mail", "vpn", "vpn"])
    >>> model.predict([3, 30]).tolist(), model.score([3, 30], ["mail", "vpn"])
    (['mail', 'vpn'], 1.0)
    """

    def __init__(
        self,
        graph: Network | None = None,
        estimator: str | Estimator = "gpn-plus",
        *,
        transductive: bool = False,
        base: bool = False,
        neighbours: int = 10,
    ) -> None:
        self.graph = graph
        self.estimator = estimator
        self.transductive = transductive
        self.base = base
        self.neighbours = neighbours

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803 - scikit-learn's name for it
        """Learn the classes of `y` from the nodes in `X`; those with -1 or None have no known class."""
        rows, labels, network = self._given(X, y)
        known = _labelled(labels)
        if not known.any():
            raise InvalidInput("no node has a known class: every y is -1 or None")
        labels = np.array(labels[known].tolist())
        check_classification_targets(labels)
        self.classes_ = np.unique(labels)
        if len(self.classes_) < 2:
            raise InvalidInput(
                f"there is only one class, {self.classes_.tolist()[0]!r}, and two are needed; for one class alone, "
                "fewnode.recognise ranks nodes by how like it they are"
            )
        support = rows[known]
        if self.base:
            _refuse_base(network, support)
        self.estimator_ = self._fitted(network)
        self.recogniser_: Recogniser = refusing(self.estimator_.recogniser, network, support, labels.tolist())
        if self.graph is None:
            self.fitted_: Array = self.recogniser_.predict_proba(np.arange(len(rows)), self.transductive)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """A probability for each node (row) and class (column); columns are in the order of `classes_`."""
        if not self.__sklearn_is_fitted__():
            raise NotFitted("this FewNodeClassifier is not fitted yet; call fit(X, y) first")
        if self.graph is None:
            with_numbers = refusing(validate_data, self, X, reset=False, dtype=np.float64)
            return self.rows_.carried(with_numbers, self.fitted_)
        rows = node_column(self.recogniser_.network, X)
        if rows.size == 0:
            raise InvalidInput("X has no nodes, expected at least one")
        return np.asarray(self.recogniser_.predict_proba(rows, self.transductive), np.float64)

    def predict(self, X: Any) -> Array:  # noqa: N803
        """The most likely class of each node."""
        probability = self.predict_proba(X)
        return np.asarray(self.classes_[probability.argmax(axis=1)])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:  # noqa: N803
        """The share of the nodes whose class is predicted right. Nodes of unknown class, -1 or None, do not count."""
        answers, labels = self.predict(X), np.asarray(y)
        if labels.shape != answers.shape:
            raise InvalidInput(f"{len(answers)} nodes in X and labels of shape {labels.shape}; expected one a node")
        known = _labelled(labels)
        weight = None if sample_weight is None else np.asarray(sample_weight)[known]
        return float(accuracy_score(np.array(labels[known].tolist()), answers[known], sample_weight=weight))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "recogniser_")

    def _given(self, X: Any, y: Any) -> tuple[Ints, Array, Dataset]:  # noqa: N803
        """Rows of nodes, their labels, and the network that they are in."""
        if self.graph is None:
            x, labels = refusing(validate_data, self, X, y, dtype=np.float64)
            self.rows_ = RowGraph.of(x, self.neighbours)
            return np.arange(len(x)), refusing(column_or_1d, labels, warn=True), self.rows_.data
        network = without_labels(as_dataset(self.graph)) if not self.base else as_dataset(self.graph)
        rows = node_column(network, X)
        if y is None:
            raise InvalidInput("FewNodeClassifier requires y to be passed, but the target y is None")
        labels = refusing(column_or_1d, refusing(check_array, y, ensure_2d=False, dtype=None), warn=True)
        if len(labels) != len(rows):
            raise InvalidInput(f"{len(rows)} nodes in X and {len(labels)} labels in y; expected one label a node")
        self.n_features_in_ = 1
        return rows, labels, network

    def _fitted(self, network: Dataset) -> Estimator:
        given = self.estimator
        if isinstance(given, FrozenEstimator):
            found: Estimator = given.estimator
            return found
        model = Estimator(given) if isinstance(given, str) else clone(given)
        if not self.base and getattr(model.method_, "needs_base", True):
            raise InvalidInput(
                f"{model.method} learns from base classes: give a Dataset that has them and base=True, or use gpn-plus"
            )
        return model.fit(network) if self.graph is None else fitted_once(model, network, self.base)


@dataclass(frozen=True, eq=False)
class RowGraph:
    """Rows of numbers as a graph, each joined to the rows nearest to it; and where another row would be in it."""

    data: Dataset
    search: NearestNeighbors
    mean: Rows
    scale: Rows

    @classmethod
    def of(cls, x: Rows, neighbours: int) -> RowGraph:
        """Columns count the same, whatever their unit; each row is joined to so many others at most."""
        mean, spread = x.mean(axis=0), x.std(axis=0)
        scale = np.where(spread > 0, spread, 1.0)
        rows = (x - mean) / scale
        count = min(neighbours, len(rows) - 1)
        search = NearestNeighbors(n_neighbors=max(1, count)).fit(rows)
        near = search.kneighbors(None, count, return_distance=False) if count else np.zeros((len(rows), 0), int)
        edges = np.stack([np.repeat(np.arange(len(rows)), near.shape[1]), near.ravel()])
        attributes = rows.astype(np.float32)
        block = (Block("vector", 0, x.shape[1], "rows"),)
        graph = Graph.from_edges(edges, len(rows), attributes, blocks=block)
        unknown = np.full(len(rows), UNKNOWN)
        return cls(Dataset(graph, unknown, ClassSplit((), (), ()), name="rows"), search, mean, scale)

    def carried(self, x: Rows, values: Rows) -> Rows:
        """`values` of the known rows at other rows: the mean over the nearest ones, the nearer the more.

        A row that is known has its own value. Each row is answered on its own.
        """
        distance, near = self.search.kneighbors((x - self.mean) / self.scale)
        same = distance <= 1e-12
        weight = np.where(same.any(axis=1, keepdims=True), same, 1 / np.maximum(distance, 1e-12))
        weight /= weight.sum(axis=1, keepdims=True)
        found: Any = np.einsum("ij,ijc->ic", weight, values[near])
        return np.asarray(found, np.float64)


_FITTED: WeakKeyDictionary[Graph, dict[str, Estimator]] = WeakKeyDictionary()
"""Models by the graph that they were fitted on: what they make of it is the same in every fold of a search."""


def fitted_once(model: Estimator, network: Dataset, base: bool) -> Estimator:
    """The model, fitted; or the same one that was fitted before, if nothing but plain values defines it."""
    settings = model.get_params()
    if not all(isinstance(value, str | int | float | tuple | None) for value in settings.values()):
        return model.fit(network)
    known = _FITTED.setdefault(network.graph, {})
    key = repr((sorted(settings.items()), network.sha256 if base else ""))
    if key not in known:
        known[key] = model.fit(network)
    return known[key]


def node_column(network: Graph | Dataset, X: Any) -> Ints:  # noqa: N803
    """The rows that are meant by a list or one column of row numbers or names."""
    column = np.asarray(X)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.dtype.kind == "f" and (column == np.round(column)).all():
        column = column.astype(np.int64)  # scalers and frames make floats of whole numbers
    return refusing(node_rows, network, column if column.dtype.kind in "iub" else column.tolist(), "X")


def without_labels(data: Dataset) -> Dataset:
    """The same network; nobody knows a class of it."""
    unknown = np.full(data.graph.n, UNKNOWN)
    return replace(data, y=unknown, labels=None, split=ClassSplit((), (), ()))


def _refuse_base(data: Dataset, support: Ints) -> None:
    """Refuse nodes of base classes: the model would have seen the labels of the nodes that it is asked about."""
    known = data.train_mask | data.valid_mask
    if known[support].any():
        node = data.node_name(int(support[known[support]][0]))
        raise InvalidInput(
            f"node {node!r} is of a class that the model learns from with base=True, so its own label would be known; "
            "give nodes of other classes, or leave base out"
        )


def _labelled(y: Array) -> NDArray[np.bool_]:
    """Where a class is given: neither -1 nor None."""
    if y.dtype == object:
        return np.array([label is not None and label != UNKNOWN for label in y], bool)
    return np.asarray(y != UNKNOWN) if y.dtype.kind in "iuf" else np.ones(len(y), bool)


def refusing(check: Callable[..., T], *given: Any, **how: Any) -> T:
    """What `check` makes of it; a refusal is an error of ours and of scikit-learn's kind."""
    try:
        return check(*given, **how)
    except InvalidInput:
        raise
    except (FewnodeError, ValueError) as error:
        raise InvalidInput(str(error)) from None
