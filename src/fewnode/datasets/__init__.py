"""Where datasets come from: built in, a directory of ours, or a file in a layout that can be imported."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fewnode.datasets.debian import build_debian, load_debian
from fewnode.datasets.npz import read_dataset_npz
from fewnode.errors import FewnodeError, closest
from fewnode.graph import Dataset
from fewnode.io import load_dataset

BUILT_IN = {"debian": load_debian}
BUILDERS = {"debian": build_debian}


def load(source: str | Path) -> Dataset:
    """A dataset by built-in name, from a dataset directory, or from a file that `import_dataset` reads.

    >>> load("debian").name
    'debian'
    """
    if str(source) in BUILT_IN:
        return BUILT_IN[str(source)]()
    path = Path(source)
    if (path / "dataset.json").exists():
        return load_dataset(path)
    if not path.exists():
        raise FewnodeError(
            f"{source}: no such dataset; built in: {', '.join(BUILT_IN)}{closest(str(source), BUILT_IN)}"
        )
    return import_dataset(path)


def import_dataset(
    path: Path, fractions: Sequence[float] = (50, 20, 30), seed: int = 0, directed: bool = False
) -> Dataset:
    """A dataset from a file in a known layout. `fractions` and `seed` deal the classes where the file does not."""
    if path.is_dir():
        raise FewnodeError(f"{path}: a directory without dataset.json; expected a dataset directory or an .npz file")
    return read_dataset_npz(path, fractions, seed, directed)
