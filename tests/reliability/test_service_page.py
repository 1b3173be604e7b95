"""Names that are markup, shown by the page in a real browser: nothing of them runs."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest

from fewnode.dataset import Dataset
from service import save_run, serving
from sizes import Figure

RUN = "window.fired=1"
TAGS = (
    *(
        "script",
        "img src=x onerror",
        "svg onload",
        "body onload",
        "iframe src=javascript:",
        "video src=x onerror",
        "a href",
    ),
    *("input autofocus onfocus", "details open ontoggle", "math href", "object data=javascript:", "marquee onstart"),
)


def names() -> list[str]:
    """Sixty and more: tags, ways out of attributes, scripts and templates, encodings."""
    tags = [f"<{tag}={RUN}>" for tag in TAGS] + [f"<ScRiPt>{RUN}</ScRiPt>", f"<script >{RUN}</script >"]
    out = [
        f"{end}<img src=x onerror={RUN}>"
        for end in ('"', "'", ">", "-->", "]]>", "</title>", "</textarea>", "</style>")
    ]
    out += [f"{end};{RUN}//" for end in ('"', "'", "\\", "`", "</script><script>", "${", "*/")]
    out += [f"{quote_}onmouseover={RUN} style=position:fixed;inset:0 {quote_}" for quote_ in ('"', "'", " ")]
    links = [
        f"{scheme}:{RUN}"
        for scheme in ("javascript", "JaVaScRiPt", "java script", "data:text/html,<script>", "vbscript")
    ]
    links += [
        f"[x](javascript:{RUN})",
        f"<a href='javascript:{RUN}'>x</a>",
        f"//evil.example/{RUN}",
        f"#{RUN}",
        f"?x={RUN}",
    ]
    odd = [
        f"{{{{constructor.constructor('{RUN}')()}}}}",
        f"${{{RUN}}}",
        f"#{{{RUN}}}",
        f"<%= {RUN} %>",
        "__proto__",
        "constructor",
    ]
    odd += [
        "&lt;img src=x onerror=window.fired=1&gt;",
        "&#60;script&#62;window.fired=1",
        "%3Cscript%3Ewindow.fired=1",
        "\\u003cscript\\u003e",
    ]
    odd += [
        f"<svg><animate onbegin={RUN} attributeName=x>",
        f"<svg><use href=data:image/svg+xml,{RUN}>",
        "toString",
        "hasOwnProperty",
    ]
    odd += [
        f"<style>@import'javascript:{RUN}'</style>",
        f"<base href=javascript:{RUN}//>",
        f"<form><button formaction=javascript:{RUN}>",
    ]
    odd += [
        f"<meta http-equiv=refresh content=0;url=javascript:{RUN}>",
        f"<link rel=stylesheet href=javascript:{RUN}>",
        "a</b>b&amp;c",
    ]
    return [name.strip() for name in (*tags, *out, *links, *odd)]


@pytest.mark.check
def test_names_do_nothing_in_a_browser(planted: Dataset, tmp_path: Path, figure: Figure) -> None:
    driver = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("there is no chromium here")
    found = names()
    assert len(set(found)) == len(found) >= 60
    rest = [f"node-{i}" for i in range(planted.graph.n - len(found))]
    data = replace(planted, node_names=(*found, *rest))
    fired: list[str] = []
    with (
        serving(save_run(data, tmp_path, episodes=10), "--state", tmp_path / "state.sqlite") as server,
        driver.sync_playwright() as play,
    ):
        for i, name in enumerate(found):
            kept = server.ask(f"/api/classes/{quote(name, safe='')}", {"support": [name, rest[i]]}, "PUT")
            assert kept.status == 200, (name, kept.body)
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.on("dialog", lambda dialog: (fired.append(dialog.message), dialog.dismiss()))
        page.goto(f"{server.url}/?token={server.token}")
        page.locator("body[aria-busy=false]").wait_for()
        for name in found:
            box = page.get_by_role("combobox")
            box.fill(name)
            page.get_by_role("option").first.wait_for()
            box.press("Enter")
            page.locator("body[aria-busy=false]").wait_for()
            if page.evaluate("window.fired"):
                fired.append(name)
        assert page.evaluate("typeof {}.polluted") == "undefined"
        assert page.url.startswith(server.url)
        shown = page.locator("body").inner_text()
        browser.close()
    assert fired == []
    assert "<script" in shown.lower(), "names are shown, as text"
    figure("service.xss", f"{len(found)} names of classes and nodes in Chromium: none ran")
