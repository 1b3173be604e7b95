"""What to ask next so that somebody finds all members of a class, and whether it is worth going on.

Three of four questions are asked to find. The list of highest probability asks what is known already; a node at the
threshold decides whether all that is like it is claimed. Of such nodes those are asked about that are least like what
was answered before. Every fourth question is a check: drawn at random from the band of probabilities whose answer
narrows the share found most.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fewnode.errors import FewnodeError, closest
from fewnode.graph import Ints
from fewnode.recognition.classes import Asked
from fewnode.recognition.population import may_have_class
from fewnode.recognition.question import Question
from fewnode.review.labelling import Suggestion
from fewnode.review.trust import BANDS, Estimate, Evidence, bands, evidence
from fewnode.vectors import Floats, unit_rows

DOUBTED = 60
"""Nodes nearest to the threshold, of which some are asked about."""
LEAST = 1e-6
CHECK = 4
"""Every so many questions is a check."""
AHEAD = 50
"""An answer counts for the estimates if its node was among so many that `next` would name."""
FEWER = 500
"""Draws that are enough to choose checks by."""


class Stop(NamedTuple):
    """Whether enough members are found, a sentence that says why, and about how many answers it takes until then."""

    now: bool
    reason: str
    answers_left: int | None


def in_doubt(
    probability: NDArray[np.float64],
    z: Callable[[Ints], Floats],
    answered: Floats,
    count: int,
    threshold: float = 0.5,
    doubted: int = DOUBTED,
) -> list[int]:
    """The places of so many nodes to ask about: near the threshold, and unlike each other and all that was answered.

    >>> z = np.array([[1, 0], [1, 0.1], [0, 1]], np.float32)
    >>> in_doubt(np.array([0.5, 0.5, 0.45]), z.__getitem__, z[:1], 2)
    [2, 1]
    """
    p, middle = probability.clip(LEAST, 1 - LEAST), min(max(threshold, LEAST), 1 - LEAST)
    away = np.abs(np.log(p / (1 - p)) - np.log(middle / (1 - middle)))
    some = np.argsort(away, kind="stable")[: max(doubted, count)]
    rows = unit_rows(z(some))
    like, picked = (rows @ unit_rows(answered).T).max(axis=1, initial=-1.0), list[int]()
    for _ in range(min(count, some.size)):
        best = int(like.argmin())
        picked.append(best)
        like = np.maximum(like, rows @ rows[best])
        like[picked] = np.inf
    found: list[int] = some[picked].tolist()
    return found


def ask_next(
    question: Question, label: str, pool: Ints, count: int = 1, threshold: float = 0.5
) -> list[tuple[int, float, str]]:
    """Of the nodes of the pool those to ask about whether they are in that class: P(it is in it), and for what purpose.

    What was answered about, with yes or with no, is left out. More questions begin with those of fewer.
    """
    space, place, given = question.embedded, question.classes.index(label), question.given
    no = given.no.get(place, given.support[:0])
    answered = space.look(np.concatenate([given.support[given.y == place], no])).z
    pool = pool[~np.isin(pool, np.concatenate([given.support, no]))]
    probability = question.everyone[0][pool, place]
    checks = _checks(evidence(question, label), pool, probability, count // CHECK) if count >= CHECK else []
    finds = in_doubt(probability, lambda some: space.look(pool[some]).z, answered, count, threshold)
    found: dict[int, str] = {}
    while len(found) < count and (finds or checks):
        check = bool(checks) and (len(found) % CHECK == CHECK - 1 or not finds)
        found.setdefault((checks if check else finds).pop(0), "check" if check else "find")
    return [(int(pool[i]), float(probability[i]), purpose) for i, purpose in found.items()]


def _checks(known: Evidence, pool: Ints, probability: NDArray[np.float64], count: int) -> list[int]:
    """Places in the pool, each a random node of the band whose answer narrows the share found most.

    By a linear approximation: the variance falls by cov(share, rate)² / variance of an answer. Draws are then moved as
    an answer would move them (a square-root Kalman filter), and the next band is chosen.
    """
    rates, band, bound = known.rates(FEWER), bands(known.probability), bands(probability)
    inside, outside = (np.bincount(band[part], minlength=BANDS) for part in (known.claimed, ~known.claimed))
    right = known.found + rates @ inside
    share = right / np.maximum(1e-9, right + rates @ outside)
    share, mean, rates = share - share.mean(), rates.mean(axis=0), rates - rates.mean(axis=0)
    free = {k: np.flatnonzero(bound == k) for k in np.unique(bound).tolist()}
    waiting = {k: own[np.argsort(_scrambled(pool[own]), kind="stable")].tolist() for k, own in free.items()}
    noise, chosen = mean * (1 - mean) + 1e-9, list[int]()
    while len(chosen) < count and any(waiting.values()):
        worth = (share @ rates / len(share)) ** 2 / noise
        k = max((k for k, nodes in waiting.items() if nodes), key=lambda k: float(worth[k]))
        chosen.append(waiting[k].pop(0))
        own = rates[:, k].copy()
        spread = float(own @ own / len(own)) + 1e-12
        less = (1 - np.sqrt(max(0.0, 1 - spread / max(noise[k], spread)))) / spread / len(own)
        share, rates = share - less * (share @ own) * own, rates - less * np.outer(own, own @ rates)
    return chosen


def _scrambled(nodes: Ints) -> NDArray[np.uint64]:
    """A number for each node that looks random and depends on it alone (splitmix64): so an order for everybody."""
    x = (nodes.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return x ^ (x >> np.uint64(31))


def find(question: Question, count: int = 10, among: Ints | None = None) -> list[Suggestion]:
    """Nodes to ask about so that all members of the classes are found, a class after the other in turn."""
    if question.cannot_tell:
        raise FewnodeError(f"what is in none of the classes cannot be told: {question.cannot_tell}")
    pool = np.flatnonzero(may_have_class(question.data, question.given.support)) if among is None else np.unique(among)
    found: list[Suggestion] = []
    taken: set[int] = set()
    for turn, label in enumerate(question.classes):
        share = len(range(turn, count, len(question.classes)))
        own = [each for each in ask_next(question, label, pool, share + len(taken)) if each[0] not in taken][:share]
        taken |= {row for row, _, _ in own}
        found += [Suggestion(question.data.node_name(row), label, p, None, 0.0, why) for row, p, why in own]
    if not found:
        raise FewnodeError("there is no node left to suggest; name those to choose among")
    return found


def asked_among(question: Question, answers: dict[tuple[str, int], bool]) -> tuple[Asked, ...]:
    """Answers, by class and row, that were asked for: others say nothing of nodes that nobody chose."""
    found: list[Asked] = []
    if question.cannot_tell or question.space is None:
        return ()
    pool = np.flatnonzero(may_have_class(question.data, question.given.support))
    for label in dict.fromkeys(label for label, _ in answers):
        own = {row: yes for (name, row), yes in answers.items() if name == label}
        at = sum(each.label == label for each in question.asked)
        for row, p, purpose in ask_next(question, label, pool, max(AHEAD, 2 * len(answers))):
            if row in own:
                found.append(Asked(label, row, p, own[row], purpose, at + len(own) - 1))
    return tuple(found)


def replayed(question: Question, answers: Sequence[tuple[str, int, bool]], batch: int = 10) -> Question:
    """The question as if those of its answers had been given one batch after the other: class, row and yes or no.

    So it is known what was said of each node before. A class that nothing else stands for keeps its first yes.
    """
    given, said = question.given, {(label, row): yes for label, row, yes in answers}
    place = {label: c for c, label in enumerate(question.classes)}
    described = [] if given.described is None else given.described.y.tolist()
    stays = np.array([(question.classes[c], row) not in said for c, row in zip(given.y, given.support, strict=True)])
    for c in set(given.y.tolist()) - set(given.y[stays].tolist()) - {*described}:
        first = next(row for label, row, yes in answers if yes and place[label] == c)
        stays |= (given.y == c) & (given.support == first)
        del said[question.classes[c], first]
    no = {c: rows[[(question.classes[c], row) not in said for row in rows.tolist()]] for c, rows in given.no.items()}
    left = replace(given, support=given.support[stays], y=given.y[stays], no={c: r for c, r in no.items() if r.size})
    found, pairs = replace(question, given=left, asked=()), list(said.items())
    for low in range(0, len(pairs), batch):
        found = found.answered(dict(pairs[low : low + batch]))
    return found


def stop(question: Question, label: str, recall: float = 0.8) -> Stop:
    """Whether that share of the members is found, with a probability of 95 % as far as draws tell."""
    if label not in question.classes:
        raise FewnodeError(f"{label!r} is none of the classes{closest(label, question.classes)}")
    if not 0 < recall < 1:
        raise FewnodeError(f"the share to be found is {recall}, expected one between 0 and 1")
    if question.cannot_tell:
        return Stop(False, f"it cannot be told: {question.cannot_tell}", None)
    known = evidence(question, label)
    told = known.trust()
    if told.recall is None or told.members is None:
        return Stop(False, "nothing can be said yet: it takes answers about nodes that were asked for", None)
    share, members = told.recall, told.members
    said = f"about {share.value:.0%} of some {members.value:.0f} members are found"
    if share.low >= recall:
        return Stop(True, f"{said}, {share.low:.0%} at least: enough for {recall:.0%}", 0)
    left, likely = _answers_left(known, share, recall)
    lacking = (recall - share.value) * members.value
    cost = f"; each of the rest costs about {max(1, round(likely / lacking))} answers" if lacking >= 1 else ""
    return Stop(False, f"{said}, perhaps only {share.low:.0%}{cost}: about {left} more answers for {recall:.0%}", left)


def _answers_left(known: Evidence, share: Estimate, recall: float) -> tuple[int, float]:
    """How many answers it takes to be sure, by narrowing the interval or by going down the list of unclaimed nodes.

    And how many of the latter it takes if all is as expected.
    """
    rates, band = known.rates(FEWER), bands(known.probability)
    inside, outside = (np.bincount(band[part], minlength=BANDS)[::-1] for part in (known.claimed, ~known.claimed))
    right, missing = known.found + rates[:, ::-1] @ inside, rates[:, ::-1] * outside
    got = np.column_stack([right, right[:, None] + missing.cumsum(axis=1)])
    sure, likely = np.percentile(got / np.maximum(1e-9, got[:, -1:]), [5, 50], axis=0)
    answers = np.concatenate([[0], outside.cumsum()])
    left = float(np.interp(recall, sure, answers))
    if share.value > recall:
        narrower = ((share.value - share.low) / (share.value - recall)) ** 2 - 1
        left = min(left, narrower * known.said.size)
    return max(1, round(left)), float(np.interp(recall, likely, answers))
