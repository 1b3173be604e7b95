"""What the README shows is what happens: its commands run, and its picture of the output is the output."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from fewnode.dataset import Dataset

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.fixture
def own_network(planted: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A CSV pair and a support table in the current directory, as a reader of the README has them."""
    rng = np.random.default_rng(0)
    words = [" ".join(f"word{c}" for c in planted.graph.x[[v]].indices) for v in range(planted.graph.n)]
    kinds = [planted.class_names[c] for c in planted.y]
    names = planted.node_names or ()
    rows = [f"{n},{k},{w},{rng.random():.3f}\n" for n, k, w in zip(names, kinds, words, strict=True)]
    (tmp_path / "nodes.csv").write_text("name,kind,summary,size\n" + "".join(rows))
    edges = [f"{names[a]},{names[b]}\n" for a, b in planted.graph.edge_index().T]
    (tmp_path / "edges.csv").write_text("from,to\n" + "".join(edges))
    (tmp_path / "support.csv").write_text(f"node,class\n{names[0]},new\n{names[1]},other\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_commands_for_ones_own_network(fewnode, own_network: Path) -> None:
    commands = [line[2:] for line in blocks("console")[1].splitlines() if line.startswith("$ ")]
    assert len(commands) == 2
    for command in commands:
        program, *arguments = shlex.split(command)
        assert program == "fewnode"
        done = fewnode(*arguments)
        assert done.code == 0, done.err
    assert len((own_network / "predictions.csv").read_text().splitlines()) == 361
    namespace: dict[str, object] = {}
    exec(blocks("python")[0], namespace)  # noqa: S102 - the README is ours


def test_the_readme_is_one_screen_and_names_what_exists() -> None:
    assert len(README.splitlines()) <= 90
    for link in re.findall(r"\]\((?!http)([^)]+)\)|src=\"([^\"]+)\"", README):
        assert (ROOT / (link[0] or link[1])).exists(), link
