"""The one place where the service changes: each change is checked, tried, added to the log, and then answered for."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any

from pydantic import TypeAdapter

from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.model.estimator import Estimator
from fewnode.naming import alike
from fewnode.service import bodies as b
from fewnode.service.answers import Reloaded
from fewnode.service.asked import NothingToAsk
from fewnode.service.log import Log, time_of
from fewnode.service.moment import MODES, Json, Moment
from fewnode.service.network import Network
from fewnode.service.state import State, sentence

LOG = logging.getLogger("fewnode.service")
RECENT = 50
"""Changes that a page shows at once."""
SHOWN = 20
"""Nodes that are named where some are gone."""
_CLASS_NAME: TypeAdapter[str] = TypeAdapter(b.ClassName)
Loaded = tuple[Estimator, Dataset, bool]
"""A model, its network, and whether somebody trained the model."""


class Conflict(FewnodeError):
    """What is asked for contradicts what is registered."""


class NothingLeft(Conflict):
    """No change is left to be undone, or made again."""


class NearDuplicate(Conflict):
    """A class by that name could not be told from another."""


class PreconditionFailed(FewnodeError):
    """The service has changed since the asker looked."""


class Desk:
    """All that the service knows now, and how that changes."""

    def __init__(self, load: Callable[[], Loaded], log: Log, mode: b.Mode = MODES[0]) -> None:
        """`load` reads the dataset and its model, at the start and again when somebody asks for that."""
        self.load, self.log, self.mode, self.changing = load, log, mode, threading.RLock()
        if said := log.open():
            LOG.warning("%s", said)
        first = Network(*load())
        if mode == MODES[1] and not first.embeds:
            raise FewnodeError(f"{first.model.method} answers each query on its own: it has no transductive mode")
        network, gone = _grown(first, log.state)
        if gone:
            LOG.warning("not in %s, and so passed over: %s", first.data.name, ", ".join(gone[:SHOWN]))
        self.reloaded = Reloaded(running=False, gone=gone[:SHOWN], gone_total=len(gone))
        self.now = Moment(log.state, network, log.version, mode)
        self.laying_out = threading.Thread(target=self._lay_out, name="map", daemon=True)
        self.laying_out.start()

    def _lay_out(self) -> None:
        """Make the map in the background; the classes are answered for meanwhile."""
        try:
            self.now.network.lay_out()
        except Exception as error:  # the map by its axes stays
            LOG.warning("the map could not be laid out: %s", error)

    def change(self, change: b.Change, by: str | None, told: Callable[[Moment], Json] = lambda then: {}) -> Json:
        """Keep a change, if it can be served and is one, and go on with it. `told` is what is answered then."""
        when, state = time_of(), self.now.state.copied()
        state.apply(change, by, when)
        if state.same_as(self.now.state):
            return {**self._kept(), **told(self.now)}
        then = self._tried(state)
        answer = told(then)
        self.log.append(state, change, by, when)
        self.now = then
        return {**self._kept(), **answer}

    def step(self, back: bool, by: str | None, version: str | None) -> Json:
        """Undo the last change that stands, or make the one again that was undone last."""
        with self.changing:
            self._refuse_outdated(version)
            n = self.log.undoable if back else self.log.redoable
            if n is None:
                raise NothingLeft(f"there is nothing to {'undo' if back else 'redo'}")
            state = self.log.without(n) if back else self.log.again(n)
            then = self._tried(state)
            self.log.mark(n, back, state)
            self.now = then
            return {**self._kept(), "what": f"{'Undone' if back else 'Again'}: {sentence(self.log.entry(n).change)}"}

    def _refuse_outdated(self, version: str | None) -> None:
        wanted = ["*"] if version is None else [tag.strip().strip('"') for tag in version.split(",")]
        if wanted != ["*"] and self.now.version not in wanted:
            raise PreconditionFailed(f"the service is at version {self.now.version} by now, not {', '.join(wanted)}")

    def _tried(self, state: State) -> Moment:
        """The moment that a change leads to: what cannot be served is refused before it is kept."""
        network, nodes, before = self.now.network, [*state.nodes.values()], [*self.now.state.nodes.values()]
        if nodes != before:
            network, _ = _grown(network if nodes[: len(before)] == before else network.first, state)
        then = Moment(state, network, self.log.next_version, self.mode)
        if state.support:
            with suppress(NothingToAsk):
                _ = then.asked
        return then

    def _kept(self) -> Json:
        undo, redo = self.log.undoable is not None, self.log.redoable is not None
        return {"version": self.log.version, "undo": undo, "redo": redo}

    # --- classes and answers ---

    def put_class(self, name: str, body: b.PutClass, version: str | None) -> Json:
        with self.changing:
            self._refuse_outdated(version)
            now, support = self.now, self.now.state.support
            if why := alike(name, support):
                raise NearDuplicate(why)
            _CLASS_NAME.validate_python(name)
            nodes = list(dict.fromkeys(now.name(node) for node in body.support))
            _refuse_two_classes(now.state, name, nodes)
            if name not in support and len(support) >= b.MAX_CLASSES:
                raise FewnodeError(f"there are {b.MAX_CLASSES} classes already, which is the limit")
            change = b.ClassChange(name=name, support=nodes, description=body.description)
            return self.change(change, body.by, lambda then: then.one_class(name))

    def delete_class(self, name: str, by: str | None, version: str | None) -> Json:
        with self.changing:
            self._refuse_outdated(version)
            self.now.refuse_unknown(name)
            return self.change(b.Forget(name=name), by)

    def answer(self, body: b.GivenAnswers, version: str | None) -> Json:
        """All answers or none. A yes makes a node an example of its class, a no a counter-example, null neither."""
        with self.changing:
            self._refuse_outdated(version)
            if body.id is not None and body.id in self.log.ids:
                return {**self._kept(), "classes": self.now.class_list()}
            now, answers = self.now, dict[tuple[str, str], b.OneAnswer]()
            for each in body.answers:
                key = each.label, now.name(each.node)
                now.refuse_unknown(each.label)
                if key in answers:
                    raise FewnodeError(f"node {key[1]!r} is answered twice for class {each.label!r}")
                answers[key] = each.model_copy(update={"node": key[1]})
            change = b.AnswerChange(answers=[*answers.values()], check=body.check, id=body.id)
            state = now.state.copied()
            state.apply(change, body.by, time_of())
            for name in {name for name, _ in answers}:
                own = state.support[name]
                if not own and name not in state.descriptions:
                    raise Conflict(f"class {name!r} would have no example and no description; describe or delete it")
                if len(own) > b.MAX_EXAMPLES:
                    raise FewnodeError(f"class {name!r} has {b.MAX_EXAMPLES:,} examples already, which is the limit")
                _refuse_two_classes(state, name, [node for _, node in answers if node in own])
            if state.answers > b.MAX_ANSWERS_IN_ALL:
                raise FewnodeError(f"more than {b.MAX_ANSWERS_IN_ALL:,} answers")
            found = self.change(change, body.by, lambda then: {"classes": then.class_list()})
            if body.id is not None:  # also where nothing changed: what is sent again must not undo what came since
                self.log.ids.add(body.id)
            return found

    def journal(self, limit: int, offset: int) -> Json:
        entries = [
            {"number": e.n, "when": e.time, "by": e.who, "what": sentence(e.change), "undone": bool(e.undone)}
            for e in self.log.entries(limit, offset)
        ]
        return {**self._kept(), "total": self.log.total, "entries": entries}

    def look(self, body: b.Look) -> Json:
        """All that a page shows of a class."""
        now = self.now
        return {**now.look(body), "model": {**now.model(), "reload": self.reloaded}, "journal": self.journal(RECENT, 0)}

    # --- nodes ---

    def attach(self, body: b.Attach, version: str | None) -> Json:
        """Keep new nodes and, if asked and if there are classes, classify them; nothing is trained."""
        with self.changing:
            self._refuse_outdated(version)
            network, nodes = self.now.network, dict[str, b.NewNode]()
            for new in body.nodes:
                name = network.form(new.node)
                if name in nodes or network.has(name) or name in self.now.state.nodes:
                    raise FewnodeError(f"there is a node {name!r} already")
                edges = list({repr(edge): edge for edge in map(_formed(network), new.edges)}.values())
                nodes[name] = network.reader.checked(new.model_copy(update={"node": name, "edges": edges}))
            if len(self.now.state.nodes) + len(nodes) > b.MAX_ATTACHED_IN_ALL:
                raise FewnodeError(f"more than {b.MAX_ATTACHED_IN_ALL:,} new nodes; extend the dataset and reload it")
            for node in nodes.values():
                if odd := [end for end in map(_end, node.edges) if end not in nodes and not network.has(end)]:
                    raise FewnodeError(f"node {node.node!r} has an edge to {odd[0]!r}, which is not in the network")

            def told(then: Moment) -> Json:
                report = network.reader.report(nodes.values())
                if not body.classify or not then.state.support:
                    return report
                how = {name: getattr(body, name) for name in b.Judging.model_fields}
                return {**then.classify(b.Classify(nodes=[*nodes], **how)), **report}

            return self.change(b.AttachChange(nodes=[*nodes.values()]), body.by, told)

    def reload(self) -> Reloaded:
        """Read the dataset again in the background; classes and answers are kept by the names of nodes."""
        with self.changing:
            if not self.reloaded.running:
                self.reloaded = Reloaded(running=True, at=time_of())
                threading.Thread(target=self._reload, name="reload", daemon=True).start()
            return self.reloaded

    def _reload(self) -> None:
        at = self.reloaded.at
        try:
            first = Network(*self.load())
            with self.changing:
                network, gone = _grown(first, self.now.state)
                self.log.touch()
                self.now = Moment(self.now.state, network, self.log.version, self.mode)
                self.reloaded = Reloaded(running=False, at=at, gone=gone[:SHOWN], gone_total=len(gone))
            self._lay_out()
        except Exception as error:  # the service goes on with what it has, and says why
            LOG.warning("the dataset could not be read again: %s", error)
            why = str(error) if isinstance(error, FewnodeError) else f"{type(error).__name__}: {error}"
            self.reloaded = Reloaded(running=False, at=at, error=why)


def _grown(network: Network, state: State) -> tuple[Network, list[str]]:
    """The network with the new nodes of a state, and what the state names that is not there.

    A node that the dataset has by now is that of the dataset; an edge to a node that is not there is left out.
    """
    fresh = {name: node for name, node in state.nodes.items() if not network.has(name)}
    nodes, gone = [], dict[str, None]()
    for name, node in [*fresh.items()]:
        try:
            network.reader.checked(node)
        except FewnodeError:  # the dataset has other columns by now
            gone[name] = None
            del fresh[name]
    for node in fresh.values():
        lost = [end for end in map(_end, node.edges) if end not in fresh and not network.has(end)]
        gone |= dict.fromkeys(lost)
        kept = [edge for edge in node.edges if _end(edge) not in lost]
        nodes.append(node.model_copy(update={"edges": kept}) if lost else node)
    batches = [list(batch) for _, batch in groupby(nodes, lambda node: state.arrivals[node.node])]
    grown = network.appended(batches)
    named: list[Iterable[str]] = [*state.support.values(), *state.verdicts.values()]
    return grown, list(gone | {name: None for names in named for name in names if not grown.has(name)})


def _end(edge: str | b.NewEdge) -> str:
    return edge if isinstance(edge, str) else edge.node


def _formed(network: Network) -> Callable[[Any], str | b.NewEdge]:
    """An edge with the one form of its end; one that says nothing more is a name."""

    def formed(edge: str | b.NewEdge) -> str | b.NewEdge:
        end = network.form(_end(edge))
        return (
            end if isinstance(edge, str) or edge == b.NewEdge(node=edge.node) else edge.model_copy(update={"node": end})
        )

    return formed


def _refuse_two_classes(state: State, name: str, nodes: Sequence[str]) -> None:
    for other, support in state.support.items():
        if other != name and (node := next((node for node in nodes if node in support), None)) is not None:
            raise Conflict(f"node {node!r} is in class {other!r} already; a node is in one class at most")
    if state.examples + len(nodes) > b.MAX_EXAMPLES_IN_ALL:
        raise FewnodeError(f"more than {b.MAX_EXAMPLES_IN_ALL:,} examples in all classes")
