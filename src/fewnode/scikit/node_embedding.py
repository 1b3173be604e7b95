"""z of nodes as a step of a scikit-learn pipeline, before any other classifier."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.frozen import FrozenEstimator

from fewnode.dataset import Dataset
from fewnode.estimator import Estimator
from fewnode.nodes import Network, as_dataset
from fewnode.scikit.classifier import InvalidInput, NotFitted, fitted_once, node_column, without_labels


class NodeEmbedding(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Nodes of `graph` become their vectors z: row numbers or names in, a row of numbers each out.

    Labels are not looked at. `estimator` is the name of a method, an `Estimator`, or a fitted one in scikit-learn's
    `FrozenEstimator`.

    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> y = np.repeat(range(4), 20)
    >>> data = Dataset.from_scipy(y[:, None] == y, np.eye(4)[y], y)
    >>> model = make_pipeline(NodeEmbedding(data), LogisticRegression()).fit([0, 1, 25, 26], [0, 0, 1, 1])
    >>> model.predict([3, 30]).tolist()
    [0, 1]
    """

    def __init__(self, graph: Network | None = None, estimator: str | Estimator = "gpn-plus") -> None:
        self.graph = graph
        self.estimator = estimator

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803 - scikit-learn's name for it
        """Embed every node of the graph; which nodes are in `X` makes no difference."""
        if self.graph is None:
            raise InvalidInput("NodeEmbedding has no graph; give one to its constructor")
        self.network_: Dataset = without_labels(as_dataset(self.graph))
        node_column(self.network_, X)
        self.n_features_in_ = 1
        if isinstance(self.estimator, FrozenEstimator):
            model = self.estimator.estimator
        else:
            model = Estimator(self.estimator) if isinstance(self.estimator, str) else clone(self.estimator)
            model = fitted_once(model, self.network_, base=False)
        self.embedding_: NDArray[np.float32] = model.embedding(self.network_).cpu().numpy()
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:  # noqa: N803
        """z of each node, a row each."""
        if not hasattr(self, "embedding_"):
            raise NotFitted("this NodeEmbedding is not fitted yet; call fit(X) first")
        return self.embedding_[node_column(self.network_, X)]
