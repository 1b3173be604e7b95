"""One state of the service and its network, which a request sees whole, and what may be asked of it before a change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fewnode.class_labels import UNKNOWN
from fewnode.errors import FewnodeError
from fewnode.predict.predictions import Answerer
from fewnode.serve.changes import BaseDataset
from fewnode.serve.network import ServedNetwork
from fewnode.serve.online import OnlineNetwork
from fewnode.serve.state import Edge, GivenClass, State


class NotFound(FewnodeError):
    """What the address names is not there."""


class Conflict(FewnodeError):
    """What is asked for contradicts what is registered."""


class NothingLeft(Conflict):
    """No change is left to be undone, or made again."""


class NearDuplicate(Conflict):
    """A class by that name could not be told from another."""


class PreconditionFailed(FewnodeError):
    """The asker's condition does not hold: the service has changed since they looked."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What answers are made from. A request takes one and keeps to it, whatever changes meanwhile."""

    online: OnlineNetwork
    state: State
    base: BaseDataset

    @property
    def network(self) -> ServedNetwork:
        """All of the network. After a change it has to be made first: nothing for what must be fast."""
        return self.online.whole

    @property
    def version(self) -> str:
        return self.state.version

    @property
    def n_attached(self) -> int:
        return self.online.n - self.base.data.graph.n + len(self.state.removed)

    def node(self, name: str) -> int:
        return self.network.data.node(self.base.form(name))

    def name(self, name: str) -> str:
        """The one form of the name of a node that is there."""
        found = self.base.form(name)
        return found if self.has(found) else self.network.data.node_name(self.node(name))

    def has(self, name: str) -> bool:
        """Whether there is a node of that name, in its one form."""
        return self.online.number(name) is not None

    def without_corrections(self, name: str) -> str | None:
        """The label of a node that is there, as the data or whoever attached it has it."""
        labels = {other: label for other, label in self.state.labels.items() if other != name}
        data = self.base.changed(replace(self.state, labels=labels))
        label = int(data.y[data.node(name)])
        return None if label == UNKNOWN else data.class_names[label]

    def linked(self, edge: Edge) -> bool:
        """Whether there is that edge, of nodes that are there."""
        return edge[0] in self.online.near(edge[1])

    def answerer(self, given: tuple[GivenClass, ...] | None = None, names: Sequence[str] | None = None) -> Answerer:
        """The given classes, or the registered ones, made ready: for all nodes, or for nodes of some names."""
        classes = self.state.given if given is None else given
        formed = tuple(each._replace(nodes=tuple(map(self.base.form, each.nodes))) for each in classes)
        if names is None or self.online.overlay is None:
            return self.network.answerer(formed)
        for node in (*(node for each in formed for node in each.nodes), *names):
            self.name(node)
        return self.online.answerer(formed, [self.base.form(name) for name in names])

    def prepare(self) -> None:
        """Make the registered classes ready; those that cannot be are an error."""
        if self.online.overlay is None:
            self.answerer()
        else:
            self.online.ready(self.state.given)


@dataclass(frozen=True)
class Condition:
    """What must hold for a change to be made: the headers If-Match and If-None-Match. A version is that of all."""

    if_match: str | None = None
    if_none_match: str | None = None

    def check(self, now: Snapshot, what: str, exists: bool) -> None:
        if self.if_match is not None:
            wanted = _tags(self.if_match)
            if wanted == ["*"] and not exists:
                raise PreconditionFailed(f"there is no {what}, and If-Match: * changes only what is there")
            if wanted != ["*"] and now.version not in wanted:
                raise PreconditionFailed(f"the service is at version {now.version} by now, not {', '.join(wanted)}")
        if self.if_none_match is not None:
            unwanted = _tags(self.if_none_match)
            if unwanted == ["*"] and exists:
                raise PreconditionFailed(f"there is a {what} already, and If-None-Match: * only makes new ones")
            if now.version in unwanted:
                raise PreconditionFailed(f"the service is still at version {now.version}")


ALWAYS = Condition()


def _tags(header: str) -> list[str]:
    return [tag.strip().strip('"') for tag in header.split(",")]
