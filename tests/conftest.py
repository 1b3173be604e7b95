"""Shapes in signatures are checked while testing; every test runs on one thread, as the command line does."""

from jaxtyping import install_import_hook

install_import_hook(["fewnode.nn", "fewnode.methods.gpn"], "beartype.beartype")

import numpy as np  # noqa: E402
import pytest  # noqa: E402
import torch  # noqa: E402

from fewnode.graph import Dataset, Graph  # noqa: E402
from graphs import planted, star  # noqa: E402

torch.set_num_threads(1)


@pytest.fixture(name="star")
def _star() -> Graph:
    return star()


@pytest.fixture(name="planted", scope="session")
def _planted() -> Dataset:
    return planted()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
