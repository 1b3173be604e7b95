"""A folder for grids: a small network, and methods that are quick, slow or broken."""

from __future__ import annotations

from pathlib import Path

from fewnode.dataset import Dataset
from fewnode.formats.directory import save_dataset

METHODS = '''
import os
import signal
import time
import numpy as np


class Nearest:
    """Cosine to the class mean, after a while."""

    def __init__(self, wait=0.0, seed=0):
        self.wait, self.seed = wait, seed

    def fit(self, graph, train, valid):
        time.sleep(self.wait)
        return self

    def predict_proba(self, graph, task):
        x = graph.x.toarray()
        noise = np.random.default_rng(self.seed).random(x.shape[1])
        members = [task.support[task.support_y == c] for c in range(task.n_way)]
        centres = np.stack([x[nodes].mean(axis=0) * noise for nodes in members])
        score = np.exp(x[task.query] @ centres.T)
        return (score / score.sum(axis=1, keepdims=True)).astype(np.float32)


class Other(Nearest):
    pass


class Third(Nearest):
    pass


class Broken(Nearest):
    def fit(self, graph, train, valid):
        raise RuntimeError("no luck")


class Dies(Nearest):
    def fit(self, graph, train, valid):
        os.kill(os.getpid(), signal.SIGKILL)
'''


def fill(folder: Path, data: Dataset) -> None:
    """Put a dataset directory `planted` and `methods.py` there."""
    save_dataset(data, folder / "planted")
    (folder / "methods.py").write_text(METHODS)
