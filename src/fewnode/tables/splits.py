"""Which classes are for training, validation and test: dealt by share or by count, or listed by the user."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from fewnode._system.files import read_lines
from fewnode.class_labels import UNKNOWN
from fewnode.dataset import ClassSplit
from fewnode.errors import FewnodeError, closest
from fewnode.graph import Ints
from fewnode.tables.spec import SHARES, Split

PARTS = ("train", "valid", "test")


def choose_split(
    y: Ints, class_names: Sequence[str], split: Split = SHARES, seed: int = 0, min_nodes: int = 10
) -> ClassSplit:
    """A class split. Classes under `min_nodes` nodes are never dealt; a user's lists may hold them.

    Where only some parts are listed, the other classes are dealt among the other parts by the usual shares.
    """
    if not isinstance(split, str):
        listed = _listed(class_names, split)
        taken = [c for classes in listed.values() for c in classes]
        shares = [0.0 if part in listed else share for part, share in zip(PARTS, _numbers(SHARES, "/"), strict=True)]
        if any(shares):
            dealt = ClassSplit.random(np.where(np.isin(y, taken), UNKNOWN, y), shares, seed, min_nodes)
            listed = {part: dealt.part(part) for part in PARTS} | listed
        return ClassSplit(**listed)
    if "," not in split:
        return ClassSplit.random(y, _numbers(split, "/"), seed, min_nodes)
    counts = _numbers(split, ",")
    sizes = np.bincount(y[y >= 0], minlength=1)
    spare = int((sizes >= min_nodes).sum()) - sum(counts)
    if spare < 0:
        raise FewnodeError(f"split {split}: only {sum(counts) + spare:g} classes have {min_nodes} nodes or more")
    chosen = ClassSplit.random(y, (sum(counts), spare, 0), seed, min_nodes).train
    return ClassSplit.random(np.where(np.isin(y, chosen), y, UNKNOWN), counts, seed, min_nodes)


def _numbers(split: str, separator: str) -> list[float]:
    try:
        numbers = [float(number) for number in split.split(separator)]
        fit = len(numbers) == 3 and min(numbers) >= 0 and 0 < sum(numbers) < 1e9
        if fit and (separator == "/" or all(number.is_integer() for number in numbers)):
            return numbers
    except ValueError:
        pass
    raise FewnodeError(
        f"split {split!r}: expected three shares such as 50/20/30 or three class counts such as 40,17,20"
    )


def _listed(class_names: Sequence[str], lists: Mapping[str, Sequence[str] | Path]) -> dict[str, tuple[int, ...]]:
    if not lists or not set(lists) <= set(PARTS):
        raise FewnodeError(f"class lists for {', '.join(lists) or 'no part'}: expected train, valid or test")
    index = {name: i for i, name in enumerate(class_names)}
    taken: dict[str, str] = {}
    parts: dict[str, tuple[int, ...]] = {}
    for part in filter(lists.__contains__, PARTS):
        found = []
        for place, name in _names(part, lists[part]):
            if name not in index:
                raise FewnodeError(f"{place}: no node is of class {name!r}{closest(name, class_names)}")
            if name in taken:
                raise FewnodeError(f"{place}: class {name!r} is at {taken[name]} already")
            taken[name] = place
            found.append(index[name])
        if not found:
            raise FewnodeError(f"{lists[part] if isinstance(lists[part], Path) else part + ' classes'}: no class in it")
        parts[part] = tuple(sorted(found))
    return parts


def _names(part: str, names: Sequence[str] | Path) -> Iterator[tuple[str, str]]:
    """The class names of a part, each with its place for messages."""
    if isinstance(names, Path):
        yield from ((f"{names}: line {number}", line.strip()) for number, line in read_lines(names))
    else:
        yield from ((f"{part} class {number}", str(name)) for number, name in enumerate(names, 1))
