"""The tree as `budget.toml` states it: which files make a part, how long each may be, and what is asked of it.

`python tests/layout.py` (`make budget`) lowers the committed figures to those of today. It never raises one.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "fewnode"
BUDGET = ROOT / "tests" / "budget.toml"
LONGEST_FILE = 400
MOST_PARAMETERS = 10


def stated(text: str | None = None) -> dict[str, Any]:
    return tomllib.loads(BUDGET.read_text() if text is None else text)


def sources(root: Path = SOURCE) -> list[str]:
    """Python files of the package, relative to it."""
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*.py"))


def matching(patterns: Iterable[str], names: Iterable[str]) -> list[str]:
    """`folder/` is all below it; otherwise a name, or a pattern within one folder."""
    names = list(names)
    chosen = set()
    for pattern in patterns:
        hits = [
            name
            for name in names
            if (name.startswith(pattern) if pattern.endswith("/") else fnmatch(name, pattern))
            and (pattern.endswith("/") or name.count("/") == pattern.count("/"))
        ]
        if not hits:
            raise LookupError(f"tests/budget.toml: {pattern!r} names no file below src/fewnode")
        chosen.update(hits)
    return sorted(chosen)


def homes(layout: dict[str, Any], names: list[str]) -> dict[str, list[str]]:
    """Files by part. Every file is in exactly one."""
    files = {part: matching(facts["files"], names) for part, facts in layout["parts"].items()}
    listed = sorted(name for members in files.values() for name in members)
    if twice := {name for name in listed if listed.count(name) > 1}:
        raise LookupError(f"tests/budget.toml: {min(twice)!r} is in two parts")
    if missing := set(names) - set(listed):
        raise LookupError(f"tests/budget.toml: {min(missing)!r} is in no part")
    return files


def strict_files(layout: dict[str, Any]) -> list[str]:
    """What reads foreign bytes or decides who may ask: all branches are covered, and wrong lines are noticed."""
    return matching(layout["strict"]["files"], sources())


def count_lines(paths: Iterable[Path]) -> int:
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


def tracked(*patterns: str) -> list[Path]:
    """Files of the checkout that git tracks or does not ignore; without git, all."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        return sorted({path for pattern in patterns for path in ROOT.glob(pattern) if path.is_file()})
    return sorted({path for name in listed.stdout.splitlines() if (path := ROOT / name).is_file()})


def wide_functions(path: Path) -> Iterator[str]:
    """Functions of more parameters than a reader keeps in mind; they should take a class of fields."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = node.args
            names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
            if len([name for name in names if name not in {"self", "cls"}]) > MOST_PARAMETERS:
                yield node.name


def measured(layout: dict[str, Any], root: Path = SOURCE) -> dict[str, int]:
    """What each figure of `budget.toml` is today, by its name there."""
    names = sources(root)
    figures = {
        f"parts.{part}": count_lines(root / name for name in files) for part, files in homes(layout, names).items()
    }
    web = (*root.glob("**/static/*.js"), *root.glob("**/static/*.css"), *root.glob("**/static/*.html"))
    pages = tracked("README.md", "docs/*.md", "docs/**/*.md")
    return {
        "all.source": count_lines(root / name for name in names),
        "all.web": count_lines(path for path in web if path.parent.name != "vendored"),
        "all.tests": count_lines(tracked("tests/*.py", "tests/**/*.py")),
        "all.docs": sum(len(path.read_text(encoding="utf-8").split()) for path in pages),
        "all.benchmarks": count_lines(tracked("benchmarks/*.py")),
        "all.research": count_lines(tracked("research/*.py")),
        "all.long_files": sum(count_lines([root / name]) > LONGEST_FILE for name in names),
        "all.wide_functions": sum(1 for name in names for _ in wide_functions(root / name)),
        **figures,
    }


def ceilings(layout: dict[str, Any]) -> dict[str, int]:
    """What each figure may be at most: as last committed, even where the limit of the design is higher."""
    groups = ((group, name, facts) for group in ("all", "parts") for name, facts in layout[group].items())
    return {f"{group}.{name}": facts["lines" if group == "parts" else "now"] for group, name, facts in groups}


def committed() -> dict[str, Any] | None:
    """`budget.toml` as git has it; nothing outside a checkout."""
    shown = subprocess.run(["git", "show", "HEAD:tests/budget.toml"], cwd=ROOT, capture_output=True, text=True)
    return stated(shown.stdout) if shown.returncode == 0 else None


def lowered(text: str, today: dict[str, int]) -> str:
    """The text of `budget.toml` with each figure at what it is today, where that is less."""
    section, lines = "", []
    for line in text.splitlines():
        if header := re.fullmatch(r"\[(.+)\]", line):
            section = header[1]
        elif figure := re.fullmatch(r"(lines|now) = (\d+)", line):
            line = f"{figure[1]} = {min(int(figure[2]), today[section])}"
        lines.append(line)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    before = BUDGET.read_text()
    today = measured(stated(before))
    BUDGET.write_text(lowered(before, today))
    allowed = ceilings(stated(before))
    for name, figure in today.items():
        print(f"{name:24} {figure:7,} of {allowed[name]:7,}")
    sys.exit(any(figure > allowed[name] for name, figure in today.items()))
