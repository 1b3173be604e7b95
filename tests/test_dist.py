"""What is handed out: a wheel with all that the program needs, which runs alone in an empty environment."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import fewnode

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


def test_wheel_and_sdist_hold_every_file_of_the_package(dist: Path) -> None:
    (wheel,), (sdist,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    assert wheel.name == f"fewnode-{fewnode.__version__}-py3-none-any.whl"
    source = ROOT / "src" / "fewnode"
    files = {
        f"fewnode/{path.relative_to(source)}"
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    packed = set(zipfile.ZipFile(wheel).namelist())
    assert files <= packed
    assert {name.split("/")[0] for name in packed - files} == {f"fewnode-{fewnode.__version__}.dist-info"}
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {"README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "docs/index.md", "tests/test_dist.py"} <= inside


def test_the_version_is_the_same_everywhere() -> None:
    for file, said in (
        ("CITATION.cff", "version: {}"),
        ("CHANGELOG.md", "## [{}]"),
        ("pyproject.toml", 'version = "{}"'),
    ):
        assert said.format(fewnode.__version__) in (ROOT / file).read_text(), file


@pytest.mark.check
def test_the_wheel_alone_runs_the_demo(dist: Path, tmp_path: Path) -> None:
    """An environment without anything of this repository; the CPU build of torch, as constraints.txt names it."""
    venv.create(tmp_path / "empty", with_pip=True)
    program = tmp_path / "empty" / "bin"
    (wheel,) = dist.glob("*.whl")
    install = [program / "pip", "install", "-q", "-c", ROOT / "constraints.txt", wheel]
    bare = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    subprocess.run(install, check=True, cwd=tmp_path, env=bare)
    demo = [program / "fewnode", "demo", "--episodes", "30", "--tasks", "20"]
    done = subprocess.run(demo, capture_output=True, text=True, cwd=tmp_path, env=bare)
    assert done.returncode == 0, done.stderr
    assert "What GPN+ says of other games" in done.stdout
    assert (tmp_path / "demo" / "report.html").exists()
