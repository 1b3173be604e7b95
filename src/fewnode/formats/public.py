"""Well-known networks by name, through PyG's and OGB's own loaders: these know where files are and what is in them.

Both are extras. What was fetched once is kept in a folder, and read from there without a network.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.interchange import read_pyg
from fewnode.machine.files import cache_directory, one_line


class Source(NamedTuple):
    """The class in `torch_geometric.datasets` that loads a network, what it is told, and the folder it uses."""

    loader: str
    arguments: tuple[Any, ...] = ()
    folder: str = ""
    more: tuple[tuple[str, Any], ...] = ()


OGB = ("ogbn-arxiv", "ogbn-products", "ogbn-mag", "ogbn-papers100M")
PYG = {
    "Cora": Source("Planetoid", ("Cora",)),
    "CiteSeer": Source("Planetoid", ("CiteSeer",)),
    "PubMed": Source("Planetoid", ("PubMed",)),
    "CoraFull": Source("CitationFull", ("Cora",), "CitationFull"),
    "Cora-ML": Source("CitationFull", ("Cora_ML",), "CitationFull"),
    "Computers": Source("Amazon", ("Computers",), "Amazon"),
    "Photo": Source("Amazon", ("Photo",), "Amazon"),
    "CS": Source("Coauthor", ("CS",), "Coauthor"),
    "Physics": Source("Coauthor", ("Physics",), "Coauthor"),
    "WikiCS": Source("WikiCS", (), "WikiCS", (("is_undirected", True),)),
    "Flickr": Source("Flickr", (), "Flickr"),
    "Reddit2": Source("Reddit2", (), "Reddit2"),
}
PUBLIC = (*PYG, *OGB)


def is_public(name: str) -> bool:
    return _known(name) is not None


def load_public(name: str, root: str | Path | None = None) -> Dataset:
    """A well-known network, from `root` if it was fetched before, else from where its authors keep it.

    What PyG has beside graph, attributes and classes, such as masks, is listed in `info["unused"]`. Classes are dealt
    into training, validation and test at random, with seed 0.
    """
    known, folder = str(_known(name)), Path(root) if root else default_root()
    load = _ogb if known in OGB else _pyg
    try:
        with redirect_stdout(sys.stderr), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about their own code and files
            parts = read_pyg(load(known, folder))
    except FewnodeError:
        raise
    except (Exception, SystemExit) as error:  # whatever their code does with a file that is not theirs
        where = folder / (PYG[known].folder or known if known in PYG else known.replace("-", "_"))
        raise FewnodeError(
            f"{known} could not be loaded ({one_line(error) or type(error).__name__}); it is fetched once and needs a "
            f"network then; if you have its raw files, put them below {where}"
        ) from None
    data = Dataset.from_parts(replace(parts, unused=()), name=known)
    return replace(data, info={**data.info, "unused": list(parts.unused)}) if parts.unused else data


def default_root() -> Path:
    """Where networks are kept unless told otherwise: in the user's cache."""
    return cache_directory("public")


def _known(name: str) -> str | None:
    return next((each for each in PUBLIC if each.lower() == name.lower()), None)


def _needs(package: str, extra: str, name: str) -> FewnodeError:
    return FewnodeError(f"{name} is loaded by {package}, which is not installed: pip install 'fewnode[{extra}]'")


def _pyg(name: str, root: Path) -> Any:
    try:
        from torch_geometric import datasets
    except ModuleNotFoundError:
        raise _needs("PyG", "pyg", name) from None
    source = PYG[name]
    loader: Callable[..., Any] = getattr(datasets, source.loader)
    return loader(str(root / source.folder if source.folder else root), *source.arguments, **dict(source.more))


def _ogb(name: str, root: Path) -> Any:
    try:
        from ogb.nodeproppred import PygNodePropPredDataset
        from torch_geometric.data.data import Data, DataEdgeAttr, DataTensorAttr
        from torch_geometric.data.storage import GlobalStorage
    except ModuleNotFoundError:
        raise _needs("OGB", "ogb", name) from None
    from torch.serialization import safe_globals

    with safe_globals([Data, DataEdgeAttr, DataTensorAttr, GlobalStorage]):  # OGB reads its own file in this way
        return PygNodePropPredDataset(name, str(root))
