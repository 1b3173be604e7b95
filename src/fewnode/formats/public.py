"""Well-known networks by name, through PyG's and OGB's own loaders, which know where files are and what is in them.

Both are extras. What was fetched once is kept in a folder, and read from there without a network.
"""

from __future__ import annotations

import sys
import warnings
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

from fewnode._system.files import cache_directory, one_line
from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.interchange import read_pyg

OGB = ("ogbn-arxiv", "ogbn-products", "ogbn-mag", "ogbn-papers100M")
PYG: dict[str, tuple[str, str, tuple[Any, ...], dict[str, Any]]] = {
    **{name: ("Planetoid", "", (name,), {}) for name in ("Cora", "CiteSeer", "PubMed")},
    "CoraFull": ("CitationFull", "CitationFull", ("Cora",), {}),
    "Cora-ML": ("CitationFull", "CitationFull", ("Cora_ML",), {}),
    **{name: ("Amazon", "Amazon", (name,), {}) for name in ("Computers", "Photo")},
    **{name: ("Coauthor", "Coauthor", (name,), {}) for name in ("CS", "Physics")},
    "WikiCS": ("WikiCS", "WikiCS", (), {"is_undirected": True}),
    "Flickr": ("Flickr", "Flickr", (), {}),
    "Reddit2": ("Reddit2", "Reddit2", (), {}),
}
"""The class in `torch_geometric.datasets` that loads a network, the folder it uses, and what it is told."""
PUBLIC = (*PYG, *OGB)


def public_name(name: str) -> str | None:
    """A well-known network as its authors spell it."""
    return next((each for each in PUBLIC if each.lower() == name.lower()), None)


def load_public(name: str, root: str | Path | None = None) -> Dataset:
    """A well-known network, from `root` (by default in the user's cache) if it was fetched before, else from the web.

    What PyG has beside graph, attributes and classes, such as masks, is listed in `info["unused"]`. Classes are dealt
    into training, validation and test at random, with seed 0.
    """
    folder = Path(root) if root else cache_directory("public")
    try:
        with redirect_stdout(sys.stderr), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about their own code and files
            parts = read_pyg(_ogb(name, folder) if name in OGB else _pyg(name, folder))
    except FewnodeError:
        raise
    except ModuleNotFoundError as error:
        package, extra = ("OGB", "ogb") if name in OGB else ("PyG", "pyg")
        told = f"{name} is loaded by {package}, which is not installed ({error})"
        raise FewnodeError(f"{told}: pip install 'fewnode[{extra}]'") from None
    except (Exception, SystemExit) as error:  # whatever their code does with a file that is not theirs
        where = folder / (name.replace("-", "_") if name in OGB else PYG[name][1] or name)
        raise FewnodeError(
            f"{name} could not be loaded ({one_line(error) or type(error).__name__}); it is fetched once and needs a "
            f"network then; if you have its raw files, put them below {where}"
        ) from None
    data = Dataset.from_parts(replace(parts, unused=()), name=name)
    return replace(data, info={**data.info, "unused": list(parts.unused)}) if parts.unused else data


def _pyg(name: str, root: Path) -> Any:
    from torch_geometric import datasets

    loader, folder, arguments, more = PYG[name]
    return getattr(datasets, loader)(str(root / folder), *arguments, **more)


def _ogb(name: str, root: Path) -> Any:
    from ogb.nodeproppred import PygNodePropPredDataset
    from torch.serialization import safe_globals
    from torch_geometric.data.data import Data, DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import GlobalStorage

    with safe_globals([Data, DataEdgeAttr, DataTensorAttr, GlobalStorage]):  # OGB reads its own file in this way
        return PygNodePropPredDataset(name, str(root))
