"""Class splits by share, by count and by list."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fewnode.dataset import ClassSplit
from fewnode.errors import FewnodeError
from fewnode.tables.splits import choose_split

Y = np.repeat(np.arange(12), np.arange(5, 17))
NAMES = tuple("abcdefghijkl")


def test_counts_deal_as_shares_do_and_leave_the_rest_out() -> None:
    assert choose_split(Y, NAMES, "3,2,2", seed=4) == ClassSplit.random(Y, (3, 2, 2), seed=4)
    few = choose_split(Y, NAMES, "2,1,1", seed=4)
    assert list(map(len, (few.train, few.valid, few.test))) == [2, 1, 1]
    assert min(few.train + few.valid + few.test) >= 5  # classes 0 to 4 have under ten nodes
    assert choose_split(Y, NAMES, "2,1,1", seed=4) == few != choose_split(Y, NAMES, "2,1,1", seed=5)
    assert len(choose_split(Y, NAMES, "12,0,0", min_nodes=1).train) == 12
    with pytest.raises(FewnodeError, match=r"split 4,2,2: only 7 classes have 10 nodes or more"):
        choose_split(Y, NAMES, "4,2,2")


@pytest.mark.parametrize(
    "split", ["", "a/b/c", "50/50", "1,2", "1,2,3,4", "-1,2,3", "1.5,2,3", "0/0/0", "nan/1/1", "inf/1/1"]
)
def test_a_split_that_is_none_is_refused(split: str) -> None:
    with pytest.raises(
        FewnodeError, match="expected three shares such as 50/20/30 or three class counts such as 40,17,20"
    ):
        choose_split(Y, NAMES, split)


def test_three_lists_may_hold_small_classes(tmp_path: Path) -> None:
    (tmp_path / "test").write_text("l\n\n a \n")
    lists = {"train": ["c", "b"], "valid": ("d",), "test": tmp_path / "test"}
    assert choose_split(Y, NAMES, lists) == ClassSplit((1, 2), (3,), (0, 11))


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


def test_a_wrong_name_in_a_list_file_is_found(tmp_path: Path) -> None:
    (tmp_path / "test.txt").write_text("games\n\nnett\n")
    lists = {"train": ["net"], "valid": ["web"], "test": tmp_path / "test.txt"}
    with pytest.raises(FewnodeError, match=r"test\.txt: line 3: no node is of class 'nett' \(did you mean 'net'\?\)"):
        choose_split(Y, ("games", "net", "web"), lists)
