"""One trained model for all tests of the service, one process a module."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fewnode.dataset import Dataset
from fewnode.model.estimator import Estimator
from service import InProcess, Local, Running, save_run, serving
from service_networks import texts


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


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[[Estimator, Dataset], InProcess]]:
    """Starts a service again and again on the same file, as if the last one had been killed."""
    started: list[InProcess] = []

    def again(model: Estimator, data: Dataset) -> InProcess:
        for old in started:
            old.close()
        started.append(InProcess(model, data, tmp_path / "opened.sqlite"))
        return started[-1]

    yield again
    for old in started:
        old.close()


@pytest.fixture(scope="session")
def topics() -> tuple[Estimator, Dataset]:
    """A network of texts, whose classes can be described."""
    data = texts()
    return Estimator("gpn-plus").fit(data), data


@pytest.fixture
def start(
    opened: Callable[[Estimator, Dataset], InProcess], topics: tuple[Estimator, Dataset]
) -> Callable[[], InProcess]:
    return lambda: opened(*topics)
