"""A PyG `Data` where a network is asked for, and its masks where nodes are."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import fewnode
from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError

pytest.importorskip("torch_geometric")


@pytest.fixture(name="pyg")
def _pyg(worded: Dataset) -> object:
    """As PyG's datasets are: masks beside the graph, three nodes a class to train on."""
    data = worded.to_pyg()
    place = np.concatenate([np.arange(25)] * 4)
    data.train_mask = torch.from_numpy(place < 3)
    data.val_mask = torch.from_numpy((place >= 3) & (place < 8))
    data.test_mask = torch.from_numpy(place >= 8)
    return data


def test_masks_choose_support_and_query(pyg: object) -> None:
    model = fewnode.Estimator("gpn-plus").fit(pyg)
    train, test = pyg.train_mask, pyg.test_mask
    labels = model.predict(pyg, train, pyg.y[train], test)
    assert np.mean(np.array(labels) == pyg.y[test].numpy()) > 0.8
    assert model.score(pyg, train, pyg.y[train], test, pyg.y[test]) > 0.8
    probability = model.predict_proba(pyg, train, pyg.y[train], test)
    assert probability.shape == (int(test.sum()), 4)
    with pytest.raises(FewnodeError, match="with a mask, give the labels of the marked nodes alone"):
        model.predict(pyg, train, pyg.y, test)


def test_the_same_through_scikit_learn_and_recognise(pyg: object) -> None:
    train, test = pyg.train_mask, pyg.test_mask
    model = fewnode.FewNodeClassifier(pyg).fit(train, pyg.y[train])
    assert model.score(test, pyg.y[test]) > 0.8
    found = fewnode.recognise(pyg, {"mail": train & (pyg.y == 0), "vpn": train & (pyg.y == 1)}, query=test)
    assert len(found.labels) == int(test.sum())
