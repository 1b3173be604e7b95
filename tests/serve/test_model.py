"""Random requests, restarts, kills and faults: after each of them the service is where a model of it is.

The model is `service_model.Model`. The service has its real store; SQLite fails, or the process is killed, at a chosen
statement.
"""

from __future__ import annotations

import csv
import operator
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from fewnode.service.access import rules
from fewnode.service.http import Service
from service import PORT, TOKEN, Answer, InProcess
from service_model import Condition, Meaning, Model, Refused
from service_networks import Network, edges, of_numbers, of_tables, rows
from sizes import Figure, sizes

STEPS = 15
COMMIT = ("BEGIN", "UPDATE about", "COMMIT")
"""Statements before which a change is not kept yet."""
CHECKPOINT = "PRAGMA wal_checkpoint"
"""The statement after which one is."""


# --- a database that fails ----------------------------------------------------------------------------------------


class FlawedConnection(sqlite3.Connection):
    """Before a statement that begins so, something happens once."""

    statement: ClassVar[str | None] = None
    event: ClassVar[Callable[[], None]]

    def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:
        if FlawedConnection.statement is not None and sql.startswith(FlawedConnection.statement):
            FlawedConnection.statement = None
            FlawedConnection.event()
        return super().execute(sql, *args)


def fail() -> None:
    raise sqlite3.OperationalError("disk I/O error")


def copied_if_there(source: str, target: str) -> None:
    """A file that a thread writes aside is gone once it has its name: as if the process had been killed before."""
    with suppress(FileNotFoundError):
        shutil.copy2(source, target)


# --- the comparison -----------------------------------------------------------------------------------------------

Place = st.sampled_from([*range(5)] * 2 + [10, 11, *range(16)])
"""Of a name in `Network.names`: a few of them often, so that requests have to do with each other."""
NewPlace = st.sampled_from([0, 0, 1, 1, 2, 3])
Places = st.lists(Place, max_size=3)
Content = st.integers(0, 9)
Seldom = st.sampled_from([False, False, False, True])
ClassNames = st.sampled_from(["a", "b", "c", "B", "mill"])
UNFIT = "\x00"
"""What no description may hold."""
Descriptions = st.sampled_from([None] * 4 + ["", "farm", "a shop 24", "nothing known", UNFIT])
Conditions = st.sampled_from([""] * 12 + ["now", "old", "*"])
EVENTS = [(where, event) for where in (*COMMIT, CHECKPOINT) for event in ("fail", "kill")]
Events = st.sampled_from([("", "")] * 20 + EVENTS)
"""What happens before which statement, if the change is one that is written."""


ROUNDING = 2e-6
"""What tables of probabilities with six digits may differ by."""


def shifts(ours: bytes, theirs: bytes) -> list[float]:
    """How far the probabilities of two tables of the same nodes are from each other."""
    tables = [list(csv.DictReader(each.decode().splitlines())) for each in (ours, theirs)]
    assert [row["node"] for row in tables[0]] == [row["node"] for row in tables[1]]
    return [abs(float(a["probability"]) - float(b["probability"])) for a, b in zip(*tables, strict=True)]


class Comparison(RuleBasedStateMachine):
    networks: ClassVar[Sequence[Network]]
    home: ClassVar[Path]
    service: ClassVar[Service]
    happened: ClassVar[Counter[str]] = Counter()
    """How often, for the figure: a comparison of refusals only would show nothing."""

    @initialize(which=st.integers(0, 1), ready=Seldom.map(operator.not_))
    def start(self, which: int, ready: bool) -> None:
        self.happened["sequences"] += 1
        self.network = self.networks[which]
        self.model, self.changes, self.version = self.network.start, 0, ""
        self.total = 0
        self.before: list[Model] = []
        self.undone: list[Model] = []
        self.open(Path(tempfile.mkdtemp(dir=self.home)))
        self.version = self.local.ask("/api/classes").json["version"]
        if ready:
            self.put_class("a", [0, 8], None, "", ("", ""))
            self.put_class("b", [1], None, "", ("", ""))

    def teardown(self) -> None:
        FlawedConnection.statement = None
        if hasattr(self, "local"):
            self.local.close()
            shutil.rmtree(self.folder, ignore_errors=True)  # a thread of it may still keep what was embedded

    def open(self, folder: Path) -> None:
        self.folder = folder
        self.local = InProcess(self.network.model, self.network.data, folder / "state.sqlite", self.service)

    def name(self, place: int) -> str:
        return self.network.names[place % len(self.network.names)]

    def named(self, places: Sequence[int]) -> list[str]:
        return [self.name(place) for place in places]

    def new_name(self, place: int) -> str:
        return self.network.new[place]

    def content(self, place: int) -> tuple[dict[str, Any], Meaning | None]:
        return self.network.contents[place % len(self.network.contents)]

    def condition(self, given: str) -> Condition:
        return Condition({"": None, "now": self.version, "old": "0-12345678", "*": "*"}[given])

    def change(
        self, ask: Callable[[], Answer], expected: Callable[[], Model], meets: tuple[str, str], kind: str = "new"
    ) -> Answer | None:
        """Make a change here and there. A refusal has the same status; None if the process was killed."""
        try:
            then, status = expected(), 200
        except Refused as refusal:
            then, status = self.model, refusal.status
        where, event = meets if then != self.model else ("", "")
        kept = then != self.model and where not in COMMIT
        if event == "fail" and not kept:
            status = 507
        FlawedConnection.statement, FlawedConnection.event = where or None, fail if event == "fail" else self.copy
        answer = ask()
        note(f"{answer.status} {answer.body[:300]!r}")
        assert answer.status == status, answer.body
        assert FlawedConnection.statement is None, "the change was not written"
        self.happened["refused" if status not in (200, 507) else event or ("kept" if kept else "same")] += 1
        if kept:
            self.follow(then, kind)
        if event == "kill":
            self.end_and_open(self.copied)
            self.version = self.local.ask("/api/classes").json["version"] if kept else self.version
            return None
        if status == 200:
            assert (answer.json["version"] != self.version) == kept
            self.version = answer.json["version"]
        return answer

    def follow(self, then: Model, kind: str) -> None:
        """What can be undone and redone after a change."""
        if kind == "redo":
            self.undone.pop()
        (self.undone if kind == "undo" else self.before).append(self.model)
        if kind == "undo":
            self.before.pop()
        elif kind == "new":
            self.undone.clear()
        self.model, self.changes, self.total = then, self.changes + 1, self.total + (kind == "new")

    @rule(
        name=ClassNames,
        nodes=st.lists(Place, max_size=3),
        description=Descriptions,
        given=Conditions,
        meets=Events,
    )
    def put_class(
        self, name: str, nodes: Sequence[int], description: str | None, given: str, meets: tuple[str, str]
    ) -> None:
        condition, support = self.condition(given), self.named(nodes)
        body = {"support": support} if description is None else {"support": support, "description": description}

        def expected() -> Model:
            if description == UNFIT or (not support and description is None):
                raise Refused(422)  # the body is read before anything else is looked at
            condition.check(self.version)
            return self.model.put_class(name, support, description)

        self.change(
            lambda: self.local.ask(f"/api/classes/{name}", body, "PUT", **condition.headers),
            expected,
            meets,
        )

    @rule(name=ClassNames, given=Conditions, meets=Events)
    def delete_class(self, name: str, given: str, meets: tuple[str, str]) -> None:
        condition = self.condition(given)

        def expected() -> Model:
            condition.check(self.version)
            return self.model.delete_class(name)

        self.change(
            lambda: self.local.ask(f"/api/classes/{name}", None, "DELETE", **condition.headers), expected, meets
        )

    @rule(new=st.lists(st.tuples(NewPlace, Content, Places), min_size=1, max_size=2), classify=Seldom, meets=Events)
    def attach(self, new: Sequence[tuple[int, int, Sequence[int]]], classify: bool, meets: tuple[str, str]) -> None:
        found = [(self.new_name(place), *self.content(content), self.named(ends)) for place, content, ends in new]
        nodes = [{"node": name, **content, "edges": ends} for name, content, _, ends in found]
        self.change(
            lambda: self.local.ask("/api/nodes", {"nodes": nodes, "classify": classify}),
            lambda: self.model.attach([(name, means, ends) for name, _, means, ends in found], classify),
            meets,
        )

    @rule(
        answers=st.lists(st.tuples(Place, ClassNames, st.sampled_from(["yes", "no", None])), min_size=1, max_size=2),
        check=Seldom,
        given=Conditions,
        meets=Events,
    )
    def answer(
        self,
        answers: Sequence[tuple[int, str, str | None]],
        check: bool,
        given: str,
        meets: tuple[str, str],
    ) -> None:
        condition, said = self.condition(given), [(self.name(place), name, v) for place, name, v in answers]
        body = {"answers": [{"node": node, "class": name, "verdict": v} for node, name, v in said], "check": check}

        def expected() -> Model:
            condition.check(self.version)
            return self.model.answer(said, check)

        self.change(lambda: self.local.ask("/api/answers", body, **condition.headers), expected, meets)

    @rule(kind=st.sampled_from(["undo", "undo", "redo"]), given=Conditions, meets=Events)
    def take_back(self, kind: str, given: str, meets: tuple[str, str]) -> None:
        condition, stack = self.condition(given), self.before if kind == "undo" else self.undone

        def expected() -> Model:
            condition.check(self.version)
            if not stack:
                raise Refused(409)
            return stack[-1]

        self.change(lambda: self.local.ask(f"/api/{kind}", {}, **condition.headers), expected, meets, kind)

    # --- questions ---

    def question(self, ask: Callable[[], Answer], expected: Callable[[], object]) -> Answer | None:
        status = 200
        try:
            expected()
        except Refused as refusal:
            status = refusal.status
        answer = ask()
        assert answer.status == status, answer.body
        return answer if status == 200 else None

    def known(self, names: Sequence[str]) -> list[str]:
        self.model.answers()
        return [self.model.there(name) for name in names]

    @rule(places=st.lists(Place, min_size=1, max_size=3))
    def classify(self, places: Sequence[int]) -> None:
        names = self.named(places)
        answer = self.question(lambda: self.local.ask("/api/classify", {"nodes": names}), lambda: self.known(names))
        if answer is not None:
            assert answer.json["version"] == self.version
            assert [each["node"] for each in answer.json["results"]] == self.known(names)
            assert answer.json["classes"] == sorted(self.model.classes)

    @rule(place=Place)
    def read_node(self, place: int) -> None:
        name = self.name(place)
        answer = self.question(lambda: self.local.ask(f"/api/nodes/{name}"), lambda: self.model.there(name, 404))
        if answer is not None:
            own = self.model.form(name)
            near = {s for s, t in self.model.edges if t == own}
            near |= set() if self.model.directed else {t for s, t in self.model.edges if s == own}
            assert {each["node"] for each in answer.json["neighbours"]} == near
            assert answer.json["class"] == self.model.nodes[own].label

    @rule()
    def read_tables(self) -> None:
        support = list(csv.reader(self.local.ask("/api/export/support.csv").body.decode().splitlines()))
        yes = [[node, name] for name, nodes in self.model.classes.items() for node in nodes]
        no = {(node, name, "no") for (name, node), verdict in self.model.verdicts.items() if not verdict[0]}
        assert [row[:2] for row in support[1:] if row[2:] != ["no"]] == yes
        assert {tuple(row) for row in support[1:] if row[2:] == ["no"]} == no
        answer = self.question(lambda: self.local.ask("/api/export/labels.csv"), self.model.answers)
        if answer is not None:
            table = list(csv.reader(answer.body.decode().splitlines()))
            assert [row[0].removeprefix("'") for row in table[1:]] == list(self.model.nodes)

    # --- bad days ---

    def end_and_open(self, folder: Path) -> None:
        self.local.close()
        if folder != self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)  # a thread of it may still keep what was embedded
        self.open(folder)

    def copy(self) -> None:
        """The files as they are now: what a killed process leaves."""
        self.copied = Path(tempfile.mkdtemp(dir=self.home))
        shutil.copytree(self.folder, self.copied, copy_function=copied_if_there, dirs_exist_ok=True)

    def answers(self) -> bytes:
        return self.local.ask("/api/export/labels.csv").body

    @rule(how=st.sampled_from(["restart", "kill"]))
    def end(self, how: str) -> None:
        self.happened[how] += 1
        before = self.answers()
        if how == "kill":
            self.copy()
        self.end_and_open(self.folder if how == "restart" else self.copied)
        assert max(shifts(before, self.answers()), default=0) < ROUNDING

    # --- after each of them ---

    @invariant()
    def same(self) -> None:
        if not hasattr(self, "local"):
            return
        found = self.local.ask("/api/classes").json
        classes = {each["name"]: tuple(shot["node"] for shot in each["support"]) for each in found["classes"]}
        assert list(classes.items()) == list(self.model.classes.items())
        said = {each["name"]: each["description"] for each in found["classes"] if each["description"] is not None}
        assert said == self.model.descriptions
        assert found["version"] == self.version
        assert self.version.split("-")[0] == str(self.changes)
        network = self.local.service.now.network
        data = network.data
        assert [data.node_name(i) for i in range(data.graph.n)] == list(self.model.nodes)
        assert edges(data, self.model.directed) == self.model.edges
        assert rows(data) == [node.x for node in self.model.nodes.values()]
        assert [network.known(i) for i in range(data.graph.n)] == [node.label for node in self.model.nodes.values()]
        no = {each["name"]: set(each["rejected"]) for each in found["classes"]}
        assert no == {name: {n for (c, n), v in self.model.verdicts.items() if c == name and not v[0]} for name in no}
        assert sum(each["answers"] for each in found["classes"]) == len(self.model.verdicts)
        answer = self.local.ask("/api/journal?limit=1")
        assert answer.status == 200, answer.body
        journal = answer.json
        ways = (journal["total"], journal["undo"], journal["redo"])
        assert ways == (self.total, bool(self.before), bool(self.undone))
        assert not list(self.folder.glob("*.unusable*"))


@pytest.fixture(scope="module")
def networks() -> Sequence[Network]:
    return of_tables(), of_numbers()


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder in memory where there is one: thousands of files are written and synced."""
    place = Path("/dev/shm")  # noqa: S108
    with tempfile.TemporaryDirectory(dir=place if place.is_dir() else None, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@sizes(40, 10_000, 100_000)
def test_the_service_is_where_its_model_is(
    networks: Sequence[Network], memory: Path, count: int, monkeypatch: pytest.MonkeyPatch, figure: Figure
) -> None:
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=FlawedConnection))
    monkeypatch.setattr(Comparison, "networks", networks, raising=False)
    monkeypatch.setattr(Comparison, "home", memory, raising=False)
    monkeypatch.setattr(Comparison, "service", Service(rules(TOKEN, "127.0.0.1", PORT)), raising=False)
    monkeypatch.setattr(Comparison, "happened", Counter())
    run_state_machine_as_test(
        Comparison,
        settings=settings(
            max_examples=count,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    found = Comparison.happened
    told = f"{found['sequences']:,} sequences: {found['kept']:,} changes kept, {found['refused']:,} refused, "
    told += f"{found['fail']:,} with a failing disk, {found['kill']:,} kills, {found['restart']:,} restarts"
    figure("service.model", f"{told}: no difference")
