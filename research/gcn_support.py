"""A GCN that is trained on the support set alone, anew for each task (Kipf & Welling, ICLR 2017)."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional as F

import fewnode
from probe import as_tensor, attributes, neighbours, normalised


class GCNOnSupport:
    """softmax(Â ReLU(Â X W0) W1) with the training of section 5.2.

    Adam, dropout on the input of both layers, weight decay on W0, and a fixed number of epochs: with a few labels there
    is none to stop by. While training, only the nodes that the support can see are computed. Nodes and classes are in
    the order of node numbers, so that neither the order of the support nor the names of classes matter.
    """

    needs_base = False

    def __init__(
        self,
        hidden: int = 16,
        dropout: float = 0.5,
        epochs: int = 200,
        lr: float = 0.01,
        weight_decay: float = 5e-4,
        seed: int = 0,
    ) -> None:
        self.hidden, self.dropout, self.epochs = hidden, dropout, epochs
        self.lr, self.weight_decay, self.seed = lr, weight_decay, seed

    def fit(self, graph, train, valid):
        """There is nothing to learn before a task is there."""
        return self

    def predict_proba(self, graph: fewnode.Graph, task: fewnode.Task) -> np.ndarray:
        x, adj = attributes(graph), normalised(graph.adj)
        order = np.argsort(task.support)
        classes = task.support_y[order][np.sort(np.unique(task.support_y[order], return_index=True)[1])]
        y = torch.from_numpy(np.argsort(classes)[task.support_y[order]])
        outer, hidden_nodes = neighbours(adj, task.support[order])
        inner, seen = neighbours(adj, hidden_nodes)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            w0, w1 = self._trained(x[seen], as_tensor(inner), as_tensor(outer), y, task.n_way)
        h = np.maximum(adj @ (x @ w0), 0)
        logits = (adj[task.query] @ (h @ w1)).astype(np.float32)
        answers = np.empty((task.query.size, task.n_way), np.float32)
        answers[:, classes] = torch.from_numpy(logits).softmax(dim=1).numpy()
        return answers

    def _trained(self, x, inner, outer, y, n_way):
        """W0 and W1 after all epochs."""
        left = x.copy()
        w0, w1 = torch.empty(x.shape[1], self.hidden), torch.empty(self.hidden, n_way)
        for weight in (w0, w1):
            torch.nn.init.xavier_uniform_(weight).requires_grad_()
        decayed = {"params": [w0], "weight_decay": self.weight_decay}
        adam = torch.optim.Adam([decayed, {"params": [w1]}], lr=self.lr)
        for _ in range(self.epochs):
            left.data = F.dropout(torch.from_numpy(x.data), self.dropout).numpy()
            h = F.relu(inner @ (as_tensor(left) @ w0))
            loss = F.cross_entropy(outer @ (F.dropout(h, self.dropout) @ w1), y)
            adam.zero_grad()
            loss.backward()
            adam.step()
        return w0.detach().numpy(), w1.detach().numpy()
