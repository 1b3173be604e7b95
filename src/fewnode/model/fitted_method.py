"""A method that was fitted, and how sure its answers may be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fewnode.episodes import Task
from fewnode.errors import FewnodeError
from fewnode.graph import Graph
from fewnode.method import Probabilities, predict_tasks
from fewnode.recognition.calibration import MODES, Temperature
from fewnode.recognition.prepared import PreparedSupport
from fewnode.recognition.prototypes import Prototypical


@dataclass(frozen=True)
class FittedMethod:
    """A method, its name, and how sure its answers may be, if that was learned."""

    name: str
    method: Any
    temperatures: Mapping[str, Temperature]
    """Of each of the `MODES`."""

    def predict_tasks(self, graph: Graph, tasks: Sequence[Task], transductive: bool = False) -> list[Probabilities]:
        """The probabilities of many tasks at once, on the graph as the method reads it."""
        if transductive and not isinstance(self.method, Prototypical):
            raise FewnodeError(f"{self.name} answers each query on its own: it has no transductive mode")
        answers = predict_tasks(self.method, graph, tasks, transductive)
        return [self.tempered(graph, answer, task, transductive) for answer, task in zip(answers, tasks, strict=True)]

    def tempered(
        self,
        graph: Graph,
        answer: Probabilities,
        task: Task,
        transductive: bool = False,
        prepared: PreparedSupport | None = None,
    ) -> Probabilities:
        """An answer, as sure as answers of its kind have been right."""
        temperature = self.temperatures.get(MODES[transductive])
        if temperature is None:
            return finite(answer)
        temperature = replace(temperature, level=temperature.level + self._revision(graph, task, prepared))
        near: Any = 0.0
        if temperature.by_nearness:
            near = self.method.closest(graph, task, None if prepared is None else prepared.z)
        return finite(temperature(answer, task, near))

    def _revision(self, graph: Graph, task: Task, prepared: PreparedSupport | None) -> float:
        """What the labelled nodes themselves say about being sure, where known classes have not."""
        if not isinstance(self.method, Prototypical):
            return 0.0
        left_out = self.method.left_out(graph, task) if prepared is None else prepared.left_out
        return 0.0 if left_out is None else self.temperatures[MODES[0]].revision(task, left_out)


def finite(probability: Probabilities) -> Probabilities:
    """Probabilities as they leave: one that is no number is never shown as an answer."""
    if not np.isfinite(probability).all():
        row = int(np.argmin(np.isfinite(probability).reshape(len(probability), -1).all(axis=1)))
        raise FewnodeError(
            f"the model's answer for query {row} is not a number: its weights or the attributes are too large"
        )
    return probability
