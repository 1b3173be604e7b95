"""Tasks whose classes are described: with labels, without any, and by an estimator on the command line's way."""

from __future__ import annotations

from dataclasses import replace

import pytest

import fewnode
from fewnode import FewnodeError
from fewnode.dataset import ClassSplit, Dataset
from fewnode.evaluation import evaluate
from fewnode.tasks import described_tasks


def test_classes_are_recognised_by_their_names_alone(worded: Dataset) -> None:
    pool = described_tasks(worded, range(4), {}, (3, 0, 5), 20, 0)
    assert all(task.support.size == 0 and task.n_way == 3 for task in pool)
    model = fewnode.Estimator("gpn-plus").fit(worded)
    result = evaluate(model, replace(worded, split=ClassSplit((), (), (0, 1, 2, 3))), pool=pool, open_set=True)
    assert result.accuracy.mean > 0.8  # chance is a third
    assert result["auroc"].mean > 0.8  # chance is a half


def test_labels_and_descriptions_together_are_better_than_labels(worded: Dataset) -> None:
    model = fewnode.Estimator("gpn-plus").fit(worded)
    both = described_tasks(worded, range(4), {}, (4, 1, 10), 20, 0)
    alone = [replace(task, task=replace(task.task, described=None)) for task in both]
    assert evaluate(model, worded, pool=both).accuracy.mean > evaluate(model, worded, pool=alone).accuracy.mean


def test_a_method_that_cannot_read_descriptions_says_so(worded: Dataset) -> None:
    data = replace(worded, split=ClassSplit((0, 1), (2, 3), ()))
    model = fewnode.Estimator("propagation", way=2, shot=1, steps=1).fit(data)
    with pytest.raises(FewnodeError, match="cannot read descriptions"):
        evaluate(model, data, pool=described_tasks(data, range(4), {}, (2, 0, 5), 2, 0))
