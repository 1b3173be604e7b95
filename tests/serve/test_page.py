"""The page in a real browser, Debian's Chromium, against a real service: what a visitor does, and what may go wrong."""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from fewnode.dataset import ClassSplit, Dataset
from fewnode.formats.directory import save_dataset
from fewnode.graph import Graph
from fewnode.recognition.classes import read_support
from fewnode.service.access import rules
from fewnode.service.http import Service
from graphs import planted_kinds
from service import TOKEN, Forked, Running, save_run, serving, started
from service_networks import texts
from visits import DESKTOP, PHONE, Visit, Visits, address, chromium, visits

BYTES, REQUESTS = 350_000, 12
HOSTILE = "<img src=x onerror=document.title='fired'>\"'&</script>"
VIEWS = ("Judge", "List", "Map", "New nodes", "History")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


@pytest.fixture
def visit(browser: Any) -> Iterator[Visits]:
    with visits(browser) as opened:
        yield opened


def transferred(page: Any) -> int:
    """Bytes that came over the wire since the page was opened, headers included."""
    kinds = "['navigation', 'resource'].flatMap((kind) => performance.getEntriesByType(kind))"
    return int(page.evaluate(f"{kinds}.reduce((sum, entry) => sum + entry.transferSize, 0)"))


def members(data: Dataset, class_name: str) -> list[str]:
    return [data.node_name(int(i)) for i in np.flatnonzero(data.y == data.class_names.index(class_name))]


def saved(seen: Visit, name: str) -> bytes:
    with seen.page.expect_download() as download:
        seen.press(f"Download {name}")
    return Path(download.value.path()).read_bytes()


def said_of(server: Running, name: str) -> tuple[set[str], set[str]]:
    """Nodes that are in a class, and nodes that are not, as somebody said."""
    known = server.ask(address(name)).json
    return {each["node"] for each in known["support"]}, set(known["rejected"])


def test_the_page_is_there_before_the_model(visit: Visits, server: Running) -> None:
    service = Service(rules(TOKEN, "127.0.0.1", 80))

    def status(path: str) -> int:
        headers = [(b"host", b"127.0.0.1"), (b"authorization", f"Bearer {TOKEN}".encode())]
        scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": headers}
        scope |= {"scheme": "http", "server": ("127.0.0.1", 80)}
        scope |= {"server": ("127.0.0.1", 80)}
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
    loading = {"error": "the network is being made ready: embedding it", "hint": "come again"}
    seen.page.route("**/api/now", lambda route: route.fulfill(status=503, json=loading), times=1)
    seen.page.reload()
    seen.page.locator("#dataset").get_by_text("embedding it").wait_for()
    seen.page.get_by_role("button", name="Try it").wait_for()


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_from_a_first_example_to_a_list(
    visit: Visits, server: Running, planted: Dataset, viewport: dict[str, int], tmp_path: Path
) -> None:
    """One example, some answers by single keys, a list that is worked on in bulk, and files of it."""
    seen = visit(server, viewport)
    page, (one, *others) = seen.page, members(planted, "class k")
    assert [item.inner_text().split()[0] for item in page.locator("#story li").all()] == ["Point.", "Name.", "Judge."]
    seen.look(one)
    assert page.evaluate("document.activeElement.id") == "node-title"
    assert page.locator("#node .words span").count() > 0
    assert page.locator("#node .neighbours [role=button]").count() == int(planted.graph.degree[planted.node(one)])
    page.get_by_label("Start a class with it").fill("mine")
    seen.press("Start")
    page.keyboard.press("Escape")
    seen.view("Judge")

    answered: dict[str, str] = {}
    for _ in range(6):
        asked = page.locator("#question .link").inner_text()
        answered[asked] = "y" if asked in others else "n"
        seen.key(answered[asked])
        assert page.locator("#question .link").inner_text() != asked, "the next question comes by itself"
    yes = {one} | {node for node, said in answered.items() if said == "y"}
    no = set(answered) - yes
    assert said_of(server, "mine") == (yes, no)
    last = list(answered)[-1]
    seen.key("u")
    assert last not in set.union(*said_of(server, "mine"))
    seen.key("r")
    assert said_of(server, "mine") == (yes, no)
    skipped = page.locator("#question .link").inner_text()
    seen.key("s")
    assert page.locator("#question .link").inner_text() != skipped
    assert f"{last} is" in seen.text("#journal"), "the journal is in sight"
    judged = server.ask("/api/classify", {"nodes": [page.locator("#question .link").inner_text()]}).json
    likely = float(seen.text(".question").split("likely")[0].split()[-2])
    own = judged["results"][0]["probabilities"][judged["classes"].index("mine")]
    assert abs(likely - 100 * own) < 0.06, "as likely as it is after the last answer"

    seen.view("List")
    rows = page.locator("tbody tr")
    first = [row.locator(".name").inner_text() for row in rows.all()[:2]]
    assert not set(first) & set(answered)
    claimed = int(seen.text(".bulk").split()[0])
    page.get_by_label("Select all rows").check()
    assert seen.text(".bulk").startswith(f"{claimed} nodes selected"), "near-duplicates are selected with their row"
    seen.press("Clear")
    for node in first:
        page.get_by_label(f"Select {node}", exact=True).check()
    seen.press("Reject")
    assert set(first) <= said_of(server, "mine")[1]
    assert not set(first) & {row.locator(".name").inner_text() for row in rows.all()}
    seen.press("Undo")
    assert not set(first) & said_of(server, "mine")[1]
    seen.press("Node")
    names = [row.locator(".name").inner_text() for row in rows.all()]
    assert names == sorted(names)
    if not page.locator("#list-text").is_visible():
        page.get_by_text("Filters", exact=True).click()
    for ticked in ("Only unanswered", "Group near-duplicates"):
        page.get_by_label(ticked).uncheck()
        seen.settled()
    listed = [row.locator(".name").inner_text() for row in rows.all()]
    assert listed == sorted(listed)
    assert yes < set(listed)
    link = page.url
    page.goto("about:blank")
    page.goto(link)
    seen.settled()
    rows.first.wait_for()
    assert [row.locator(".name").inner_text() for row in rows.all()] == listed, "the link keeps order and filters"

    shown = {row.locator(".name").inner_text(): row.locator("td.num").first.inner_text() for row in rows.all()}
    table = list(csv.DictReader(io.StringIO(saved(seen, "claims.csv").decode())))
    chances = {row["node"]: float(row["probability"]) for row in table}
    for node, percent in shown.items():
        assert abs(100 * chances[node] - float(percent.rstrip(" %"))) < 0.06
    assert {row["threshold"] for row in table} == {"0.5"}
    page.get_by_text("More: classes and labels for fewnode predict").click()
    (tmp_path / "support.csv").write_bytes(saved(seen, "support.csv"))
    assert {planted.node_name(said.node) for said in read_support(tmp_path / "support.csv", planted) if said.yes} == yes
    seen.view("History")
    assert "mine" in seen.text(".entries")
    assert len(list(csv.DictReader(io.StringIO(saved(seen, "journal.csv").decode())))) >= 8

    link = page.url
    page.goto("about:blank")
    page.goto(link)
    seen.settled()
    assert page.locator("[aria-selected=true]").inner_text() == "History"
    assert seen.fits()
    seen.fine()


def test_what_to_trust_is_what_the_service_says(visit: Visits, server: Running, planted: Dataset) -> None:
    seen = visit(server)
    for name in ("class k", "class l"):
        server.ask(address(name), {"support": members(planted, name)[:3]}, "PUT")
    seen.page.reload()
    seen.settled()
    told = server.ask("/api/trust?mode=inductive&threshold=0.5").json["classes"]["class k"]
    seen.page.locator("#trust summary").click()
    panel = seen.text("#trust")
    assert f"{told['claimed']:,} claimed" in panel.replace("\n", " ")
    assert f"{round(100 * told['known']['precision']['value'])} %" in panel
    assert f"{told['reason']}." in panel.replace("\n", " ")
    seen.page.get_by_label("Claim a node from").fill("0.9")
    seen.settled()
    strict = server.ask("/api/trust?mode=inductive&threshold=0.9").json["classes"]["class k"]
    assert strict["claimed"] < told["claimed"]
    assert f"{strict['claimed']:,} claimed" in seen.text("#trust").replace("\n", " ")
    assert "threshold=0.9" in seen.page.url
    seen.fine()


def test_begin_anywhere(visit: Visits, server: Running, planted: Dataset) -> None:
    """Text, an attribute, what is near a node, a list and a lasso all lead to many nodes and one answer."""
    seen = visit(server)
    page, k, found = seen.page, members(planted, "class k"), seen.page.locator("#found .name")
    word = server.ask("/api/attributes?limit=1").json["attributes"][0]["name"]
    page.get_by_text("By an attribute’s value").click()
    page.get_by_label("Attribute", exact=True).first.fill(word)
    seen.press("Find")
    assert found.count() > 1
    seen.look(k[0])
    seen.press("nearest to it")
    assert found.count() > 1
    assert "Nearest to" in seen.text("#search-note")

    page.get_by_text("By a list, pasted or from a file").click()
    page.get_by_label("A node a line, or node,class").fill(f"{k[0]}\n{k[1]}\nnobody\n{k[1]}\n")
    seen.press("Read the list")
    assert "2 nodes selected" in seen.text("#selection")
    assert "nobody" in seen.text("#selection"), "a line that names no node is told"
    page.get_by_label("Start a class with them").fill("listed")
    page.locator("#selection").get_by_role("button", name="Start").click()
    seen.settled()
    assert said_of(server, "listed") == (set(k[:2]), set())

    seen.view("Map")
    seen.press("Lasso")
    box = page.locator("canvas.marks").bounding_box()
    corners = [(0.02, 0.02), (0.98, 0.02), (0.98, 0.98), (0.02, 0.98)]
    page.mouse.move(box["x"] + corners[0][0] * box["width"], box["y"] + corners[0][1] * box["height"])
    page.mouse.down()
    for x, y in corners[1:]:
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
    page.mouse.up()
    page.get_by_text("Drawn around on the map").wait_for()
    assert int(seen.text("#selection h3").split()[0]) > planted.graph.n // 2
    seen.fine()


def test_a_map_that_says_what_it_shows(visit: Visits, server: Running, planted: Dataset) -> None:
    """Names at the cursor, by keys too; a class keeps its colour when others go, and over a reload."""
    seen = visit(server)
    page = seen.page
    page.get_by_text(f"All {planted.graph.n} nodes").wait_for()
    canvas = page.locator("canvas.marks")
    canvas.focus()
    page.keyboard.press("ArrowRight")
    page.locator(".tip").get_by_text("node-").wait_for()
    name = seen.text(".tip").split()[0]
    page.keyboard.press("Enter")
    page.get_by_role("heading", name=name, exact=True).wait_for()
    seen.settled()
    for class_name in ("class k", "class l"):
        server.ask(address(class_name), {"support": members(planted, class_name)[:2]}, "PUT")
    page.reload()
    seen.settled()
    looks = "[...document.querySelectorAll('.class .mark')].map((m) => m.getAttribute('class') + m.innerHTML)"
    before = page.evaluate(looks)
    assert len(set(before)) == 2
    server.ask(address("class k"), method="DELETE")
    page.reload()
    seen.settled()
    assert page.evaluate(looks) == before[1:]
    seen.press("Undo")
    assert page.evaluate(looks) == before, "it is in its place again"
    seen.fine()


def test_two_fingers_zoom_the_map(visit: Visits, server: Running, planted: Dataset) -> None:
    seen = visit(server, PHONE, has_touch=True)
    page, fingers = seen.page, seen.page.context.new_cdp_session(seen.page)
    seen.view("Map")
    page.get_by_text(f"All {planted.graph.n} nodes").wait_for()
    canvas = page.locator("canvas.marks")

    def spread(*widths: float) -> None:
        """Two fingers around the middle, so far apart one after the other."""
        canvas.evaluate("(map) => map.scrollIntoView({block: 'center'})")
        box = canvas.bounding_box()
        for step, width in enumerate(widths):
            places = [box["x"] + (0.5 + side * width / 2) * box["width"] for side in (-1, 1)]
            points = [{"x": x, "y": box["y"] + box["height"] / 2, "id": i} for i, x in enumerate(places)]
            kind = "touchMove" if step else "touchStart"
            fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        fingers.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})

    def seen_nodes() -> int:
        seen.press("Select what is in view")
        return int(seen.text("#selection h3").split()[0])

    spread(0.1, 0.2, 0.4)
    assert 0 < seen_nodes() < planted.graph.n
    assert page.locator("#node-title").count() == 0, "lifted fingers choose no node"
    spread(0.8, 0.4, 0.1)
    assert seen_nodes() == planted.graph.n
    seen.fine()


@pytest.fixture(scope="module")
def texts_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A network of texts, without any training."""
    folder = tmp_path_factory.mktemp("texts")
    save_dataset(texts(), folder / "data")
    arguments = ["serve", "--data", str(folder / "data"), "--port", "0", "--token", TOKEN]
    with started(Forked([*arguments, "--state", str(folder / "state.sqlite")])) as running:
        yield running


def test_a_sentence_makes_a_class(visit: Visits, texts_server: Running) -> None:
    """By its button alone: who leaves the box has said nothing. What is not understood is told under the box."""
    seen = visit(texts_server)
    page = seen.page

    def kept(name: str = "letters") -> Any:
        return texts_server.ask(address(name)).json.get("description")

    assert "without training" in seen.text("#dataset")
    page.get_by_label("A new class").fill("letters")
    page.get_by_label("What the new class is, in a sentence").fill("filter spam of 1998 frobnicated")
    page.get_by_role("combobox").first.focus()
    seen.settled()
    assert texts_server.ask("/api/classes").json["classes"] == []
    seen.press("Start it")
    assert kept() == "filter spam of 1998 frobnicated"
    told = seen.text("#class-sentence-note")
    assert "'frobnicated' is not a word of this network" in told
    assert "Numbers in a description are not used: 1998." in told
    seen.view("List")
    assert page.locator("tbody .name").first.inner_text().startswith("mail-")
    assert seen.errors == []

    own = page.get_by_label("What letters is, in a sentence")
    own.fill("qqqq")
    seen.press("Keep the sentence")
    assert "no word of it" in seen.text("#class-sentence-note")
    assert (kept(), own.input_value()) == ("filter spam of 1998 frobnicated", "qqqq")
    assert [error for error in seen.errors if "422" not in error] == []
    seen.errors.clear()
    own.fill("filter spam")
    seen.press("Keep the sentence")
    assert kept() == "filter spam"
    seen.look("mail-3")
    seen.press("Yes: add mail-3 to letters")
    seen.press("Take mail-3 out of letters")
    assert "Its description alone stands for it" in seen.text("#classes")
    seen.press("Delete letters")
    assert page.locator("section.class").count() == 0
    seen.press("Undo")
    assert kept() == "filter spam"
    seen.fine()


def test_new_nodes_are_found_judged_and_reported(visit: Visits, texts_server: Running) -> None:
    """A form and pasted rows; a search that found nothing finds them; alerts name them; a wrong label is corrected."""
    seen = visit(texts_server)
    page = seen.page
    texts_server.ask(address("letters"), {"support": ["mail-1", "mail-2"]}, "PUT")
    page.reload()
    seen.settled()
    page.get_by_role("combobox").first.fill("my-letters")
    page.get_by_text("No node has that in its name or text.").wait_for()
    seen.view("New nodes")
    page.get_by_label("Name", exact=True).fill("my-letters")
    content = page.locator("#new form textarea").first
    content.fill("mail spam inbox filter")
    page.get_by_label("Its neighbours, with commas").fill("mail-1, mail-2")
    seen.press("Add and judge")
    assert "my-letters" in seen.text(".added")
    assert "letters" in seen.text(".added")
    assert page.locator("#found .name").first.inner_text() == "my-letters", "it was not there before, and is now"
    assert page.locator(".added .reasons").count() == 1
    pasted = page.get_by_label("Rows of a table with a heading", exact=False)
    heading = pasted.get_attribute("placeholder").split("\n")[0]
    cells = {"node": "pasted-one", "edges": ""}
    pasted.fill(f"{heading}\n{','.join(cells.get(name, 'mail spam inbox') for name in heading.split(','))}\n")
    seen.press("Add and judge them")
    assert "pasted-one" in seen.text(".added")

    seen.view("List")
    seen.press("Yesterday")
    assert "my-letters" in {cell.inner_text() for cell in page.locator("tbody .name").all()}
    seen.fine()


def test_a_class_that_the_data_has_no_name_for(visit: Visits, planted: Dataset, tmp_path: Path) -> None:
    """What cannot be checked is not claimed to be right."""
    y = planted.y.copy()
    y[np.isin(y, [planted.class_names.index(name) for name in ("class k", "class l")])] = -1
    with serving(save_run(replace(planted, y=y), tmp_path, episodes=30)) as server:
        seen = visit(server)
        seen.start("mine", members(planted, "class k")[0])
        assert "by the data’s labels" not in seen.text("#trust")
        seen.view("Judge")
        assert "nothing can be said yet" in seen.text("#trust")
        seen.start("others", members(planted, "class m")[0])
        if not seen.page.get_by_label("Allow “none of these”").is_visible():
            seen.page.locator("#trust summary").click()
        seen.page.get_by_label("Allow “none of these”").uncheck()
        seen.settled()
        claimed = [int(text.split()[0]) for text in seen.page.locator(".class h3 .small").all_inner_texts()]
        assert sum(claimed) >= planted.graph.n - 2, "every node is given to one of the classes"
        seen.fine()


def test_a_method_that_cannot_tell_says_so(visit: Visits, planted: Dataset, tmp_path: Path) -> None:
    with serving(save_run(planted, tmp_path, "sgc", episodes=10)) as server:
        seen = visit(server)
        assert "SGC" in seen.text("#dataset")
        seen.start("mine", members(planted, "class k")[0])
        seen.view("Judge")
        assert "SGC cannot tell whether a node is in none of the classes" in seen.text("#judge")
        seen.start("others", members(planted, "class l")[0])
        assert "Work on the list" in seen.text("#judge")
        seen.view("List")
        assert seen.page.locator("tbody tr").count() > 10
        seen.view("Map")
        assert "there is no map" in seen.text("#map-note")
        seen.fine()


def test_a_name_is_text_and_never_markup(visit: Visits, server: Running, planted: Dataset) -> None:
    seen = visit(server, PHONE)
    seen.start(HOSTILE, members(planted, "class k")[0])
    seen.start("plain", members(planted, "class l")[0])
    for name in ("Find", *VIEWS):
        seen.view(name)
        assert seen.page.locator("img").count() == 0
        assert seen.fits()
    assert HOSTILE in seen.text("#history")
    assert seen.page.title() == "fewnode · planted"
    seen.fine()


@pytest.mark.parametrize(("scheme", "viewport"), [("light", PHONE), ("dark", DESKTOP)])
def test_everybody_can_use_every_view(
    visit: Visits, server: Running, planted: Dataset, scheme: str, viewport: dict[str, int]
) -> None:
    """Nothing serious for axe on any view, in both themes, wide and narrow."""
    axe = Path(pytest.importorskip("axe_playwright_python").__file__).with_name("axe.min.js").read_text()
    seen = visit(server, viewport, color_scheme=scheme)
    seen.press("Try it")
    assert seen.page.locator("section.class").count() == 3
    seen.page.evaluate(axe)
    found = {}
    for view in ("node", *VIEWS, *(("Find",) if viewport is PHONE else ())):
        if view == "node":
            seen.look(members(planted, "class k")[0])
        else:
            seen.view(view)
        told = seen.page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
        found[view] = [(each["id"], each["nodes"][0]["html"]) for each in told if each["impact"] in SERIOUS]
        if view == "node":
            seen.page.keyboard.press("Escape")
    assert not any(found.values()), found
    seen.fine()


SERIOUS = ("serious", "critical")


def test_a_service_that_goes_and_comes_back(visit: Visits, run_dir: Path, planted: Dataset, tmp_path: Path) -> None:
    k, m = members(planted, "class k"), members(planted, "class l")
    kept = tmp_path / "state.sqlite"
    with serving(run_dir, "--state", kept) as first:
        seen = visit(first)
        page = seen.page
        seen.start("class k", k[0])
        seen.start("class l", m[0])
        seen.fine()

        first.ask("/api/classes/elsewhere", {"support": [k[1]]}, "PUT")
        page.get_by_label("A new class").fill("late")
        seen.look(k[2])
        seen.press(f"Yes: add {k[2]} to class k")
        assert "elsewhere" in seen.text("#classes"), "an answer adds, and the new state is shown"
        assert {s["node"] for s in first.ask(address("class k")).json["support"]} == {k[0], k[2]}

        busy = {"status": 429, "headers": {"Retry-After": "1"}, "json": {"error": "too many", "hint": "later"}}
        seen.page.locator(".class h3 button").first.click()
        seen.settled()
        page.route("**/api/answers", lambda route: route.fulfill(**busy), times=1)
        page.get_by_role("button", name=f"Take {k[2]} out of class k").click()
        page.get_by_text("The service is busy").wait_for()
        seen.settled()
        assert {s["node"] for s in first.ask(address("class k")).json["support"]} == {k[0]}

        port = first.port
        assert first.stop() == 0
        page.get_by_role("button", name="Delete", exact=False).first.click()
        page.locator("#alert").get_by_text("The service does not answer.").wait_for()
        assert "Start it again with fewnode serve" in seen.text("#alert")
    with serving(run_dir, "--state", kept, "--port", port) as again:
        page.locator("#alert").wait_for(state="hidden")
        seen.settled()
        assert page.locator("section.class h3 .name").all_inner_texts() == ["class k", "class l", "elsewhere"]
        page.context.clear_cookies()
        page.get_by_role("button", name="Undo").click()
        page.locator("#alert").get_by_text("This page's key is no longer valid.").wait_for()
        assert len(again.ask("/api/classes").json["classes"]) == 3


def test_another_tab_follows(visit: Visits, server: Running, planted: Dataset) -> None:
    seen = visit(server)
    server.ask(address("elsewhere"), {"support": members(planted, "class k")[:2]}, "PUT")
    seen.page.locator("section.class h3").get_by_text("elsewhere").wait_for()
    seen.fine()


def test_a_node_that_is_open_does_not_hide_the_question(visit: Visits, server: Running, planted: Dataset) -> None:
    seen = visit(server, PHONE)
    server.ask(address("class k"), {"support": members(planted, "class k")[:2]}, "PUT")
    seen.page.reload()
    seen.settled()
    seen.page.locator("#question .link").click()
    seen.settled()
    node, yes = (seen.page.locator(place).bounding_box() for place in ("#node", ".verdicts .solid >> nth=0"))
    assert yes["y"] + yes["height"] < node["y"]
    seen.key("y")
    assert len(said_of(server, "class k")[0]) == 3
    seen.fine()


def test_likeliest_first(visit: Visits, server: Running, planted: Dataset) -> None:
    seen = visit(server)
    server.ask(address("class k"), {"support": members(planted, "class k")[:2]}, "PUT")
    seen.page.reload()
    seen.settled()
    seen.page.get_by_label("Ask about").select_option("likeliest first")
    seen.settled()
    asked = server.ask("/api/next", {"class": "class k", "order": "likeliest", "count": 1}).json["questions"][0]
    assert seen.page.locator("#question .link").inner_text() == asked["node"]
    seen.fine()


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


def test_62_000_nodes_within_its_budget(visit: Visits, tmp_path: Path) -> None:
    run = save_run(large(), tmp_path, episodes=3)
    with serving(run) as server:
        seen = visit(server)
        page = seen.page
        page.get_by_text("All 62,000 nodes").wait_for()
        assert 50_000 < transferred(page) < BYTES, "with every node on the map"
        asked = [url for url in seen.asked if not url.endswith("/api/version") and "token=" not in url]
        assert len(asked) <= REQUESTS, asked
        seen.press("Try it")
        seen.look("a-node-61999")
        for view in VIEWS:
            seen.view(view)
        page.reload()
        seen.settled()
        assert transferred(page) < BYTES, "with classes, whose claims are listed"
        seen.fine()


def test_kinds_of_edges_are_drawn_and_named(visit: Visits, tmp_path_factory: pytest.TempPathFactory) -> None:
    data = planted_kinds()
    folder = tmp_path_factory.mktemp("kinds")
    with serving(save_run(data, folder, "gpn-plus", rank=32), "--state", folder / "state.sqlite") as server:
        seen = visit(server)
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
        seen.fine()
