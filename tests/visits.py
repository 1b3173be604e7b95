"""A visit to the page in Chromium: what a person does there, and what the page asked for and complained of."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import pytest

from service import Running

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--no-sandbox",  # root has no namespace of its own to give away
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
]
DESKTOP, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 740}


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser; the test is skipped where there is none, unless that is what the tests are run for."""
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        sync_playwright = None
    missing = "playwright" if sync_playwright is None else "" if CHROMIUM else "chromium"
    if missing:
        reason = f"the page is not tested: no {missing} (apt-get install chromium; pip install -e '.[dev]')"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield running
        running.close()


@dataclass
class Visit:
    """A page that is open."""

    server: Running
    page: Any
    asked: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def open(self) -> None:
        self.page.goto(f"{self.server.url}/?token={self.server.token}")
        self.settled()
        assert "token" not in self.page.url, "the token stays out of sight"

    def settled(self) -> None:
        """What was pressed is taken up, which takes a busy machine a moment, and done."""
        self.page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
        self.page.locator("body[aria-busy=false]").wait_for()

    def button(self, name: str) -> Any:
        return self.page.get_by_role("button", name=name, exact=True)

    def press(self, name: str) -> None:
        self.button(name).click()
        self.settled()

    def key(self, letter: str) -> None:
        self.page.keyboard.press(letter)
        self.settled()

    def view(self, name: str) -> None:
        self.page.get_by_role("tab", name=name, exact=True).click()
        self.settled()

    def look(self, node: str) -> None:
        if self.page.locator("#tab-find").is_visible():
            self.view("Find")
        box = self.page.get_by_role("combobox").first
        box.fill(node)
        self.page.get_by_role("option").filter(has_text=node).first.wait_for()
        box.press("Enter")
        self.page.get_by_role("heading", name=node, exact=True).wait_for()
        self.settled()

    def start(self, name: str, node: str) -> None:
        """Start a class with a node."""
        self.look(node)
        if self.button(f"Start a class with {node}").count():
            self.button(f"Start a class with {node}").click()
        self.page.get_by_label("Start a class with it").fill(name)
        self.press("Start")
        self.press(f"Stop looking at {node}")

    def text(self, selector: str) -> str:
        return str(self.page.locator(selector).inner_text())

    def fits(self) -> bool:
        """Whether nothing is wider than the screen."""
        return bool(self.page.evaluate("document.documentElement.scrollWidth <= innerWidth"))

    def fine(self) -> None:
        assert self.errors == []
        assert [url for url in self.asked if not url.startswith((self.server.url, f"blob:{self.server.url}"))] == []


Visits = Callable[..., Visit]


@contextmanager
def visits(browser: Any) -> Iterator[Visits]:
    """Opens pages, each with its own cookies, after forgetting all classes."""
    contexts = []

    def opened(server: Running, viewport: dict[str, int] = DESKTOP, **options: Any) -> Visit:
        for known in server.ask("/api/classes").json["classes"]:
            server.ask(address(known["name"]), method="DELETE")
        context = browser.new_context(viewport=viewport, reduced_motion="reduce", **options)
        context.set_default_timeout(60_000)
        contexts.append(context)
        page = context.new_page()
        seen = Visit(server, page)
        page.on("request", lambda request: seen.asked.append(request.url))
        page.on("pageerror", lambda error: seen.errors.append(str(error)))
        page.on("console", lambda said: seen.errors.append(said.text) if said.type == "error" else None)
        seen.open()
        return seen

    yield opened
    for context in contexts:
        context.close()


def address(name: str) -> str:
    return f"/api/classes/{quote(name, safe='')}"
