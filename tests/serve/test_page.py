"""The page in a real browser, Debian's Chromium, against a real service: what a visitor does, and what may go wrong."""

from __future__ import annotations

import asyncio
import csv
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
import scipy.sparse as sp

from fewnode.dataset import ClassSplit, Dataset
from fewnode.definitions import read_support
from fewnode.graph import Graph
from fewnode.io import save_dataset
from fewnode.serve.app import Service
from fewnode.serve.auth import rules
from graphs import planted_kinds
from service import TOKEN, Running, save_run, serving, started
from service_networks import texts

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--no-sandbox",  # root has no namespace of its own to give away
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESKTOP, PHONE = {"width": 1280, "height": 800}, {"width": 360, "height": 740}
BYTES, SECONDS = 300_000, 1.0
HOSTILE = "<img src=x onerror=document.title='fired'>\"'&</script>"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
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
    """A page that is open, and all that it asked for and complained about."""

    server: Running
    page: Any
    asked: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def open(self) -> None:
        self.page.goto(f"{self.server.url}/?token={self.server.token}")
        self.settled()
        assert self.page.url == f"{self.server.url}/", "the token stays out of sight"

    def settled(self) -> None:
        self.page.locator("body[aria-busy=false]").wait_for()

    def button(self, name: str) -> Any:
        return self.page.get_by_role("button", name=name, exact=True)

    def press(self, name: str) -> None:
        self.button(name).click()
        self.settled()

    def look(self, node: str) -> None:
        box = self.page.get_by_role("combobox")
        box.fill(node)
        self.page.get_by_role("option").filter(has_text=node).first.wait_for()
        box.press("Enter")
        self.page.get_by_role("heading", name=node, exact=True).wait_for()
        self.settled()

    def start(self, name: str, node: str) -> None:
        self.look(node)
        if self.button(f"Start a class with {node}").count():
            self.button(f"Start a class with {node}").click()
        self.page.get_by_label("Start a class with it").fill(name)
        self.press("Start")

    def text(self, selector: str) -> str:
        return str(self.page.locator(selector).inner_text())

    def fine(self) -> None:
        assert self.errors == []
        assert [url for url in self.asked if not url.startswith((self.server.url, f"blob:{self.server.url}"))] == []


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Visit]]:
    """Opens pages, each with its own cookies, after forgetting all classes."""
    contexts = []

    def opened(server: Running, viewport: dict[str, int] = DESKTOP, **options: Any) -> Visit:
        for known in server.ask("/api/classes").json["classes"]:
            server.ask(address(known["name"]), method="DELETE")
        context = browser.new_context(viewport=viewport, reduced_motion="reduce", **options)
        context.set_default_timeout(20_000)
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


def transferred(page: Any) -> int:
    """Bytes that came over the wire since the page was opened, headers included."""
    kinds = "['navigation', 'resource'].flatMap((kind) => performance.getEntriesByType(kind))"
    return int(page.evaluate(f"{kinds}.reduce((sum, entry) => sum + entry.transferSize, 0)"))


def address(name: str) -> str:
    return f"/api/classes/{quote(name, safe='')}"


def members(data: Dataset, class_name: str) -> list[str]:
    return [data.node_name(int(i)) for i in np.flatnonzero(data.y == data.class_names.index(class_name))]


def poor_start(server: Running, *pools: list[str]) -> list[str]:
    """One node of each class, of ten tries the one that tells least: there must be something to learn."""

    def right(i: int) -> int:
        support = {str(c): [pool[i]] for c, pool in enumerate(pools)}
        body = {"nodes": [node for pool in pools for node in pool], "support": support, "explain": False}
        found = iter(server.ask("/api/classify", body).json["results"])
        return sum(next(found)["class"] == str(c) for c, pool in enumerate(pools) for _ in pool)

    worst = min(range(10), key=right)
    return [pool[worst] for pool in pools]


def test_the_page_is_there_before_the_model(visit: Callable[..., Visit], server: Running) -> None:
    service = Service(rules(TOKEN, "127.0.0.1", 80))

    def status(path: str) -> int:
        headers = [(b"host", b"127.0.0.1"), (b"authorization", f"Bearer {TOKEN}".encode())]
        scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": headers}
        sent: list[Any] = []
        given = [{"type": "http.request", "body": b"", "more_body": False}]

        async def receive() -> Any:
            if not given:
                await asyncio.sleep(3600)
            return given.pop()

        async def send(message: Any) -> None:
            sent.append(message)

        with ThreadPoolExecutor(1) as thread:  # this one has the browser's event loop
            thread.submit(asyncio.run, service.app(scope, receive, send)).result()
        return int(sent[0]["status"])

    assert [status(path) for path in ("/", "/static/page.js", "/api/model")] == [200, 200, 503]
    seen = visit(server)
    seen.page.route("**/api/model", lambda route: route.fulfill(status=503, json={"error": "loading"}), times=1)
    seen.page.reload()
    seen.page.locator("#alert").get_by_text("The service is not ready.").wait_for()
    seen.page.locator("#alert").wait_for(state="hidden")
    seen.page.get_by_role("button", name="Try it").wait_for()


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_whole_story(
    visit: Callable[..., Visit], server: Running, planted: Dataset, viewport: dict[str, int], tmp_path: Path
) -> None:
    seen = visit(server, viewport)
    page = seen.page
    assert [item.inner_text().split()[0] for item in page.locator("#story li").all()] == ["Point.", "Name.", "Watch."]

    one, other = poor_start(server, members(planted, "class k"), members(planted, "class l"))
    box = page.get_by_role("combobox")
    box.press_sequentially("node-1")
    page.get_by_role("option").first.wait_for()
    box.press("ArrowDown")
    box.press("ArrowDown")
    chosen = page.locator("[role=option][aria-selected=true] .name").inner_text()
    box.press("Enter")
    page.get_by_role("heading", name=chosen, exact=True).wait_for()
    seen.settled()
    assert seen.text("#node-title") == chosen
    assert page.locator("#node .words span").count() > 0
    assert page.locator("#node .neighbours [role=button]").count() == int(planted.graph.degree[planted.node(chosen)])
    assert page.evaluate("document.activeElement.id") == "node-title"
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "search"

    seen.start("class k", one)
    assert "More like these" in seen.text("#classes")
    page.get_by_label("A new class").fill("class l")
    page.get_by_label("A new class").press("Enter")
    assert "waits for its first node" in seen.text("#classes")
    seen.look(other)
    seen.press(f"Add {other} to class l")
    claims = page.locator(".claims li")
    assert claims.count() > 3
    assert "%" in claims.first.inner_text()
    assert "nearest:" in claims.first.inner_text()
    assert "β" in claims.first.inner_text()
    registered = {c["name"]: c["support"] for c in server.ask("/api/classes").json["classes"]}
    assert {name: [s["node"] for s in given] for name, given in registered.items()} == {
        "class k": [one],
        "class l": [other],
    }

    asked = page.locator(".question .big .link").inner_text()
    seen.press("None of these")
    assert page.locator(".question .big .link").inner_text() != asked
    seen.press("Let the data answer 5")
    assert len(page.locator(".curve circle").all()) >= 4
    checked = server.ask("/api/progress", {"threshold": 0.5}).json
    share = checked["precision"]
    assert share["value"] > 0.5
    assert float(seen.text(".figure").rstrip(" %")) == round(100 * share["value"])
    low, high = (round(100 * share[end]) for end in ("low", "high"))
    said = f"have a known label; {round(100 * share['value'])} % of those are right ({low}–{high} %)"
    assert f"Of {checked['claimed']} nodes claimed, {checked['checked']} {said}" in seen.text(".growth")
    assert "Compared with the data’s classes of the same names" in seen.text(".growth")
    claimed = claims.first.locator(".name").inner_text()
    owner = page.locator(".class.active h3 .name").inner_text()
    seen.press(f"Yes, {claimed} is in {owner}")
    assert claimed in [s["node"] for s in server.ask(address(owner)).json["support"]]

    with page.expect_download() as download:
        seen.press("Download support.csv")
    download.value.save_as(tmp_path / "support.csv")
    nodes, labels, _ = read_support(tmp_path / "support.csv", planted)
    assert len(nodes) == 8
    assert set(labels) == {"class k", "class l"}
    with page.expect_download() as download:
        seen.press("Download labels.csv")
    download.value.save_as(tmp_path / "labels.csv")
    rows = {row["node"]: row for row in csv.DictReader((tmp_path / "labels.csv").read_text().splitlines())}
    assert len(rows) == planted.graph.n
    for claim in claims.all():
        name, probability = claim.locator(".name").inner_text(), claim.locator(".num").inner_text()
        assert rows[name]["label"] == owner
        assert f"{100 * float(rows[name]['probability']):.1f} %" in (probability, probability.replace(" %", ".0 %"))

    seen.press(f"Delete {owner}")
    assert page.locator("section.class").count() == 1
    seen.press("Undo")
    assert page.locator("section.class").count() == 2
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
    seen.fine()


@pytest.fixture(scope="module")
def texts_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A network of texts, without any training."""
    folder = tmp_path_factory.mktemp("texts")
    save_dataset(texts(), folder / "data")
    command = [sys.executable, "-m", "fewnode", "serve", "--data", str(folder / "data"), "--port", "0"]
    with started([*command, "--token", TOKEN, "--state", str(folder / "state.sqlite")]) as running:
        yield running


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_sentence_makes_a_class(visit: Callable[..., Visit], texts_server: Running, viewport: dict[str, int]) -> None:
    """It appears when typing ends; who types on loses nothing; what is not understood is told under the box."""
    seen = visit(texts_server, viewport)
    page = seen.page

    def kept(name: str = "letters") -> Any:
        return texts_server.ask(address(name)).json.get("description")

    assert "without training" in seen.text("#dataset")
    new = page.get_by_label("What it is, in a sentence (if you like)")
    new.press_sequentially("filter spam")
    page.locator(".naming").get_by_text("Name the class, and it appears on the map.").wait_for()
    page.get_by_label("A new class").fill("letters")
    new.press_sequentially(" of 1998")
    page.locator("section.class").wait_for()
    own = page.get_by_label("What it is, in a sentence", exact=True)
    page.keyboard.type(" frobnicated")
    until(lambda: kept() == "filter spam of 1998 frobnicated")
    seen.settled()
    assert page.evaluate("document.activeElement.id") == "class-sentence"
    assert own.input_value() == "filter spam of 1998 frobnicated"
    assert new.input_value() == page.get_by_label("A new class").input_value() == ""
    told = seen.text("#class-sentence-note")
    assert "'frobnicated' is not a word of this network" in told
    assert "Numbers in a description are not used: 1998." in told
    assert own.get_attribute("aria-describedby") == "class-sentence-note"
    assert page.locator(".claims li").first.inner_text().startswith("mail-")
    assert "Shares with the description of letters" in page.locator(".claims li").first.inner_text()
    assert seen.errors == []

    own.fill("qqqq")
    page.locator("#class-sentence-note").get_by_text("no word of it").wait_for()
    assert kept() == "filter spam of 1998 frobnicated"
    assert [error for error in seen.errors if "422" not in error] == []
    seen.errors.clear()
    own.fill("filter spam")
    until(lambda: kept() == "filter spam")
    seen.settled()

    seen.look("mail-3")
    assert "Shares with the description of letters" in seen.text("#node .why")
    seen.press("Add mail-3 to letters")
    assert "its description" in seen.text(".chips")
    own.fill("")
    until(lambda: kept() is None)
    seen.settled()
    own.fill("filter spam")
    until(lambda: kept() == "filter spam")
    seen.settled()
    seen.press("Take mail-3 out of letters")
    assert "Its description alone stands for it" in seen.text("#classes")
    seen.press("Delete letters")
    seen.press("Undo")
    assert kept() == "filter spam"

    page.get_by_label("A new class").fill("vpn")
    page.get_by_label("A new class").press("Enter")
    assert "waits for a node or a sentence" in seen.text("#classes")
    seen.press("Let its name speak")
    assert kept("vpn") == ""
    with page.expect_download() as download:
        seen.press("Download classes.csv")
    assert Path(download.value.path()).read_text() == "class,description\nletters,filter spam\nvpn,\n"
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
    seen.fine()


def test_a_class_that_the_data_has_no_name_for(visit: Callable[..., Visit], planted: Dataset, tmp_path: Path) -> None:
    """What cannot be checked is not claimed to be right; and what is judged is said to be judged so."""
    y = planted.y.copy()
    y[np.isin(y, [planted.class_names.index(name) for name in ("class k", "class l")])] = -1
    with serving(save_run(replace(planted, y=y), tmp_path, "gpn-plus")) as server:
        seen = visit(server)
        k, m = members(planted, "class k"), members(planted, "class m")
        seen.start("mine", k[0])
        assert "none has a label that could tell whether it is right" in seen.text(".growth")
        assert seen.page.locator(".figure").count() == 0
        seen.start("others", m[0])
        assert "mine with nothing: the data has no name for it; others with the data’s class m" in seen.text(".growth")
        few = seen.text(".growth")
        seen.page.get_by_label("Claim a node from").fill("0.05")
        seen.settled()
        assert "Claim a node from 5 % on" in seen.text("#tools")
        seen.page.get_by_label("Allow “none of these”").uncheck()
        seen.settled()
        assert f"Of {planted.graph.n - 2} nodes claimed" in seen.text(".growth") != few
        assert "Every node is given to one of the classes" in seen.text("#classes")
        seen.fine()


def test_a_method_that_cannot_tell_says_so(visit: Callable[..., Visit], planted: Dataset, tmp_path: Path) -> None:
    with serving(save_run(planted, tmp_path, "sgc")) as server:
        seen = visit(server)
        assert "SGC" in seen.text("#dataset")
        seen.start("mine", members(planted, "class k")[0])
        assert "SGC cannot tell whether a node is in none of the classes" in seen.text("#classes")
        assert seen.page.locator(".claims li").count() == 0
        assert "Nothing is claimed yet" in seen.text(".growth")
        seen.start("others", members(planted, "class l")[0])
        assert "Every node is given to one of the classes, whether or not it is in any of them" in seen.text("#classes")
        assert f"Of {planted.graph.n - 2} nodes claimed" in seen.text(".growth")
        seen.fine()


def test_one_button_shows_the_effect_and_prototypes_move(visit: Callable[..., Visit], server: Running) -> None:
    seen = visit(server)
    seen.press("Try it")
    assert seen.page.locator("section.class").count() == 3
    assert "known label" in seen.text(".growth")
    before = seen.page.locator("canvas").screenshot()
    assert seen.page.locator("canvas").screenshot() == before, "asked for reduced motion, yet it moves"
    seen.press("Let the data answer 5")
    assert seen.page.locator("canvas").screenshot() != before
    seen.fine()


def test_a_name_is_text_and_never_markup(visit: Callable[..., Visit], server: Running, planted: Dataset) -> None:
    seen = visit(server, PHONE)
    seen.start(HOSTILE, members(planted, "class k")[0])
    seen.start("plain", members(planted, "class l")[0])
    seen.look(members(planted, "class m")[0])
    seen.press(HOSTILE + " claims " + seen.text("section.class:first-of-type h3 .small").split()[-1])
    assert HOSTILE in seen.text("#classes")
    assert seen.page.locator("img").count() == 0
    assert seen.page.title() == "fewnode · planted"
    seen.press(f"Delete {HOSTILE}")
    assert seen.text("#alert").startswith(f"{HOSTILE} is deleted.")
    seen.fine()


def test_a_reader_of_the_screen_gets_names_and_contrast(
    visit: Callable[..., Visit], server: Running, planted: Dataset
) -> None:
    for scheme in ("light", "dark"):
        seen = visit(server, color_scheme=scheme)
        seen.press("Try it")
        seen.look(members(planted, "class k")[0])
        tree = seen.page.context.new_cdp_session(seen.page).send("Accessibility.getFullAXTree")["nodes"]
        controls = {"button", "checkbox", "combobox", "searchbox", "textbox", "link", "listbox", "option"}
        found = [n for n in tree if not n["ignored"] and n["role"]["value"] in controls]
        assert len(found) > 20
        assert [n["role"]["value"] for n in found if not n["name"]["value"].strip()] == []
        poor = {text: ratio for text, ratio in seen.page.evaluate(CONTRAST) if ratio < 4.5}
        assert poor == {}
        ratios = seen.page.evaluate(PALETTE)
        assert len(ratios) == 14
        assert min(ratios) >= 3, "a mark is a graphic: 3 to 1 at least"
        seen.fine()


LUMINANCE = """
const channels = (css) => css.match(/[\\d.]+/g).map(Number);
const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
  .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
  .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const ratio = (a, b) => {
  const [low, high] = [light(channels(a)), light(channels(b))].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
};
"""
CONTRAST = f"""() => {{ {LUMINANCE}
  const ground = (e) => {{
    for (; e; e = e.parentElement) {{
      const c = getComputedStyle(e).backgroundColor;
      if ((channels(c)[3] ?? 1) > 0.99) return c;
    }}
    return "rgb(255, 255, 255)";
  }};
  const own = (e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
  return [...document.body.querySelectorAll("*")].filter((e) => own(e) && e.checkVisibility() && !e.closest("svg"))
    .map((e) => [e.textContent.slice(0, 40), ratio(getComputedStyle(e).color, ground(e))]);
}}"""
PALETTE = f"""() => {{ {LUMINANCE}
  const style = getComputedStyle(document.documentElement);
  const rgb = (name) => style.getPropertyValue("--" + name).trim().match(/\\w\\w/g).map((h) => parseInt(h, 16)).join();
  const marks = ["c0", "c1", "c2", "c3", "c4", "c5", "focus"];
  return marks.flatMap((c) => ["paper", "field"].map((g) => ratio(rgb(c), rgb(g))));
}}"""


def test_a_service_that_goes_and_comes_back(
    visit: Callable[..., Visit], run_dir: Path, planted: Dataset, tmp_path: Path
) -> None:
    k, m = members(planted, "class k"), members(planted, "class l")
    kept = tmp_path / "state.sqlite"
    with serving(run_dir, "--state", kept) as first:
        seen = visit(first)
        page = seen.page
        seen.start("class k", k[0])
        seen.start("class l", m[0])
        seen.fine()

        first.ask("/api/classes/elsewhere", {"support": [k[1]]}, "PUT")
        seen.look(k[2])
        seen.press(f"Add {k[2]} to class k")
        assert "Someone else changed the classes" in seen.text("#alert")
        assert "elsewhere" in seen.text("#classes"), "the new state is shown"
        assert [s["node"] for s in first.ask(address("class k")).json["support"]] == k[:1]
        seen.press(f"Add {k[2]} to class k")
        assert k[2] in seen.text("#classes")

        busy = {"status": 429, "headers": {"Retry-After": "1"}, "json": {"error": "too many", "hint": "later"}}
        page.route("**/api/progress", lambda route: route.fulfill(**busy), times=1)
        page.get_by_role("button", name=f"Take {k[2]} out of class k").click()
        page.get_by_text("The service is busy").wait_for()
        seen.settled()
        assert "of 360 nodes" in seen.text("#status")

        port = first.port
        assert first.stop() == 0
        page.get_by_role("button", name="Yes, ", exact=False).first.click()
        page.locator("#alert").get_by_text("The service does not answer.").wait_for()
        assert "Start it again with fewnode serve" in seen.text("#alert")
    with serving(run_dir, "--state", kept, "--port", port) as again:
        page.locator("#alert").wait_for(state="hidden")
        seen.settled()
        assert [name.inner_text() for name in page.locator("section.class h3 .name").all()] == [
            "class k",
            "class l",
            "elsewhere",
        ]
        page.reload()
        seen.settled()
        assert page.locator("section.class").count() == 3
        page.context.clear_cookies()
        seen.press("Delete class k")
        assert "This page's key is no longer valid." in seen.text("#alert")
        assert len(again.ask("/api/classes").json["classes"]) == 3


def large(n: int = 62_000, classes: int = 12, size: int = 60) -> Dataset:
    """As large as Debian: mostly nodes of no known class, some words each."""
    rng = np.random.default_rng(0)
    y = np.full(n, -1)
    y[: classes * size] = np.repeat(np.arange(classes), size)
    edges = np.stack([np.arange(n).repeat(2), rng.integers(0, n, 2 * n)])
    word = np.concatenate([rng.integers(0, 400, (n, 5)), np.where(y < 0, 0, 400 + y)[:, None]], axis=1)
    x = sp.csr_array((np.ones(word.size, np.float32), (np.arange(n).repeat(6), word.ravel())), (n, 400 + classes))
    split = ClassSplit(tuple(range(4)), tuple(range(4, 8)), tuple(range(8, classes)))
    names = tuple(f"kind {c}" for c in range(classes))
    return Dataset(Graph.from_edges(edges, n, x), y, split, names, tuple(f"a-node-{i}" for i in range(n)), name="large")


def test_62_000_nodes_within_its_budget(visit: Callable[..., Visit], tmp_path: Path) -> None:
    run = save_run(large(), tmp_path, episodes=3)
    with serving(run) as server:
        seen = visit(server)
        page = seen.page
        assert 50_000 < transferred(page) < BYTES
        page.add_init_script(
            "window.stuck = 0; new PerformanceObserver((list) => list.getEntries().forEach((entry) => "
            "(window.stuck = Math.max(window.stuck, entry.duration)))).observe({type: 'longtask', buffered: true})"
        )
        taken = []
        for _ in range(3):  # others may use the machine; the best of three is the page's own time
            page.reload()
            seen.settled()
            taken.append(page.evaluate("performance.getEntriesByName('ready')[0].startTime") / 1000)
        assert min(taken) < SECONDS, f"loads took {taken} s"
        seen.press("Try it")
        seen.look("a-node-61999")
        seen.press("Let the data answer 5")
        page.reload()
        seen.settled()
        assert transferred(page) < BYTES, "with classes, whose claims are listed"
        assert "of 62,000 nodes" in seen.text("#dataset") + seen.text("#map-note")
        assert page.evaluate("window.stuck") < 1000, "the page stops answering for longer than a second"
        seen.fine()


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE])
def test_kinds_of_edges_are_drawn_and_named(
    visit: Callable[..., Visit], viewport: dict[str, int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = planted_kinds()
    folder = tmp_path_factory.mktemp("kinds")
    with serving(save_run(data, folder, "gpn-plus"), "--state", folder / "state.sqlite") as server:
        seen = visit(server, viewport)
        of_class = members(data, "class k")
        server.ask(address("class k"), {"support": of_class[:3]}, "PUT")
        server.ask(address("class l"), {"support": members(data, "class l")[:3]}, "PUT")
        seen.page.reload()
        seen.settled()
        seen.look(of_class[5])
        about = server.ask(f"/api/nodes/{of_class[5]}").json["neighbours"]
        drawn = seen.page.locator("#node .neighbours svg[role=group] line.edge")
        assert drawn.count() == sum(len(near["edges"]) for near in about)
        arrows = [e for near in about for e in near["edges"] if e["way"] is not None]
        assert seen.page.locator("#node .neighbours polygon").count() == len(arrows) > 0
        assert {kind for kind in ("pays", "owns", "knows") if kind in seen.text(".legend")} == {
            e["kind"] for near in about for e in near["edges"]
        }
        assert "edges with others of class k:" in seen.text(".edges-why")
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
        seen.fine()
