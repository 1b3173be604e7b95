"""Whether a node may be in none of the classes, or must be in one: what cannot be told, and what was asked for."""

from __future__ import annotations

from collections.abc import Sequence

from fewnode.errors import FewnodeError
from fewnode.recognition.answers import NONE
from fewnode.recognition.space import Head


def cannot_tell(model: str, ways: int, head: Head | None) -> str:
    """Why a model cannot tell whether a node is in any of so many classes, and what would help; nothing if it can."""
    better = "" if model == "gpn-plus" else "use gpn-plus, or "
    remedy = better + ("give a second class" if ways == 1 else "label more classes")
    if head is None:
        return f"{model.rsplit('/', 1)[-1]} cannot tell whether a node is in none of the classes; {remedy}"
    few = "there were too few known classes to learn from what is in none, three are needed"
    return f"{few}; {remedy}" if head.membership is None else ""


def closed_because(
    classes: Sequence[str], several: bool, cannot: str, closed_set: bool, threshold: float | None, ordinary: str = ""
) -> str:
    """Why every node is taken to be in one of the classes, or nothing; what makes no sense is refused.

    `cannot`: why it cannot be told whether a node is in any of them, if that is so. `ordinary`: a class whose examples
    are like any nodes.
    """
    if threshold is not None and not 0 <= threshold <= 1:
        raise FewnodeError(f"the threshold is {threshold}; a probability from 0 to 1 is expected")
    if threshold is not None and closed_set:
        raise FewnodeError("a closed set has no threshold: leave one of them out")
    if several:
        if closed_set:
            raise FewnodeError("a closed set means one class a node: leave it out, or several classes a node")
        return ""
    if threshold is not None and cannot:
        raise FewnodeError(f"the threshold is of no use: {cannot}")
    if len(classes) == 1 and (closed_set or cannot):
        cause = cannot or "in a closed set that is every node; leave that out"
        raise FewnodeError(f"one class alone asks which nodes are like {classes[0]!r}: {cause}")
    if closed_set or cannot:
        return cannot or "asked for"
    if ordinary:
        return f"examples of class {ordinary!r} are like any nodes: it has all that is in no other class"
    if NONE in classes:
        raise FewnodeError(f"a class is called {NONE!r}, as is what is in no class: rename it, or close the set")
    return ""
