"""Put measured figures into the last column of a table: `python tests/figures.py FIGURES.json docs/reliability.md`.

A row whose first cell is `` `key` `` gets the figure of that key; other rows, and keys that were not measured, stay.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path


def filled(text: str, figures: dict[str, str]) -> str:
    lines = []
    for line in text.splitlines():
        key = re.match(r"\| `([a-z.]+)` \|", line)
        if key and key[1] in figures:
            cells = re.split(r"(?<!\\)\|", line)
            cells[-2] = f" {figures[key[1]].replace('|', chr(92) + '|')} "
            line = "|".join(cells)
        lines.append(line)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    figures, page = map(Path, sys.argv[1:])
    page.write_text(filled(page.read_text(), json.loads(figures.read_text())))
