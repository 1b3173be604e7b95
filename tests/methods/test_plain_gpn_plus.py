"""GPN+ gives the numbers that the same method gives when it is written plainly."""

import numpy as np
import pytest

from fewnode.episodes import EpisodeSampler
from fewnode.model.estimator import Estimator
from networks import planted
from plain_gpn_plus import PlainGPNPlus


@pytest.mark.parametrize(
    ("nodes", "attributes", "words"),
    [
        (400, 24, 0),
        (400, 1_000, 32),
        *(pytest.param(1_500, d, words, marks=pytest.mark.check) for d, words in ((24, 0), (1_000, 32))),
    ],
)
def test_gpn_plus_written_plainly_gives_the_same_numbers(nodes: int, attributes: int, words: int) -> None:
    data = planted(nodes, 5 * nodes, attributes, words)
    tasks = [episode.task for episode in EpisodeSampler(data, "test", 5, 5).take(20)]
    ours, plain = Estimator("gpn-plus"), Estimator("gpn-plus")
    plain.method_ = PlainGPNPlus()
    answers = [model.fit(data).predict_tasks(data.graph, tasks) for model in (ours, plain)]
    for one, other in zip(*answers, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-4)
