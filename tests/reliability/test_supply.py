"""What the project is made of: bounded, and nothing in it that runs what a file says."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from figures import filled

ROOT = Path(__file__).parents[2]


def test_every_dependency_has_a_floor_and_a_ceiling() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [need for needs in project["optional-dependencies"].values() for need in needs]
    loose = [need for need in (*project["dependencies"], *extras) if not re.search(r">=.+,<|^fewnode\[", need)]
    assert loose == []


def test_figures_go_to_their_rows() -> None:
    page = "| `a.b` | what | old |\n| `c` | what | kept |\n"
    assert filled(page, {"a.b": "1 | 2"}) == "| `a.b` | what | 1 \\| 2 |\n| `c` | what | kept |\n"
