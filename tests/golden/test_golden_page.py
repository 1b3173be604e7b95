"""The page in Chromium, as far as any page of this service must go: point, name, judge, take back, keep."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from served import TOKEN, Served, served, small_network

from visits import chromium

SERIOUS = ("serious", "critical")
VIEWS = ("Judge", "List", "Map", "New nodes", "History")


@pytest.fixture(name="service", scope="module")
def _service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("page")
    with served("--data", small_network(folder), "--state", folder / "state.sqlite") as service:
        yield service


@pytest.fixture(name="page")
def _page(service: Served) -> Iterator[Any]:
    """A page that has complained of nothing, and has asked nobody else."""
    with chromium() as browser:
        page = browser.new_page(reduced_motion="reduce")
        page.set_default_timeout(60_000)
        asked, errors = list[str](), list[str]()
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
        page.goto(f"{service.url}/?token={TOKEN}")
        settled(page)
        assert "token" not in page.url
        yield page
        assert errors == []
        assert [url for url in asked if not url.startswith((service.url, f"blob:{service.url}"))] == []


def settled(page: Any) -> None:
    page.locator("body[aria-busy=false]").wait_for()


def press(page: Any, key: str) -> None:
    page.keyboard.press(key)
    settled(page)


def view(page: Any, name: str) -> None:
    page.get_by_role("tab", name=name, exact=True).click()
    settled(page)


def answers(service: Served) -> list[str]:
    return service.text("/api/export/support.csv").splitlines()[1:]


def violations(page: Any) -> list[str]:
    """What axe finds serious."""
    page.evaluate(Path(pytest.importorskip("axe_playwright_python").__file__).with_name("axe.min.js").read_text())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    return [f"{each['id']}: {each['nodes'][0]['html']}" for each in found if each["impact"] in SERIOUS]


def test_from_a_first_example_to_a_file(service: Served, page: Any) -> None:
    search = page.get_by_role("combobox").first
    search.fill("vpn-0")
    page.get_by_role("option").filter(has_text="vpn-0").first.wait_for()
    search.press("Enter")
    page.get_by_role("heading", name="vpn-0", exact=True).wait_for()
    page.get_by_label("Start a class with it").fill("vpn")
    page.get_by_role("button", name="Start", exact=True).click()
    settled(page)
    assert answers(service) == ["vpn-0,vpn"]
    page.keyboard.press("Escape")
    view(page, "Judge")
    for count, key in enumerate("ynny", start=2):
        press(page, key)
        assert len(answers(service)) == count
    kept = answers(service)
    assert sorted(line.rpartition(",")[2] for line in kept) == ["no", "no", "yes", "yes", "yes"]
    press(page, "u")
    assert len(answers(service)) == 4
    press(page, "r")
    assert answers(service) == kept
    view(page, "List")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download claims.csv", exact=True).click()
    saved, told = Path(download.value.path()).read_text(), service.text("/api/export/claims.csv")
    assert [line.split(",")[:4] for line in saved.splitlines()] == [line.split(",")[:4] for line in told.splitlines()]
    page.reload()
    settled(page)
    assert page.get_by_role("tab", name="List", exact=True).get_attribute("aria-selected") == "true"
    assert page.get_by_text("vpn", exact=True).count() > 0
    serious = {}
    for name in VIEWS:
        view(page, name)
        serious[name] = violations(page)
    assert not any(serious.values()), serious
    assert answers(service) == kept
