"""One trained model for all tests of the service, one process a module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fewnode.dataset import Dataset
from service import Local, Running, save_run, serving


@pytest.fixture(scope="session")
def run_dir(planted: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_run(planted, tmp_path_factory.mktemp("serve"), episodes=30)


@pytest.fixture(scope="module")
def server(run_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(run_dir, "--state", tmp_path_factory.mktemp("state") / "state.sqlite") as running:
        yield running


@pytest.fixture
def local(run_dir: Path, tmp_path: Path) -> Iterator[Local]:
    """A service of its own for each test, in this process."""
    found = Local(run_dir, tmp_path / "state.sqlite")
    yield found
    found.close()
