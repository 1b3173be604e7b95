"""What to ask somebody next: nodes in doubt, to learn from, and now and then a fair sample of claims, to check them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fewnode.graph import Ints
from fewnode.predict.finding import ask_next
from fewnode.predict.labelling import may_have_class
from fewnode.predict.trust import fair_sample
from fewnode.serve.claim_list import ClaimList
from fewnode.serve.dialogue_bodies import NextQuestion

CHECKED = 5
"""Every so many questions are asked to check the claims."""


def questions(listed: ClaimList, names: Sequence[str], body: NextQuestion) -> list[dict[str, Any]]:
    """Of these classes in turn. A node is asked about once, and so is nothing that was answered or is not wanted."""
    skipped = set(listed.rows_of([listed.now.name(node) for node in body.exclude]).tolist())
    answered, found = len(listed.now.state.verdicts), list[dict[str, Any]]()
    due = [(answered + turn) % CHECKED == CHECKED - 1 for turn in range(body.count)]
    for place, name in enumerate(names):
        turns = due[place :: len(names)]
        checks = _checks(listed, name, skipped, sum(turns))
        skipped |= {row for row, _ in checks}
        learn = _in_doubt(listed, name, skipped, len(turns) - len(checks), body.threshold)
        skipped |= {row for row, _ in learn}
        for check in turns:
            queue = checks if check and checks else learn
            if queue:
                row, why = queue.pop(0)
                found.append(
                    {**_told(listed, name, row), "purpose": "check" if queue is checks else "learn", "why": why}
                )
    return found


def _told(listed: ClaimList, name: str, row: int) -> dict[str, Any]:
    network, place = listed.network, listed.answer.classes.index(name)
    own = float(listed.answer.probabilities[row, place])
    return {"node": network.data.node_name(row), "class": name, "probability": own, "known": network.class_of(row)}


def _checks(listed: ClaimList, name: str, skipped: set[int], count: int) -> list[tuple[int, str]]:
    claimed = listed.unanswered(name)
    why = f"drawn at random from {claimed.size:,} nodes that {name} claims, to measure how many are right"
    return [(row, why) for row in fair_sample(_without(claimed, skipped), count).tolist()]


def _in_doubt(
    listed: ClaimList, name: str, skipped: set[int], count: int, threshold: float | None
) -> list[tuple[int, str]]:
    recogniser = listed.recogniser
    pool = _without(np.flatnonzero(may_have_class(listed.network.data, recogniser.support)), skipped)
    if not count or not pool.size:
        return []
    rows, probability = ask_next(recogniser, name, pool, count, 0.5 if threshold is None else threshold)
    told = zip(rows.tolist(), probability.tolist(), strict=True)
    return [(row, f"{_doubt(p)}unlike what was answered so far") for row, p in told]


def _doubt(probability: float) -> str:
    return "in doubt, and " if 0.2 <= probability <= 0.8 else ""


def _without(rows: Ints, skipped: set[int]) -> Ints:
    return rows[~np.isin(rows, list(skipped))] if skipped else rows
