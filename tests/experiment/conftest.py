"""A small network on disk, and methods that are quick, slow or broken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fewnode.dataset import Dataset
from planted_grid import fill


@pytest.fixture(name="folder")
def _folder(planted: Dataset, tmp_path: Path) -> Path:
    fill(tmp_path, planted)
    return tmp_path


@pytest.fixture(name="grid_file")
def _grid_file(folder: Path) -> Callable[[str], Path]:
    def write(text: str, name: str = "grid.toml") -> Path:
        path = folder / name
        path.write_text(text)
        return path

    return write
