"""Tasks of new and base classes together."""

from __future__ import annotations

import numpy as np

from fewnode.episodes import EpisodeSampler
from fewnode.recognition.base_tasks import MOST, BaseTasks, drawn_support

NEW = [np.arange(100 * c, 100 * c + 100) for c in range(4)]
BASE = [np.arange(1000, 1200), np.arange(2000, 2030), np.arange(3000, 3003), np.array([4000])]


def tasks(seed: int = 0) -> BaseTasks:
    return BaseTasks(EpisodeSampler.among(NEW, 3, 2, 10, seed), BASE)


def test_a_task_has_every_base_class_beside_its_new_ones() -> None:
    episode = tasks()[5]
    assert np.bincount(episode.support_y).tolist() == [2, 2, 2, MOST, 20, 2, 1]
    assert np.bincount(episode.query_y, minlength=7).tolist() == [10, 10, 10, 10, 10, 1, 0]
    everyone = np.concatenate([episode.support, episode.query])
    assert np.unique(everyone).size == everyone.size, "no query is a support node"
    for nodes, y in ((episode.support, episode.support_y), (episode.query, episode.query_y)):
        for place, members in enumerate(BASE):
            assert np.isin(nodes[y == 3 + place], members).all()


def test_a_task_is_a_function_of_seed_and_t() -> None:
    def shape(seed: int, t: int) -> list[int]:
        episode = tasks(seed)[t]
        return [*episode.support.tolist(), *episode.query.tolist()]

    assert shape(0, 3) == shape(0, 3)
    assert len({tuple(shape(seed, t)) for seed in (0, 1) for t in (0, 1)}) == 4
    assert tasks().take(3)[2].query.tolist() == tasks()[2].query.tolist()


def test_the_new_classes_are_those_of_ordinary_tasks() -> None:
    plain, joined = EpisodeSampler.among(NEW, 3, 2, 10)[1], tasks()[1]
    assert joined.support[:6].tolist() == plain.support.tolist()
    assert joined.query[:30].tolist() == plain.query.tolist()


def test_what_stands_for_a_base_class_depends_on_the_seed_alone() -> None:
    drawn = drawn_support(BASE[0], 7, 0)
    assert drawn.size == MOST
    assert np.isin(drawn, BASE[0]).all()
    assert (drawn == drawn_support(BASE[0], 7, 0)).all()
    assert (drawn != drawn_support(BASE[0], 8, 0)).any()
    assert drawn_support(BASE[2], 7, 0).tolist() == BASE[2].tolist()
