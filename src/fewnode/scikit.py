"""scikit-learn's door: `fit(X, y)` on nodes, with the graph in the constructor."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from fewnode._system.kept import Kept
from fewnode.class_labels import UNKNOWN
from fewnode.dataset import ClassSplit, Dataset
from fewnode.errors import FewnodeError
from fewnode.graph import Graph, Ints
from fewnode.method import needs_base
from fewnode.model.estimator import Estimator
from fewnode.nodes import Network, as_dataset, node_rows
from fewnode.recognition.classes import Given

Model: TypeAlias = str | Estimator | FrozenEstimator
"""The name of a method, an estimator, or a fitted one."""
_FITTED = Kept(4)
"""Models by the network and the settings that they were fitted with: they are the same in every fold of a search."""


class FewNodeClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A few-shot classifier of nodes for scikit-learn: grid searches, cross-validation and pipelines take it.

    `X` holds nodes of `graph`: row numbers or names, as a list or as one column. `y` holds their classes, and -1 or
    None for nodes whose class is not known. All nodes of the graph are read in any case. Labels of a `Dataset` are not
    looked at, or cross-validation would know its answers; with `base=True` those of its base classes are.

    A grid search reaches the options of an `Estimator` as `estimator__NAME`. Every node is taken to be in one of the
    classes; `fewnode.recognise` knows "none of these".

    >>> y = np.repeat(range(4), 20)
    >>> data = Dataset.from_scipy(y[:, None] == y, np.eye(4)[y], y)
    >>> model = FewNodeClassifier(data).fit([0, 1, 25, 26], ["mail", "mail", "vpn", "vpn"])
    >>> model.predict([3, 30]).tolist(), model.score([3, 30], ["mail", "vpn"])
    (['mail', 'vpn'], 1.0)
    """

    def __init__(
        self, graph: Network, estimator: Model = "gpn-plus", *, transductive: bool = False, base: bool = False
    ) -> None:
        self.graph, self.estimator, self.transductive, self.base = graph, estimator, transductive, base

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803 - scikit-learn's name for it
        """Learn the classes of `y` from the nodes in `X`; those with -1 or None have no known class."""
        network = as_dataset(self.graph) if self.base else _without_labels(self.graph)
        rows = _node_column(network, X)
        labels, known = _labels(y, rows)
        support, classes = rows[known], np.unique(labels)
        if len(classes) < 2:
            only = f"there is only one class, {classes.tolist()[0]!r}" if known.any() else "no node has a known class"
            raise FewnodeError(f"{only}, and two classes are needed; fewnode.recognise takes one alone")
        seen = support[(network.train_mask | network.valid_mask)[support]]
        if self.base and seen.size:
            raise FewnodeError(
                f"node {network.node_name(int(seen[0]))!r} is of a class that the model learns from with base=True, "
                "so its own label would be known; give nodes of other classes, or leave base out"
            )
        model = _fitted(self.estimator, network, self.base)
        self.estimator_ = model
        self.question_ = model.question(network, Given.of_support(network, support, labels.tolist()))
        self.n_features_in_, self.classes_ = 1, classes
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """A probability for each node (row) and class (column); columns are in the order of `classes_`."""
        check_is_fitted(self)
        rows = _node_column(self.question_.data, X)
        if rows.size == 0:
            raise FewnodeError("X has no nodes, expected at least one")
        return np.asarray(self.question_.among(rows, self.transductive), np.float64)

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """The most likely class of each node."""
        probabilities = self.predict_proba(X)
        return np.asarray(self.classes_[probabilities.argmax(axis=1)])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:  # noqa: N803
        """The share of the nodes whose class is predicted right. Nodes of unknown class, -1 or None, do not count."""
        answers = self.predict(X)
        labels, known = _labels(y, answers)
        weight = None if sample_weight is None else np.asarray(sample_weight)[known]
        return float(accuracy_score(labels, answers[known], sample_weight=weight))


class NodeEmbedding(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Nodes of `graph` become their vectors z: row numbers or names in, a row of numbers each out.

    Labels are not looked at. `make_pipeline(NodeEmbedding(data), LogisticRegression())` is a classifier of nodes.

    >>> y = np.repeat(range(4), 20)
    >>> data = Dataset.from_scipy(y[:, None] == y, np.eye(4)[y], y)
    >>> len(NodeEmbedding(data).fit_transform([3, 30]))
    2
    """

    def __init__(self, graph: Network, estimator: Model = "gpn-plus") -> None:
        self.graph, self.estimator = graph, estimator

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803
        """Embed every node of the graph; which nodes are in `X` makes no difference."""
        self.network_ = _without_labels(self.graph)
        _node_column(self.network_, X)
        self.n_features_in_ = 1
        model = _fitted(self.estimator, self.network_, base=False)
        self.embedding_: NDArray[np.float32] = model.embedding(self.network_)
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:  # noqa: N803
        """z of each node, a row each."""
        check_is_fitted(self)
        return self.embedding_[_node_column(self.network_, X)]


def _fitted(given: Model, network: Dataset, base: bool) -> Estimator:
    """The model, fitted; or the same one that was fitted before, if nothing but plain values defines it."""
    if isinstance(given, FrozenEstimator):
        return given.estimator  # type: ignore[no-any-return]
    model: Estimator = Estimator(given) if isinstance(given, str) else clone(given)
    if not base and needs_base(model.method_):
        raise FewnodeError(
            f"{model.method} learns from base classes: give a Dataset that has them and base=True, or use gpn-plus"
        )
    settings = model.get_params()
    if not all(isinstance(value, str | int | float | tuple | None) for value in settings.values()):
        return model.fit(network)
    key = (network.graph.fingerprint, network.sha256 if base else "", repr(sorted(settings.items())))
    return _FITTED(key, lambda: model.fit(network))


def _node_column(network: Graph | Dataset, X: Any) -> Ints:  # noqa: N803
    """The rows that are meant by a list or one column of row numbers or names."""
    column = np.asarray(X)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.dtype.kind == "f" and (column == np.round(column)).all():
        column = column.astype(np.int64)  # scalers and frames make floats of whole numbers
    return node_rows(network, column if column.dtype.kind in "iub" else column.tolist(), "X")


def _without_labels(graph: Network) -> Dataset:
    """The network as if nobody knew a class of it."""
    data = as_dataset(graph)
    return replace(data, y=np.full(data.graph.n, UNKNOWN), labels=None, split=ClassSplit((), (), ()))


def _labels(y: Any, nodes: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The labels that are given, neither -1 nor None, and which of these nodes have one."""
    labels = np.ravel(y).tolist()
    if len(labels) != len(nodes):
        raise FewnodeError(f"{len(nodes)} nodes in X and {len(labels)} labels in y; expected one label a node")
    known = np.array([label is not None and label != UNKNOWN for label in labels], bool)
    return np.array([label for label, is_known in zip(labels, known, strict=True) if is_known]), known
