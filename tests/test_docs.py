"""What the documentation shows is what happens: the site builds, its commands exist, its figures have one source."""

from __future__ import annotations

import inspect
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from fewnode.cli import app

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
PAGES = [page for page in PAGES if "_made" not in page.parts and "_build" not in page.parts]
sys.path.insert(0, str(DOCS))

import generate  # noqa: E402
import imports  # noqa: E402
import layout  # noqa: E402
import tables  # noqa: E402

# --- the site -----------------------------------------------------------------------------------------------------


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    """Tutorials are run on the way; a command in them that fails is a warning, too."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", str(DOCS), str(tmp_path)]
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0, done.stderr
    tutorial = (tmp_path / "tutorials" / "rare_class.html").read_text()
    assert "are vpn packages" in tutorial
    assert int(re.findall(r"of the first 20: (\d+) are", tutorial)[-1]) >= 12, (
        "the example no longer shows what it should"
    )
    fetched = [
        (page.name, address)
        for page in tmp_path.rglob("*.html")
        for address in re.findall(
            r'<(?:script|img|link rel="(?:stylesheet|icon)")[^>]*"(https?://[^"]+)"', page.read_text()
        )
    ]
    assert fetched == [], "a page must not fetch anything from elsewhere"


def test_every_import_is_in_the_diagram_and_points_down() -> None:
    graph = imports.imports()
    assert set(graph) == {imports.part(path) for path in imports.SOURCE.rglob("*.py")} - imports.LEFT_OUT
    place = imports.places(graph)
    assert all(place[a][1] > place[b][1] for a in graph for b in graph[a])
    drawn = {name: {b for a, b in imports.arrows(graph) if a == name} for name in graph}
    reach = imports.reachable(graph)
    assert imports.reachable(drawn) == reach, "what is imported can be reached by arrows"
    assert not [(a, b) for a in graph for b in drawn[a] if any(b in reach[c] for c in graph[a] - {b})], "a short way"
    shown = {text.get_text() for text in imports.diagram().axes[0].texts}
    assert set(graph) <= shown


def test_the_map_says_what_runs() -> None:
    """Traced: a table is read and asked about, and every file that ran is a file of some part."""
    ran = set(re.findall(r"^\| \*\*(\w+)", generate.way(), re.MULTILINE))
    assert {"core", "embedding", "recognition", "model", "tables", "cli"} <= ran <= set(layout.stated()["parts"])


def test_a_circle_of_imports_is_named() -> None:
    with pytest.raises(ValueError, match="a → b → a"):
        imports.heights({"a": {"b"}, "b": {"a"}})


# --- commands -----------------------------------------------------------------------------------------------------

ROOT_COMMAND: Any = typer.main.get_command(app)
COMMANDS = {" ".join(path[1:]): command for path, command in generate.leaves(ROOT_COMMAND)}


WRITTEN = re.compile(
    r"(?:\$ | {4,6}(?=(?:fewnode|python benchmarks))|(?=fewnode [a-z]+ .*--))((?:fewnode|python|make) .*)"
)


def written(text: str) -> Iterator[str]:
    """Commands in blocks: after a prompt, in an indented or a fenced block; continued lines are joined.

    One of a job script, which the shell completes, is left out.
    """
    text = text.replace("\\\\\n", " ").replace("\\\n", " ")
    for line in text.splitlines():
        match = WRITTEN.match(line)
        if match and "$((" not in match[1]:
            yield re.split(r"\s+#\s|\s+[|>&]\s", match[1])[0]


def parse(command: str) -> None:
    """Let the command line read it without doing it: unknown commands, options and values are errors."""
    words = shlex.split(command)[1:]
    depth = 2 if words[0] == "data" else 1
    found = COMMANDS[" ".join(words[:depth])]
    found.make_context(command, words[depth:])


PLACED = [(f"{page.relative_to(ROOT)}: {command}", command) for page in PAGES for command in written(page.read_text())]
HELPED = [
    (f"{name} --help: {line}", line)
    for name, c in COMMANDS.items()
    for line in written(c.help.replace("\n  fewnode", "\n$ fewnode"))
]


@pytest.mark.parametrize("command", [c for _, c in PLACED + HELPED], ids=[i for i, _ in PLACED + HELPED])
def test_a_command_that_is_written_down_is_one(command: str) -> None:
    program, first, *words = shlex.split(command)
    if program == "fewnode":
        parse(command)
    elif program == "make":
        assert re.search(rf"^{first}:", (ROOT / "Makefile").read_text(), re.MULTILINE), command
    else:
        source = (ROOT / first).read_text()
        for option in (word for word in words if word.startswith("--")):
            assert f'"{option}"' in source, f"{first} has no {option}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_named_in_a_sentence_exist(page: Path) -> None:
    for said in re.findall(r"`fewnode ([^`]+)`", page.read_text()):
        words = said.split()
        if words[0].startswith("-") or words[0] == "COMMAND":
            continue
        name = " ".join(words[:2]) if words[0] == "data" and len(words) > 1 else words[0]
        assert name in COMMANDS or name == "data", f"fewnode {said}"
        known = (
            {flag for param in COMMANDS[name].params for flag in param.opts} | {"--help"} if name != "data" else set()
        )
        assert {word for word in words if word.startswith("--")} <= known, f"fewnode {said}"


@pytest.mark.parametrize("name", COMMANDS)
def test_help_reads_like_documentation(name: str) -> None:
    """What it does, an example, every option explained, and where to go from there."""
    command = COMMANDS[name]
    text = inspect.cleandoc(command.help)
    assert "Example:" in text
    assert f"fewnode {name}" in text
    others = set(re.findall(r"fewnode ((?:data )?[a-z]+)", text)) - {name}
    assert others & set(COMMANDS), "name a related command"
    for param in command.params:
        assert param.help, f"{param.name} is not explained"
    for block in (part for part in text.split("\n\n") if part.startswith("\b")):
        assert [line for line in block.splitlines() if len(line) > 78] == [], "it must fit a terminal of 80 columns"


def test_the_list_of_commands_is_not_cut_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = subprocess.run([sys.executable, "-m", "fewnode", "--help"], capture_output=True, text=True, check=True)
    assert "..." not in shown.stdout.split("Commands:")[1]
    assert max(map(len, shown.stdout.splitlines())) <= 80


def test_tab_completes_methods() -> None:
    asked = {"_FEWNODE_COMPLETE": "complete_bash", "COMP_WORDS": "fewnode train --method gp", "COMP_CWORD": "3"}
    command = [sys.executable, "-c", "from fewnode.cli import app; app(prog_name='fewnode')"]
    shown = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **asked})
    assert shown.stdout.split() == ["gpn", "gpn-authors", "gpn-naive", "gpn-plus"]


# --- figures ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", tables.PAGES, ids=lambda page: page.name)
def test_a_table_of_accuracies_is_what_the_results_say(page: Path) -> None:
    assert tables.rewritten(page) == page.read_text(), "python docs/tables.py writes it"


def test_every_table_that_can_be_made_is_shown() -> None:
    shown = [name for page in tables.PAGES for _, name, _ in tables.MARKED.findall(page.read_text())]
    assert sorted(shown) == sorted(tables.TABLES)


def quoted() -> list[tuple[str, str]]:
    """Accuracies and ratios that README and choosing.md repeat, in tables and in sentences; not the demo's output."""
    found = []
    for page in ("README.md", "docs/choosing.md"):
        text = re.sub(r"```.*?```|https?:[^)]+", "", (ROOT / page).read_text(), flags=re.DOTALL)
        found += [(page, figure) for figure in re.findall(r"(?<![\d.])(?:\d\d\.\d|[\d,.]+×)", text)]
    return found


def test_a_figure_that_is_quoted_is_the_measured_one() -> None:
    """Those of the pages that name the command and the commit behind them, or of the paper's grid."""
    sources = [DOCS / "methods.md", DOCS / "performance.md", *tables.NOTES]
    measured = "".join(path.read_text() for path in sources)
    assert len(quoted()) > 50
    for page, figure in quoted():
        assert re.search(rf"(?<![\d.]){re.escape(figure)}(?!\d)", measured), f"{page} quotes {figure}"


def test_a_method_has_one_name_in_tables() -> None:
    cells = [
        (page.name, cell.strip(" *"))
        for page in PAGES
        if page.name != "scale.md"  # propagation is a job there
        for line in page.read_text().splitlines()
        if line.startswith("|")
        for cell in line.split("|")
    ]
    other = {"gpn-plus", "GPN-plus", "propagation", "nearest class mean", "meta-gnn", "maml", "deepwalk", "gpn", "sgc"}
    assert [(page, cell) for page, cell in cells if re.split(r"[,:]", cell)[0].strip() in other] == []
