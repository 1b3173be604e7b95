"""What the README shows is what happens: its commands run, and its picture of the output is the output."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from fewnode.dataset import Dataset

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.fixture
def tables(planted: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small tables in the current directory, in place of those that examples/tables.py makes."""
    x, names = planted.graph.x, list(planted.node_names or ())
    for c, pair in ((0, ("openvpn", "tinc")), (1, ("postfix", "mutt"))):
        for node, name in zip(planted.members(c), pair, strict=False):
            names[node] = name
    words = ["".join(chr(97 + int(digit)) for digit in f"{c:04}") for c in range(x.shape[1])]
    texts = [
        " ".join(words[c] for c in x[[i]].indices) + (" send receive mail" if y == 1 else "")
        for i, y in enumerate(planted.y)
    ]
    sections = [planted.class_names[c] for c in planted.y]
    rows = [f"{name},{section},{text}\n" for name, section, text in zip(names, sections, texts, strict=True)]
    (tmp_path / "nodes.csv").write_text("package,section,words\n" + "".join(rows))
    edges = [f"{names[a]},{names[b]}\n" for a, b in planted.graph.edge_index().T]
    (tmp_path / "edges.csv").write_text("from,to\n" + "".join(edges))
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("tables")
def test_the_commands_for_ones_own_network(fewnode) -> None:
    """From two tables to a ranked list, as they stand there."""
    commands = [line[2:] for line in blocks("console")[1].splitlines() if line.startswith("$ ")]
    assert commands.pop(0) == "python examples/tables.py"
    shown = ""
    for command in commands:
        program, *arguments = shlex.split(command)
        if program == "fewnode":
            done = fewnode(*arguments)
            assert done.code == 0, done.err
        else:
            shown = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True).stdout
    first = [line.split(",") for line in shown.splitlines()]
    assert len(first) == 10
    assert {label for _, label, *_ in first} == {"vpn", "mail"}
    member = [float(row[-1]) for row in first]
    assert member == sorted(member, reverse=True)
    namespace: dict[str, object] = {}
    exec(blocks("python")[0], namespace)  # noqa: S102 - the README is ours


def test_the_readme_is_one_screen_and_names_what_exists() -> None:
    assert len(README.splitlines()) <= 120
    for link in re.findall(r"\]\((?!http)([^)]+)\)|src=\"([^\"]+)\"", README):
        assert (ROOT / (link[0] or link[1])).exists(), link
