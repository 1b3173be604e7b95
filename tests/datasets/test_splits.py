"""Class splits by share, by count and by list."""

from __future__ import annotations

import numpy as np
import pytest

from fewnode.errors import FewnodeError
from fewnode.tables.splits import choose_split

Y = np.repeat(np.arange(12), np.arange(5, 17))
NAMES = tuple("abcdefghijkl")


@pytest.mark.parametrize(
    "split", ["", "a/b/c", "50/50", "1,2", "1,2,3,4", "-1,2,3", "1.5,2,3", "0/0/0", "nan/1/1", "inf/1/1"]
)
def test_a_split_that_is_none_is_refused(split: str) -> None:
    with pytest.raises(
        FewnodeError, match="expected three shares such as 50/20/30 or three class counts such as 40,17,20"
    ):
        choose_split(Y, NAMES, split)


def test_one_list_is_enough_and_the_rest_is_dealt_by_shares() -> None:
    split = choose_split(Y, NAMES, {"test": ["a", "l"]}, seed=4)  # a is too small to be dealt, but may be listed
    assert split.test == (0, 11)
    assert list(map(len, (split.train, split.valid))) == [4, 2]  # of 6 others with ten nodes, 50 to 20
    assert min(split.train + split.valid) >= 5
    assert split == choose_split(Y, NAMES, {"test": ["a", "l"]}, seed=4)
    both = choose_split(Y, NAMES, {"train": ["a"], "test": ["l"]})
    assert (both.train, both.valid, both.test) == ((0,), tuple(range(5, 11)), (11,))


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        ({}, "class lists for no part: expected train, valid or test"),
        ({"train": ["a"], "tests": ["b"]}, "class lists for train, tests: expected train, valid or test"),
        ({"train": ["a"], "valid": ["b"], "test": ["bird"]}, "test class 1: no node is of class 'bird'"),
        ({"train": ["a", "b"], "valid": ["b"], "test": ["c"]}, "valid class 1: class 'b' is at train class 2 already"),
        ({"train": [], "valid": ["b"], "test": ["c"]}, "train classes: no class in it"),
    ],
)
def test_lists_that_do_not_fit_are_refused(lists: dict[str, list[str]], message: str) -> None:
    with pytest.raises(FewnodeError, match=message):
        choose_split(Y, NAMES, lists)
