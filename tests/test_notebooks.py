"""The notebooks in examples/notebooks: each cell is run, and what a cell ends with can be shown."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

NOTEBOOKS = sorted((Path(__file__).parents[1] / "examples" / "notebooks").glob("*.ipynb"))

QUICK = {
    '("gpn-plus"),': '("nearest-mean"),',
    '("propagation")': '("nearest-mean")',
    "episodes=30": "episodes=10, dropout=0.5",
}
"""What takes long is another method here. `make check` runs it as it is."""


@pytest.fixture(name="folder", scope="module")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The notebooks beside the script that makes their tables."""
    folder = tmp_path_factory.mktemp("examples")
    shutil.copy(NOTEBOOKS[0].parents[1] / "tables.py", folder)
    shutil.copytree(NOTEBOOKS[0].parent, folder / "notebooks")
    return folder / "notebooks"


def run(source: str, names: dict[str, object]) -> object:
    """As a notebook does: the statements, then the value of the last one if it has one."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)  # noqa: S102
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last else None  # noqa: S307


def shown(value: object) -> str | bytes:
    for how in ("_repr_html_", "_repr_png_"):
        made = getattr(value, how, lambda: None)()
        if made is not None:
            return made
    return repr(value)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_runs(
    path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    names: dict[str, object] = {"__name__": "__main__"}
    book = json.loads((folder / path.name).read_text())
    for cell in (cell for cell in book["cells"] if cell["cell_type"] == "code"):
        assert cell["outputs"] == [], "notebooks are kept without outputs: they change with every run"
        source = "".join(cell["source"])
        for slow, quick in QUICK.items():
            source = source.replace(slow, quick)
        value = run(source, names)
        assert value is None or len(shown(value)) > 0
        assert value is None or len(repr(value)) < 3000, "a text that fits a screen"
    said = capsys.readouterr().out
    if path.stem == "rare_class":
        assert int(said.split(" of the first 20")[0].split()[-1]) >= 12
    torch.set_num_threads(1)


@pytest.mark.check
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_jupyter_runs_it(path: Path, folder: Path) -> None:
    pytest.importorskip("nbclient", reason="nbclient is not installed: pip install nbclient ipykernel")
    command = [sys.executable, "-m", "jupyter", "execute", "--inplace", "--timeout=300", path.name]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    outputs = [
        each for cell in json.loads((folder / path.name).read_text())["cells"] for each in cell.get("outputs", [])
    ]
    kinds = {kind for each in outputs for kind in each.get("data", {})}
    assert "text/html" in kinds
    assert "image/png" in kinds or path.stem == "paper_table"
