"""Shapes in signatures are checked while testing; every test runs on one thread, as the command line does."""

import gc
import os
from collections.abc import Callable, Iterator

# Before SciPy and torch are loaded, and for all processes that tests start. `torch.set_num_threads` does not
# reach the other two: beside busy workers their second thread waits in a loop, and a fit takes three times the CPU.
os.environ["OMP_NUM_THREADS"] = "1"
gc.disable()  # until the tests are collected: what is imported stays

from jaxtyping import install_import_hook  # noqa: E402

install_import_hook(["fewnode.gpn", "fewnode.methods.networks"], "beartype.beartype")

import numpy as np  # noqa: E402
import pytest  # noqa: E402
import torch  # noqa: E402
from hypothesis import settings  # noqa: E402
from threadpoolctl import threadpool_limits  # noqa: E402

from fewnode._system import memory  # noqa: E402
from fewnode.dataset import Dataset  # noqa: E402
from fewnode.graph import Graph  # noqa: E402
from fewnode.model import bulk  # noqa: E402
from fewnode.model.estimator import Estimator  # noqa: E402
from graphs import planted, star, worded  # noqa: E402
from multi_label_graphs import planted_multi_label  # noqa: E402
from sizes import Figure, keep_figures  # noqa: E402

torch.set_num_threads(1)
threadpool_limits(1)  # a plugin of pytest has loaded NumPy before
settings.register_profile("repeatable", derandomize=True)  # what fails, fails again
settings.load_profile("repeatable")


FIRST = ("tests/test_docs.py::test_the_site_builds", "tests/serve/test_page.py", "tests/embedding/test_cluster.py")
"""What takes a minute or more begins first, each on a worker of its own: at the end the others would wait for it."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if workers == 1:
        return
    others = [item for item in items if not item.nodeid.startswith(FIRST)]
    for place, name in enumerate(FIRST):  # a worker begins with a part of the list, the first at its start
        at = place % workers * (len(items) // workers)
        others[at:at] = [item for item in items if item.nodeid.startswith(name)]
    items[:] = others


def pytest_collection_finish() -> None:
    """Modules and tests stay until the end: the collector of garbage need not look through them again and again."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What tests keep in the user's cache goes to one of their own, also from processes that they start."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(name="star")
def _star() -> Graph:
    return star()


@pytest.fixture(name="planted", scope="session")
def _planted() -> Dataset:
    return planted()


@pytest.fixture(name="worded", scope="session")
def _worded() -> Dataset:
    return worded()


@pytest.fixture(scope="session")
def fitted_plus(planted: Dataset) -> Estimator:
    """The default method, fitted to `planted` once for all who only ask it."""
    return Estimator("gpn-plus", way=3, shot=3).fit(planted)


@pytest.fixture(scope="session")
def several() -> Dataset:
    """Nodes in one, two or three classes."""
    return planted_multi_label()


@pytest.fixture(scope="session")
def fitted_several(several: Dataset) -> Estimator:
    return Estimator("gpn-plus", way=3, shot=3).fit(several)


@pytest.fixture
def opened_anew() -> Iterator[None]:
    """Datasets and blocks are opened once in a process, which tests outlive."""
    yield
    memory.keep_within(None)
    for cached in (bulk._opened, bulk._prepared):
        cached.cache_clear()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def figure(record_property: Callable[[str, object], None]) -> Figure:
    """Something measured: `figure("crash.train", "200 kills …")` is printed after the tests."""
    return lambda key, text: record_property("figure", (key, text))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = terminalreporter.getreports("passed")
    found = {key: text for r in reports for name, (key, text) in (p for p in r.user_properties if p[0] == "figure")}
    for key, text in sorted(found.items()):
        terminalreporter.write_line(f"{key}: {text}")
    keep_figures(found)
