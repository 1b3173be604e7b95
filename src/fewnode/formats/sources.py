"""Where datasets come from: built in, a directory of ours, or a file in a layout that can be imported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError, closest
from fewnode.formats.debian import load_debian
from fewnode.formats.directory import load_dataset
from fewnode.formats.npz import read_dataset_npz
from fewnode.formats.public import PUBLIC, load_public, public_name
from fewnode.formats.published import read_published
from fewnode.relations import Directed

BUILT_IN: dict[str, Callable[[], Dataset]] = {"debian": load_debian}


def load(source: str | Path, root: str | Path | None = None) -> Dataset:
    """A dataset by name, from a dataset directory, or from what `import_dataset` reads.

    `debian` is built in. `Cora`, `CoraFull`, `ogbn-arxiv` and other well-known networks come through PyG's and OGB's
    loaders (extras `pyg` and `ogb`). They are fetched once and kept in `root`, by default in the user's cache.

    >>> load("debian").name
    'debian'
    """
    if str(source) in BUILT_IN:
        return BUILT_IN[str(source)]()
    path = Path(source)
    if (path / "dataset.json").exists():
        return load_dataset(path)
    if not path.exists():
        if name := public_name(str(source)):
            return load_public(name, root)
        raise FewnodeError(
            f"{source}: no such dataset; built in: {', '.join(BUILT_IN)}{closest(str(source), [*BUILT_IN, *PUBLIC])}; "
            "fewnode data import reads your own"
        )
    if root is not None:
        raise FewnodeError(f"{source} is read where it is: leave out root, which is for well-known networks")
    return import_dataset(path)


def import_dataset(
    path: Path,
    fractions: Sequence[float] = (50, 20, 30),
    seed: int = 0,
    directed: Directed = False,
    name: str | None = None,
    scale: str | None = None,
    room: Path | None = None,
) -> Dataset:
    """A dataset from an .npz, GraphML or GML file, or from a folder of files as the paper's authors publish them.

    `fractions` and `seed` deal the classes where the file does not. `name` says which network of a folder is meant;
    that of a file takes it as its name. `directed` is true, false, or names of relations; `scale` says how weights are
    scaled (`none` or `log`). With `room`, a folder on a disk, a network of an .npz file may be larger than memory.
    """
    if path.name.removesuffix(".gz").endswith((".csv", ".tsv", ".jsonl", ".parquet")):
        raise FewnodeError(
            f"{path}: one table is no network; fewnode data import --nodes {path} --edges EDGES --out D reads two"
        )
    if path.name.lower().removesuffix(".gz").endswith((".graphml", ".gml")):
        from fewnode.formats.graphs import read_graph  # brings DuckDB, which nothing else here needs

        ways, shares = None if directed is False else directed, "/".join(map(str, fractions))
        title = name or path.name.split(".")[0]
        given = {"directed": ways, "weight_scale": scale, "split": shares, "seed": seed, "name": title}
        return read_graph(path, **{name: value for name, value in given.items() if value is not None})
    if path.is_dir():
        if not isinstance(directed, bool) or scale:
            raise FewnodeError(
                f"{path}: published files have neither weights nor kinds of edges; all are directed or none"
            )
        return read_published(path, name, fractions, seed, directed)
    data = read_dataset_npz(path, fractions, seed, directed, scale, room)
    return replace(data, name=name) if name else data
