"""Who may import whom: a module knows only the layers below it, so that nothing can go round in a circle."""

import ast
import re
from pathlib import Path

import pytest

from layout import SOURCE, stated

LAYERS = [set(layer) for layer in stated()["layers"]["order"]]
LAZY = stated()["layers"]["lazy"]
MODULES = sorted(SOURCE.rglob("*.py"))


def part(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def level(name: str) -> int:
    return next(i for i, layer in enumerate(LAYERS) if name in layer)


def imported(tree: ast.AST) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "fewnode":
            names = node.module.split(".")[1:2] or [alias.name for alias in node.names]
            found |= set(names)
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("fewnode.")}
    return found


@pytest.mark.parametrize(
    "path", [p for p in MODULES if part(p) != "__init__"], ids=lambda p: str(p.relative_to(SOURCE))
)
def test_a_module_imports_only_what_is_below_it(path: Path) -> None:
    own = part(path)
    lazy = {name for importer, name in LAZY if importer == own}
    for name in imported(ast.parse(path.read_text())) - {own, "__version__"} - lazy:
        assert level(name) <= level(own), f"{own} imports {name}"
        assert level(name) < level(own), f"{own} imports {name} of its own layer"


def test_every_part_has_a_layer_and_every_layer_is_of_parts() -> None:
    named = [name for layer in LAYERS for name in layer]
    assert len(named) == len(set(named))
    assert set(named) == {part(path) for path in MODULES}
    for importer, name in LAZY:
        files = [path for path in MODULES if part(path) == importer]
        assert any(name in imported(ast.parse(path.read_text())) for path in files), "no exception is needed any more"


def test_only_the_engine_imports_numba() -> None:
    numba = re.compile(r"^\s*(?:import|from) (?:numba|llvmlite)\b", re.MULTILINE)
    assert {part(path) for path in MODULES if numba.search(path.read_text())} == {"engine"}


def lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def test_the_core_is_read_in_one_sitting() -> None:
    assert sum(lines(SOURCE / f"{name}.py") for name in ("graph", "episodes", "gpn", "train", "evaluation")) <= 1360


RESEARCH = sorted(path for path in (SOURCE.parents[1] / "research").glob("*.py") if path.stem != "strangers")


def test_a_method_of_ones_own_is_short_and_knows_only_what_the_package_exports() -> None:
    assert max(map(lines, RESEARCH)) <= 120
    private = re.compile(r"^\s*(?:from fewnode|import fewnode\.)", re.MULTILINE)
    assert [path.name for path in RESEARCH if private.search(path.read_text())] == []


def test_nothing_unsafe_is_read_or_run() -> None:
    unsafe = re.compile(r"pickle|torch\.load|(?<![\w.])(eval|exec)\(|shell=True|yaml")
    assert [(p.name, hit.group()) for p in MODULES for hit in unsafe.finditer(p.read_text())] == []
