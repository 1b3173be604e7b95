"""No answer given on the page is lost: offline, when the service ends, when the tab is closed or reloaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fewnode.dataset import Dataset
from service import Running, serving
from sizes import until
from visits import Visit, Visits, address, chromium, visits

ANSWERS = "**/api/answers"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


@pytest.fixture
def visit(browser: Any) -> Iterator[Visits]:
    with visits(browser) as opened:
        yield opened


@pytest.fixture
def judging(visit: Visits, server: Running, planted: Dataset) -> Callable[[Running], Visit]:
    """A page that asks about a class of one example."""

    def opened(service: Running = server) -> Visit:
        seen = visit(service)
        service.ask(address("mine"), {"support": [planted.node_name(0)]}, "PUT")
        seen.page.reload()
        seen.page.locator("#question").wait_for()
        seen.settled()
        return seen

    return opened


def rejected(server: Running) -> list[str]:
    return sorted(server.ask(address("mine")).json["rejected"])


def say_no(seen: Visit, times: int) -> list[str]:
    """Say no to the next questions, without waiting for the service."""
    asked = list[str]()
    for _ in range(times):
        seen.page.wait_for_function(
            "(last) => ![null, undefined, last].includes(document.querySelector('#question .link')?.textContent)",
            arg=asked[-1] if asked else "",
        )
        asked.append(seen.page.locator("#question .link").inner_text())
        seen.page.keyboard.press("n")
    return sorted(asked)


def changes(server: Running) -> int:
    return int(server.ask("/api/journal").json["total"])


def test_answers_given_offline_are_sent_when_the_service_is_back(judging: Any, server: Running) -> None:
    seen, before = judging(), changes(server)
    seen.page.context.set_offline(True)
    asked = say_no(seen, 3)
    seen.page.get_by_text("3 unsaved").wait_for()
    assert rejected(server) == []
    seen.page.context.set_offline(False)
    until(lambda: rejected(server) == asked)
    seen.page.get_by_text("unsaved").wait_for(state="detached")
    assert changes(server) == before + 3, "each counts once"


def test_answers_outlive_the_service(judging: Any, run_dir: Path, tmp_path: Path) -> None:
    """SIGTERM between answers; they are sent to the next service, and those that the first one kept count once."""
    kept = tmp_path / "state.sqlite"
    with serving(run_dir, "--state", kept) as first:
        seen = judging(first)
        before, port = changes(first), first.port
        asked = say_no(seen, 2)
        first.process.terminate()
        asked += say_no(seen, 2)
        first.process.wait(60)
    with serving(run_dir, "--state", kept, "--port", port) as again:
        until(lambda: rejected(again) == sorted(asked))
        seen.page.get_by_text("unsaved").wait_for(state="detached")
        assert changes(again) == before + 4


def test_a_tab_that_is_closed_loses_nothing(judging: Any, server: Running) -> None:
    seen = judging()
    before, context = changes(server), seen.page.context
    asked = say_no(seen, 5)
    seen.page.close()
    page = context.new_page()
    page.goto(seen.server.url)
    page.locator("#question").wait_for()
    until(lambda: rejected(server) == asked)
    assert changes(server) == before + 5


def test_a_reload_sends_what_could_not_be_sent(judging: Any, server: Running) -> None:
    """A page with unsaved answers warns before it goes, and goes on with them when it is there again."""
    seen = judging()
    warned = list[str]()
    seen.page.on("dialog", lambda dialog: (warned.append(dialog.type), dialog.accept()))
    seen.page.route(ANSWERS, lambda route: route.abort())
    asked = say_no(seen, 2)
    seen.page.get_by_text("2 unsaved").wait_for()
    seen.page.reload()
    assert warned == ["beforeunload"]
    seen.page.unroute(ANSWERS)
    until(lambda: rejected(server) == asked)


def test_a_question_whose_answer_is_refused_comes_back(judging: Any, server: Running) -> None:
    seen = judging()
    refusal = {"status": 422, "json": {"error": "that is not possible", "hint": "say something else"}}
    seen.page.route(ANSWERS, lambda route: route.fulfill(**refusal), times=1)
    (asked,) = say_no(seen, 1)
    seen.page.locator("#alert").get_by_text("that is not possible").wait_for()
    assert seen.page.locator("#question .link").inner_text() == asked
    assert rejected(server) == []
