"""An hour at the page: 2,000 actions of a person in Chromium, and what page and service grow by.

The first tenth is not counted: caches fill. A verdict's time is from the key to the new count on the screen.

    python benchmarks/page.py --data debian
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from service import TOKEN, Running, started
from visits import Visit, chromium, visits

PATIENCE = 300_000
"""Milliseconds that something may take: the machine may have other things to do."""
VIEWS = ("Judge", "List", "Map", "History")
WARM = 0.1
"""The share of the actions that is not counted."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="debian")
    parser.add_argument("--actions", type=int, default=2000)
    parser.add_argument("--words", nargs="+", default=["game", "python", "font", "mail"], help="what is searched for")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, chromium() as browser, visits(browser) as opened:
        command = [sys.executable, "-m", "fewnode", "serve", "--data", asked.data, "--port", "0", "--token", TOKEN]
        with started([*command, "--state", f"{folder}/state.sqlite"]) as server:
            seen = opened(server)
            seen.page.set_default_timeout(PATIENCE)
            seen.press("Try it")
            hour(seen, server, asked.actions, asked.words)


def hour(seen: Visit, server: Running, actions: int, words: list[str]) -> None:
    rng = random.Random(0)
    tools = seen.page.context.new_cdp_session(seen.page)
    verdicts: list[float] = []
    for done in range(actions):
        if done == int(WARM * actions):
            before = heap(tools), resident(server)
        act(seen, rng, words, verdicts)
        if done % 200 == 199:
            print(f"{done + 1} actions: page {heap(tools):.1f} MB, service {resident(server):.0f} MB", flush=True)
    grown = heap(tools) - before[0], resident(server) - before[1]
    tail = sorted(verdicts)[int(0.95 * len(verdicts))]
    print(f"page {grown[0]:+.1f} MB, service {grown[1]:+.1f} MB in {actions - int(WARM * actions)} actions")
    print(f"{len(verdicts)} verdicts: median {1000 * median(verdicts):.0f} ms, p95 {1000 * tail:.0f} ms to the next")
    assert seen.errors == [], seen.errors[:3]


def act(seen: Visit, rng: random.Random, words: list[str], verdicts: list[float]) -> None:
    """One thing that a person does: mostly answers."""
    chance, page = rng.random(), seen.page
    if chance < 0.7:
        if page.locator("[aria-selected=true]").inner_text() != "Judge":
            seen.view("Judge")
        if page.locator("#question").count():
            verdicts.append(float(page.evaluate(NEXT, rng.choice("yynns"))))
        seen.settled()
    elif chance < 0.8:
        if seen.button("Undo").is_enabled():
            seen.press("Undo")
    elif chance < 0.9:
        seen.view(rng.choice(VIEWS))
    else:
        box = page.get_by_role("combobox").first
        box.fill(rng.choice(words))
        page.get_by_role("option").first.wait_for()
        box.press("Enter")
        seen.settled()
        page.keyboard.press("Escape")


NEXT = """(key) => new Promise((done) => {
  const asked = document.querySelector("#question").innerText;
  const began = performance.now();
  const seen = new MutationObserver(() => {
    if (document.querySelector("#question")?.innerText === asked) return;
    seen.disconnect();
    requestAnimationFrame(() => done((performance.now() - began) / 1000));
  });
  seen.observe(document.querySelector("#judge"), {childList: true, subtree: true, characterData: true});
  document.activeElement.blur();
  document.body.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
})"""


def heap(tools: Any) -> float:
    """Megabytes of the page's own objects, after what nobody holds is gone."""
    tools.send("HeapProfiler.collectGarbage")
    return float(tools.send("Runtime.getHeapUsage")["usedSize"]) / 1e6


def resident(server: Running) -> float:
    lines = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    return float(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1e3


if __name__ == "__main__":
    main()
