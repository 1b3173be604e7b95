"""What to trust of each class: by the model, by the answers to a fair sample, and by the labels that the data knows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewnode.predict.trust import curve, estimated_members, measured
from fewnode.serve.claim_list import ClaimList
from fewnode.serve.claims import Claims

DIGITS = 4


def trust_report(listed: ClaimList, only: str | None = None) -> dict[str, Any]:
    """For all classes or one; `none` counts the nodes that no class claims."""
    answer = listed.answer
    known = _by_labels(listed)
    names = answer.classes if only is None else [only]
    return {
        "version": listed.now.version,
        "classes": {name: {**_of_class(listed, name), "known": known.get(name)} for name in names},
        "none": int((listed.place < 0).sum()),
    }


def _of_class(listed: ClaimList, name: str) -> dict[str, Any]:
    state, answer, place = listed.now.state, listed.answer, listed.answer.classes.index(name)
    yes = listed.rows_of(state.classes[name])
    no = listed.rows_of([node for (own, node), verdict in state.verdicts.items() if own == name and not verdict.yes])
    asked = [verdict.yes for (own, _), verdict in state.verdicts.items() if own == name and verdict.check]
    open_question = np.ones(listed.place.size, bool)
    open_question[np.concatenate([yes, no])] = False
    probability, claimed = answer.probabilities[:, place], listed.place == place
    found = measured(sum(asked), len(asked))
    members = estimated_members(probability[open_question], claimed[open_question], found, len(yes))
    told = None if found is None else {"value": found.value, "low": found.low, "high": found.high, "n": found.asked}
    return {
        "claimed": int(claimed.sum()),
        "members": {what: round(value, 1) for what, value in members._asdict().items()},
        "precision_by_answers": told,
        "sampled": len(asked),
        "curve": [] if answer.member is None or answer.closed_set else _curve(listed, place, yes, no),
    }


def _curve(listed: ClaimList, place: int, yes: NDArray[np.int64], no: NDArray[np.int64]) -> list[dict[str, Any]]:
    """What to expect at each threshold. It counts what the class would claim then, as the list does."""
    answer = listed.answer
    assert answer.member is not None, "it can be told what is in none of them"  # noqa: S101 # nosec B101
    probability = answer.probabilities[:, place].copy()
    probability[yes], probability[no] = 1.0, 0.0
    score = np.where((answer.probabilities.argmax(axis=1) == place) & (probability > 0), answer.member, -1.0)
    return [
        {what: value if value is None else round(value, DIGITS) for what, value in point._asdict().items()}
        for point in curve(probability, by=score)
    ]


def _by_labels(listed: ClaimList) -> dict[str, dict[str, Any] | None]:
    """Precision and recall of the claims by known labels; None for a class that the data has no name for."""
    data, state, classes = listed.network.data, listed.now.state, listed.answer.classes
    support = [(row, name) for name in classes for row in listed.rows_of(state.classes[name]).tolist()]
    labels = [None if place < 0 else classes[place] for place in listed.place.tolist()]
    found = Claims.of(data, classes, support, labels, {}).to_json(data)["per_class"]
    shown = ("precision", "recall", "compared_with")
    return {
        name: None if each["compared_with"] is None else {what: each[what] for what in shown}
        for name, each in found.items()
    }
