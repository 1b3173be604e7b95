"""The one place where the service changes: each change is checked, tried, added to the log, and then answered for."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import groupby

from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.model.estimator import Estimator
from fewnode.naming import alike
from fewnode.service import bodies as b
from fewnode.service.answers import Reloaded
from fewnode.service.log import Log, time_of
from fewnode.service.moment import Json, Moment
from fewnode.service.network import Network
from fewnode.service.state import State, sentence

LOG = logging.getLogger("fewnode.service")
RECENT = 50
"""Changes that a page shows at once."""
SHOWN = 20
"""Nodes that are named where some are gone."""
Loaded = tuple[Estimator, Dataset, bool]
"""A model, its network, and whether somebody trained the model."""


class Conflict(FewnodeError):
    """What is asked for contradicts what is registered."""


class PreconditionFailed(FewnodeError):
    """The service has changed since the asker looked."""


class Desk:
    """All that the service knows now, and how that changes."""

    def __init__(self, load: Callable[[], Loaded], log: Log) -> None:
        """`load` reads the dataset and its model, at the start and again when somebody asks for that."""
        self.load, self.log, self.changing = load, log, threading.RLock()
        if said := log.open():
            LOG.warning("%s", said)
        first = Network(*load())
        self._opened(first)
        if gone := self.reloaded.gone:
            LOG.warning("not in %s, and so passed over: %s", first.data.name, ", ".join(gone))
        self.laying_out = threading.Thread(target=self._lay_out, name="map", daemon=True)
        self.laying_out.start()

    def _opened(self, first: Network, at: str | None = None) -> None:
        """Go on with a dataset that was read; what of the log is not in it is named."""
        network, gone = _grown(first, self.log.state)
        self.now = Moment(self.log.state, network, self.log.version)
        self.reloaded = Reloaded(running=False, at=at, gone=gone[:SHOWN], gone_total=len(gone))

    def _lay_out(self) -> None:
        """Make the map in the background; the classes are answered for meanwhile."""
        try:
            self.now.network.lay_out()
        except Exception as error:  # the map by its axes stays
            LOG.warning("the map could not be laid out: %s", error)

    # --- changes ---

    @contextmanager
    def _seen(self, version: str | None) -> Iterator[Moment]:
        """What is there, for a change: one after the other, each of what its asker saw."""
        with self.changing:
            wanted = ["*"] if version is None else [tag.strip().strip('"') for tag in version.split(",")]
            if wanted != ["*"] and self.now.version not in wanted:
                told = f"the service is at version {self.now.version} by now, not {', '.join(wanted)}"
                raise PreconditionFailed(told)
            yield self.now

    def _change(self, change: b.Change, by: str | None, told: Callable[[Moment], Json] = lambda then: {}) -> Json:
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

    def _tried(self, state: State) -> Moment:
        """The moment that a change leads to: what cannot be served is refused before it is kept."""
        network, nodes, before = self.now.network, [*state.nodes.values()], [*self.now.state.nodes.values()]
        if nodes != before:
            network, _ = _grown(network if nodes[: len(before)] == before else network.first, state)
        then = Moment(state, network, self.log.next_version)
        _ = then.asked
        return then

    def _kept(self) -> Json:
        undo, redo = (self.log.next_step(back) is not None for back in (True, False))
        return {"version": self.log.version, "undo": undo, "redo": redo}

    def step(self, back: bool, by: str | None, version: str | None) -> Json:
        """Undo the last change that stands, or make the one again that was undone last."""
        with self._seen(version):
            entry = self.log.next_step(back)
            if entry is None:
                raise Conflict(f"there is nothing to {'undo' if back else 'redo'}")
            then = self._tried(self.log.marked(entry.n, back))
            self.log.mark(entry.n, back, then.state)
            self.now = then
            return {**self._kept(), "what": f"{'Undone' if back else 'Again'}: {sentence(entry.change)}"}

    # --- classes and answers ---

    def put_class(self, name: str, body: b.PutClass, version: str | None) -> Json:
        with self._seen(version) as now:
            classes = now.state.classes
            if why := alike(name, classes):
                raise Conflict(why)
            nodes = list(dict.fromkeys(now.name(node) for node in body.support))
            if name not in classes and len(classes) >= b.MAX_CLASSES:
                raise FewnodeError(f"there are {b.MAX_CLASSES} classes already, which is the limit")
            change = b.ClassChange(name=name, support=nodes, description=body.description)
            _refuse_two_classes(now.state, name, nodes)
            return self._change(change, body.by, lambda then: then.one_class(name))

    def delete_class(self, name: str, by: str | None, version: str | None) -> Json:
        with self._seen(version) as now:
            now.refuse_unknown(name)
            return self._change(b.Forget(name=name), by)

    def answer(self, body: b.GivenAnswers, version: str | None) -> Json:
        """All answers or none. A yes makes a node an example of its class, a no a counter-example, null neither."""
        with self._seen(version) as now:
            if body.id is not None and body.id in self.log.ids:
                return {**self._kept(), "classes": now.class_list()}
            answers: dict[tuple[str, str], b.OneAnswer] = {}
            for each in body.answers:
                key = each.label, now.name(each.node)
                now.refuse_unknown(each.label)
                if key in answers:
                    raise FewnodeError(f"node {key[1]!r} is answered twice for class {each.label!r}")
                answers[key] = each.model_copy(update={"node": key[1]})
            change = b.AnswerChange(answers=[*answers.values()], check=body.check, id=body.id)
            state = now.state.copied()
            state.apply(change, body.by, "")
            for name in {name for name, _ in answers}:
                given = state.classes[name]
                if not given.support and given.description is None:
                    raise Conflict(f"class {name!r} would have no example and no description; describe or delete it")
                if len(given.support) > b.MAX_EXAMPLES:
                    raise FewnodeError(f"class {name!r} has {b.MAX_EXAMPLES:,} examples already, which is the limit")
                _refuse_two_classes(state, name, [node for _, node in answers if node in given.support])
            if sum(len(given.verdicts) for given in state.classes.values()) > b.MAX_ANSWERS_IN_ALL:
                raise FewnodeError(f"more than {b.MAX_ANSWERS_IN_ALL:,} answers")
            found = self._change(change, body.by, lambda then: {"classes": then.class_list()})
            if body.id is not None:  # also where nothing changed: what is sent again must not undo what came since
                self.log.ids.add(body.id)
            return found

    def journal(self, limit: int, offset: int) -> Json:
        entries = [
            {"number": e.n, "when": e.time, "by": e.who, "what": sentence(e.change), "undone": bool(e.mark)}
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
        with self._seen(version) as now:
            network, nodes = now.network, dict[str, b.NewNode]()
            for new in body.nodes:
                name = network.form(new.node)
                if name in nodes or network.has(name) or name in now.state.nodes:
                    raise FewnodeError(f"there is a node {name!r} already")
                formed = [edge.model_copy(update={"node": network.form(edge.node)}) for edge in new.edges]
                edges = list({edge.model_dump_json(): edge for edge in formed}.values())
                nodes[name] = network.reader.checked(new.model_copy(update={"node": name, "edges": edges}))
            if len(now.state.nodes) + len(nodes) > b.MAX_ATTACHED_IN_ALL:
                raise FewnodeError(f"more than {b.MAX_ATTACHED_IN_ALL:,} new nodes; extend the dataset and reload it")
            for name, end in ((name, edge.node) for name, node in nodes.items() for edge in node.edges):
                if end not in nodes and not network.has(end):
                    raise FewnodeError(f"node {name!r} has an edge to {end!r}, which is not in the network")
            report = network.reader.report(nodes.values())

            def told(then: Moment) -> Json:
                if not body.classify or not then.state.classes:
                    return report
                how = {name: getattr(body, name) for name in b.Judging.model_fields}
                return {**then.classify(b.Classify(nodes=[*nodes], **how)), **report}

            return self._change(b.AttachChange(nodes=[*nodes.values()]), body.by, told)

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
                self.log.touch()
                self._opened(first, at)
        except Exception as error:  # the service goes on with what it has, and says why
            LOG.warning("the dataset could not be read again: %s", error)
            why = str(error) if isinstance(error, FewnodeError) else f"{type(error).__name__}: {error}"
            self.reloaded = Reloaded(running=False, at=at, error=why)
        else:
            self._lay_out()


def _grown(network: Network, state: State) -> tuple[Network, list[str]]:
    """The network with the new nodes of a state, and what the state names that is not there.

    A node that the dataset has by now is that of the dataset; an edge to a node that is not there is left out.
    """
    fresh, gone = dict[str, b.NewNode](), dict[str, None]()
    for name, node in state.nodes.items():
        with suppress(FewnodeError):  # the dataset may have other columns by now
            if not network.has(name):
                fresh[name] = network.reader.checked(node)
            continue
        gone[name] = None
    for name, node in fresh.items():
        lost = {edge.node for edge in node.edges if edge.node not in fresh and not network.has(edge.node)}
        gone |= dict.fromkeys(lost)
        fresh[name] = node.model_copy(update={"edges": [edge for edge in node.edges if edge.node not in lost]})
    batches = [list(batch) for _, batch in groupby(fresh.values(), lambda node: state.arrivals[node.node])]
    grown = network.appended(batches)
    for given in state.classes.values():
        gone |= {name: None for name in [*given.support, *given.verdicts] if not grown.has(name)}
    return grown, list(gone)


def _refuse_two_classes(state: State, name: str, nodes: list[str]) -> None:
    for other, given in state.classes.items():
        if other != name and (node := next((node for node in nodes if node in given.support), None)) is not None:
            raise Conflict(f"node {node!r} is in class {other!r} already; a node is in one class at most")
    if sum(len(given.support) for given in state.classes.values()) + len(nodes) > b.MAX_EXAMPLES_IN_ALL:
        raise FewnodeError(f"more than {b.MAX_EXAMPLES_IN_ALL:,} examples in all classes")
