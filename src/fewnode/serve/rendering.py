"""Classes and predictions as the service gives them, with their reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from fewnode.predict.predictions import NONE, Answerer, Predictions
from fewnode.serve.network import ServedNetwork
from fewnode.serve.snapshot import Snapshot
from fewnode.serve.state import GivenClass, State


def class_list(network: ServedNetwork, state: State) -> list[dict[str, Any]]:
    """Each class with β of what stands for it, the place of its prototype on the map, and what was not understood."""
    classes, answered = state.given, Counter(name for name, _ in state.verdicts)
    if not network.embeds or not classes:
        found = [_class(each, [None] * len(each.nodes), None, None, []) for each in classes]
        return [{**each, "answers": answered[each["name"]]} for each in found]
    answerer = network.answerer(classes)
    beta, z = answerer.recogniser.explain([]).beta, answerer.recogniser.labelled_z
    assert z is not None, "the method embeds nodes"  # noqa: S101 # nosec B101
    found = []
    for each in classes:
        places = [i for i, (_, label) in enumerate(answerer.support) if label == each.name]
        prototype = (z[places] * z.new_tensor(beta[places].tolist())[:, None]).sum(dim=0, keepdim=True)
        weights = {answerer.support[i][0] if i < len(answerer.nodes) else None: float(beta[i]) for i in places}
        place, said = network.projection.place(prototype).tolist()[0], weights.pop(None, None)
        found.append(_class(each, list(weights.values()), said, place, remarks(network, answerer, each)))
        for shot in found[-1]["support"]:
            shot["position"] = network.position(network.data.node(shot["node"]))
    return [{**each, "answers": answered[each["name"]]} for each in found]


def _class(
    given: GivenClass,
    beta: Sequence[float | None],
    description_beta: float | None,
    position: list[float] | None,
    told: list[str],
) -> dict[str, Any]:
    return {
        "name": given.name,
        "description": given.description,
        "description_beta": description_beta,
        "support": [{"node": node, "beta": weight} for node, weight in zip(given.nodes, beta, strict=True)],
        "position": position,
        "remarks": told,
        "rejected": list(given.rejected),
    }


def remarks(network: ServedNetwork, answerer: Answerer, given: GivenClass) -> list[str]:
    """What of a description was not understood, or is not believed, a sentence each."""
    if given.description is None:
        return []
    about = f"class {given.name!r}: "
    told = [*network.read_definition(given).remarks, *answerer.remarks]
    return [remark.removeprefix(about) for remark in told if remark.startswith(about)]


def labels(answer: Predictions) -> list[str | None]:
    """What each node is taken for; None, not a class called none, for a node of none of the classes."""
    return [None if label == NONE and not answer.closed_set else label for label in answer.labels]


def words_of(now: Snapshot, given: Sequence[GivenClass], answer: Predictions) -> list[dict[str, Any] | None] | None:
    """The words that each node shares with the description of its likeliest class; None if none is to be explained."""
    described = {each.name: each for each in given if each.description is not None}
    if not answer.why or not described:
        return None
    network = now.network
    found: list[dict[str, Any] | None] = [None] * len(answer.nodes)
    best = answer.probabilities.argmax(axis=1)
    for place, name in enumerate(answer.classes):
        rows = np.flatnonzero(best == place).tolist() if name in described else []
        shared = network.shared(described[name], [network.data.node(answer.nodes[i]) for i in rows]) if rows else []
        for i, words in zip(rows, shared, strict=True):
            found[i] = words
    return found


def rendered(answer: Predictions, shots: int, words: Sequence[dict[str, Any] | None] | None = None) -> dict[str, Any]:
    """Predictions as the service gives them; `note` says it where the model cannot tell what is in none of them.

    What stands for classes are so many `shots`, then descriptions: where one of these is nearest, no node is named.
    """
    count = len(answer.nodes)
    stands = [{"node": node if i < shots else None, "class": label} for i, (node, label) in enumerate(answer.support)]
    nearest = [[stands[i] for i in row] for row in answer.why.nearest.tolist()] if answer.why else [[]] * count
    member = [None] * count if answer.member is None else answer.member.tolist()
    shared = words or [None] * count
    columns = (answer.nodes, labels(answer), answer.probability.tolist(), answer.probabilities, member, nearest, shared)
    fields = ("node", "class", "probability", "probabilities", "member", "nearest", "shared")
    beta: dict[str, dict[str, float]] = {}
    said: dict[str, float] = {}
    for (node, label), weight, each in zip(answer.support, answer.why.beta if answer.why else (), stands, strict=False):
        if each["node"] is None:
            said[label] = float(weight)
        else:
            beta.setdefault(label, {})[node] = float(weight)
    return {
        "classes": answer.classes,
        "closed_set": answer.closed_set,
        "note": answer.reason if answer.member is None else None,
        "results": [dict(zip(fields, row, strict=True)) for row in zip(*columns, strict=True)],
        "beta": beta,
        "description_beta": said,
    }
