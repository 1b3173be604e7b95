"""What the methods of this folder share: scaled attributes, Â, and a linear head on rows of z."""

from __future__ import annotations

import warnings

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.utils.extmath import randomized_svd

import fewnode

warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")


def attributes(graph: fewnode.Graph, rarity: np.ndarray | None = None) -> sp.csr_array:
    """Rows of X at length 1; with `rarity`, each column is multiplied by it before."""
    if graph.n_features == 0:
        raise fewnode.FewnodeError("this network has no attributes; use --features degree, svd or walks")
    x = sp.csr_array(graph.x, dtype=np.float32)
    x = x if rarity is None else x @ sp.diags_array(rarity)
    length = np.sqrt(x.power(2).sum(axis=1))
    return sp.csr_array(sp.diags_array(1 / np.where(length > 0, length, 1)) @ x)


def idf(graph: fewnode.Graph) -> np.ndarray:
    """How rare each attribute is: log((1 + n) / (1 + nodes that have it)) + 1."""
    present = np.asarray((sp.csr_array(graph.x) != 0).sum(axis=0)).ravel()
    return (np.log((1 + graph.n) / (1 + present)) + 1).astype(np.float32)


def leading_directions(x: sp.csr_array, rank: int, seed: int) -> np.ndarray:
    """V: the leading right singular vectors of X, or all its columns if there are no more. An encoder reads X V."""
    if x.shape[1] <= rank:
        return np.eye(x.shape[1], dtype=np.float32)
    return randomized_svd(x, min(rank, x.shape[0]), n_iter=2, random_state=seed)[2].T.astype(np.float32)


def undirected(graph: fewnode.Graph) -> sp.csr_array:
    """A with every edge both ways."""
    return sp.csr_array(graph.adj.maximum(graph.adj.T))


def normalised(adj: sp.csr_array) -> sp.csr_array:
    """Â = D^-1/2 (A + I) D^-1/2."""
    closed = adj + sp.eye_array(adj.shape[0], dtype=np.float32)
    scale = sp.diags_array(closed.sum(axis=1) ** -0.5)
    return sp.csr_array(scale @ closed @ scale)


def neighbours(adj: sp.csr_array, nodes: np.ndarray) -> tuple[sp.csr_array, np.ndarray]:
    """The rows of some nodes, without empty columns; and which nodes the columns are."""
    rows = adj[nodes]
    around, column = np.unique(rows.indices, return_inverse=True)
    return sp.csr_array((rows.data, column, rows.indptr), shape=(nodes.size, around.size)), around


def as_tensor(matrix: sp.csr_array) -> torch.Tensor:
    parts = (torch.from_numpy(part) for part in (matrix.indptr, matrix.indices, matrix.data))
    return torch.sparse_csr_tensor(*parts, size=matrix.shape, check_invariants=False)


def centred(z: np.ndarray) -> np.ndarray:
    """Unit rows less their mean, at length 1 again. A row of zeros stays one."""
    known = z.any(axis=1, keepdims=True)
    z = unit(z)
    return unit(z - z.sum(axis=0) / max(1, known.sum())) * known


def unit(z: np.ndarray) -> np.ndarray:
    return z / np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-30)


def linear_head(z: np.ndarray, task: fewnode.Task, c: float) -> np.ndarray:
    """Logistic regression on the support's rows of z. Its weights lie in their span. Classes count alike."""
    if task.n_way == 1 or task.query.size == 0:
        return np.ones((task.query.size, task.n_way), np.float32)
    span = np.linalg.qr(z[task.support].T.astype(np.float64))[0]
    # newton-cg, for lbfgs stops three digits short of the optimum
    model = LogisticRegression(C=c, class_weight="balanced", solver="newton-cg", tol=1e-6, max_iter=1000)
    model.fit(z[task.support] @ span, task.support_y)
    return model.predict_proba(z[task.query] @ span).astype(np.float32)


class LinearProbe:
    """An encoder that is learned once, and a linear head for each task (TLP; Tan et al., LoG 2022).

    Whoever inherits has `encoded(graph)`, z of every node by `module_`, and the strength `c` of the head.
    """

    def train(self, graph, valid, loss_of, steps, rates, every, patience):
        """Adam on `loss_of(step)`. The weights that are best on tasks of validation classes are kept, else the last."""
        adam = torch.optim.Adam(self.module_.parameters(), lr=rates[0], weight_decay=rates[1])
        pool, best, kept, since = valid.take(50) if valid.members else [], -1.0, None, 0
        for step in range(1, steps + 1):
            self.module_.train()
            adam.zero_grad()
            loss_of(step).backward()
            adam.step()
            if pool and (step % every == 0 or step == steps):
                answers = self.predict_tasks(graph, [episode.task for episode in pool])
                right = [(p.argmax(axis=1) == e.query_y).mean() for p, e in zip(answers, pool, strict=True)]
                since += 1
                if np.mean(right) > best:
                    best, since = np.mean(right), 0
                    kept = {name: tensor.clone() for name, tensor in self.module_.state_dict().items()}
                if since == patience:
                    break
        self.module_.load_state_dict(kept or self.module_.state_dict())

    def predict_tasks(self, graph: fewnode.Graph, tasks: list[fewnode.Task]) -> list[np.ndarray]:
        self.module_.eval()
        with torch.no_grad():
            z = centred(self.encoded(graph).numpy())
        return [linear_head(z, task, self.c) for task in tasks]

    def predict_proba(self, graph: fewnode.Graph, task: fewnode.Task) -> np.ndarray:
        return self.predict_tasks(graph, [task])[0]
