"""What is not installed with the core is missed in one sentence, and only by whoever asks for it."""

import subprocess
import sys
from pathlib import Path

import pytest

from fewnode.dataset import Dataset
from fewnode.episodes import EpisodeSampler
from fewnode.errors import FewnodeError
from fewnode.formats.debian import build_debian
from fewnode.methods.gpn import GPN


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if neither were installed, whatever was imported before."""
    for name in ("lz4", "torch_geometric"):
        for loaded in [each for each in sys.modules if each == name or each.startswith(f"{name}.")]:
            monkeypatch.delitem(sys.modules, loaded)
        monkeypatch.setitem(sys.modules, name, None)


def test_no_module_of_ours_needs_an_extra_to_be_imported() -> None:
    code = (
        "import importlib, pkgutil, sys\n"
        "sys.modules.update(dict.fromkeys(['lz4', 'torch_geometric', 'ray', 'optuna']))\n"
        "import fewnode\n"
        "for found in pkgutil.walk_packages(fewnode.__path__, 'fewnode.'):\n"
        "    found.name.endswith('__main__') or importlib.import_module(found.name)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("bare")
def test_an_index_packed_with_lz4(tmp_path: Path) -> None:
    path = tmp_path / "deb_main_binary-amd64_Packages.lz4"
    path.write_bytes(b"whatever")
    with pytest.raises(FewnodeError) as told:
        build_debian(tmp_path)
    assert str(told.value) == f"{path}: .lz4 needs lz4: pip install 'fewnode[lz4]', or unpack the file"


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
