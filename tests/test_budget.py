"""Nothing grows: each part of the house holds at most what it held when it was last committed."""

from __future__ import annotations

import re
import shutil
import tomllib
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from layout import (
    ROOT,
    SOURCE,
    ceilings,
    committed,
    homes,
    lowered,
    matching,
    measured,
    sources,
    stated,
    strict_files,
    tracked,
)

LAYOUT = stated()


def too_large(layout: dict[str, Any], root: Path = SOURCE) -> list[str]:
    allowed = ceilings(layout)
    return [name for name, figure in measured(layout, root).items() if figure > allowed[name]]


def test_no_part_has_grown() -> None:
    assert too_large(LAYOUT) == [], "what goes for it? (`python tests/layout.py` shows all figures)"


def test_a_part_takes_lines_only_where_others_give_them() -> None:
    """The sum of what parts may hold is not raised: neither above what git has, nor above all lines there may be."""
    parts = sum(part["lines"] for part in LAYOUT["parts"].values())
    assert parts <= LAYOUT["all"]["source"]["now"]
    before = committed()
    if before is not None:
        for name, facts in LAYOUT["all"].items():
            if name in before["all"]:
                ceiling = max(before["all"][name]["now"], facts["limit"])
                assert facts["now"] <= ceiling, f"all.{name} was raised above its limit"
                assert facts["limit"] <= before["all"][name]["limit"], f"the limit of all.{name} was raised"
        assert sum(p["limit"] for p in LAYOUT["parts"].values()) <= sum(p["limit"] for p in before["parts"].values())


def test_one_more_line_in_any_part_is_noticed(tmp_path: Path) -> None:
    root = tmp_path / "fewnode"
    shutil.copytree(SOURCE, root, ignore=shutil.ignore_patterns("__pycache__", "*.xz"))
    exact = deepcopy(LAYOUT)
    for name, figure in measured(LAYOUT, root).items():
        group, _, part = name.partition(".")
        exact[group][part]["lines" if group == "parts" else "now"] = figure
    assert too_large(exact, root) == []
    for files in homes(LAYOUT, sources(root)).values():
        with (root / files[-1]).open("a") as file:
            file.write("# one more line\n")
    assert too_large(exact, root) == ["all.source", *(f"parts.{part}" for part in LAYOUT["parts"])]


def test_figures_are_lowered_and_never_raised() -> None:
    text = "[all.web]\nnow = 5\nlimit = 3\n\n[parts.cli]\nlines = 7\nlimit = 9\nfiles = []\n"
    assert stated(lowered(text, {"all.web": 4, "parts.cli": 8})) == stated(text.replace("now = 5", "now = 4"))


def test_a_name_that_leads_nowhere_is_refused() -> None:
    assert matching(["cli/", "e*.py"], ["cli/a.py", "errors.py", "x/errors.py"]) == ["cli/a.py", "errors.py"]
    for pattern in ("gone.py", "gone/", "x/*.py"):
        with pytest.raises(LookupError, match="names no file"):
            matching([pattern], ["errors.py"])
    with pytest.raises(LookupError, match="in no part"):
        homes({"parts": {"core": {"files": ["a.py"]}}}, ["a.py", "b.py"])
    with pytest.raises(LookupError, match="two parts"):
        homes({"parts": {"core": {"files": ["a.py"]}, "cli": {"files": ["*.py"]}}}, ["a.py"])


def test_wrong_lines_are_looked_for_where_every_branch_is_covered() -> None:
    mutated = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mutmut"]
    assert sorted(mutated["only_mutate"]) == [f"src/fewnode/{name}" for name in strict_files(LAYOUT)]


GATES = ("pyproject.toml", "Makefile", ".ci/run", "tests/conftest.py", "SECURITY.md", "CONTRIBUTING.md")


def test_a_file_that_is_named_exists() -> None:
    """A gate whose file has moved gates nothing: in lists of tests, exceptions of linters, and promises."""
    path = r"(?<![\w./-])(?:src|tests|benchmarks|docs|fuzz|deploy)/(?!_)[\w./*-]*[\w*]"
    named = set()
    for gate in GATES:
        text = (ROOT / gate).read_text()
        short = [f"tests/**/{name}" for name in re.findall(r"`(test_\w+\.py)`", text)]
        named |= {(gate, name) for name in [*re.findall(path, text), *short]}
    assert [pair for pair in sorted(named) if not any(ROOT.glob(pair[1]))] == []


def test_a_name_of_the_package_that_is_written_down_leads_somewhere() -> None:
    texts = [*sources(), *(str(page) for page in tracked("*.md", "docs/*.md", "docs/**/*.md"))]
    gone = []
    for text in texts:
        for name in re.findall(r"`(fewnode(?:\.\w+)+)", (SOURCE / text).read_text()):
            module, rest = SOURCE, name.split(".")[1:]
            while rest and (module / rest[0]).is_dir():
                module /= rest.pop(0)
            file = module / f"{rest[0]}.py" if rest and (module / f"{rest[0]}.py").exists() else module / "__init__.py"
            if rest and file.stem != rest[0] and not re.search(rf"\b{rest[0]}\b", file.read_text()):
                gone.append(f"{text}: {name}")
    assert gone == []
