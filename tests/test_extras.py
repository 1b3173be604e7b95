"""What is not installed with the core is missed in one sentence, and only by whoever asks for it."""

import subprocess
import sys

import pytest

from fewnode.dataset import Dataset
from fewnode.episodes import EpisodeSampler
from fewnode.errors import FewnodeError
from fewnode.methods.gpn import GPN


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if it were not installed, whatever was imported before."""
    for loaded in [name for name in sys.modules if name.partition(".")[0] == "torch_geometric"]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, "torch_geometric", None)


def test_no_module_of_ours_needs_an_extra_to_be_imported() -> None:
    code = (
        "import importlib, pkgutil, sys\n"
        "sys.modules.update(dict.fromkeys(['torch_geometric', 'ray', 'optuna']))\n"
        "import fewnode\n"
        "for found in pkgutil.walk_packages(fewnode.__path__, 'fewnode.'):\n"
        "    found.name.endswith('__main__') or importlib.import_module(found.name)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("bare")
def test_a_network_for_pyg(planted: Dataset) -> None:
    with pytest.raises(FewnodeError) as told:
        planted.to_pyg()
    assert str(told.value) == "to_pyg needs PyG: pip install 'fewnode[pyg]'"


@pytest.mark.usefixtures("bare")
def test_an_encoder_of_pyg(planted: Dataset) -> None:
    train, valid = (EpisodeSampler(planted, part, 3, 1) for part in ("train", "valid"))
    with pytest.raises(FewnodeError, match=r"encoder sage needs PyG: pip install 'fewnode\[pyg\]'"):
        GPN(encoder="sage").fit(planted.graph, train, valid)
