"""Options that several commands have: the model, the network and the classes asked about, and who does the work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from fewnode.cli.output import Quiet
from fewnode.errors import FewnodeError
from fewnode.options import Options, option

if TYPE_CHECKING:
    from fewnode.dataset import Dataset
    from fewnode.embedding.workers import Workers
    from fewnode.model.estimator import Estimator
    from fewnode.recognition.classes import Given


class Source(Options):
    """A run of a training, or a dataset alone."""

    run: Path | None = option("The directory that `fewnode train --out` wrote. Not needed with --data.")
    data: str | None = option("A dataset, without any run; with --run, another one than the run's own.")
    method: str | None = option("For a run of a method of your own: FILE.py:CLASS, which is run.", rare=True)

    def open(self, say: Quiet) -> tuple[Estimator, Dataset]:
        """The model of a run and its dataset; without a run, GPN+ for the dataset."""
        if self.run is not None:
            return open_run(self.run, self.data, self.method, say)
        if self.data is None:
            raise FewnodeError("give --data D, or --run RUN of a training")
        if self.method is not None:
            raise FewnodeError("--method belongs to a run; without one, gpn-plus answers")
        from fewnode.formats.sources import load
        from fewnode.model.recognise import is_kept, untrained

        dataset = load(self.data)
        if not is_kept(dataset):
            say.note(f"{dataset.name}: {dataset.graph}; reading it once, which is kept for the next time")
        return untrained(dataset), dataset


class Tables(Options):
    """The tables that give classes."""

    support: Path | None = option(
        "Table `node,class`: a few nodes of each class. A column `answer` may say no: not in it."
    )
    classes: Path | None = option("Table `class,description`; an empty description: the name speaks.")

    def read(self, dataset: Dataset, several: bool = False) -> Given:
        from fewnode.recognition.classes import Given

        return Given.read(dataset, self.support, self.classes, several)


def open_run(run: Path, data: str | None, method: str | None, say: Quiet) -> tuple[Estimator, Dataset]:
    """The model of a run, and the dataset it remembers or another one with the same attributes."""
    from fewnode.formats.sources import load
    from fewnode.model.model_files import load_model, recall

    model = load_model(run, method=method)
    remembered = model.trained_["data"]
    path = remembered.get("path")
    if data is None and path is None:
        raise FewnodeError(f"{run}: the model does not know where its dataset is; pass --data")
    if data is None and Path(path).is_absolute() and not Path(path).exists():
        raise FewnodeError(f"{run}: its dataset is no longer at {path}; say where it is now with --data")
    dataset = load(data or path)
    if data is None and dataset.sha256 != remembered["sha256"]:
        raise FewnodeError(f"{path} has changed since {run} was trained; pass --data to use it all the same")
    model.check_features(dataset)
    if model.needs_fit:
        say.note(f"{Path(model.method).name} keeps no state: it is fitted again")
        model.fit(dataset)
    else:
        recall(model, dataset)
    return model, dataset


# --- beyond the memory of one machine, or beyond one machine ---


class Cluster(Options):
    """Who does the work: processes here, or those of a cluster."""

    backend: Literal["local", "ray"] = option("Where the work is done: local, or ray (a cluster).", "local", rare=True)
    address: str | None = option(
        "Of the Ray cluster: HOST:PORT; default: RAY_ADDRESS, one running here, or a new one.", rare=True
    )
    workers: int = option("Processes that work at the same time.", 1, rare=True, ge=1)

    @property
    def several(self) -> bool:
        """Whether more than this process works."""
        return self.backend == "ray" or self.workers > 1

    def name_unused(self, say: Quiet) -> None:
        if self.backend == "local" and self.address is not None:
            say.note("--address not used: for --backend ray")


class Blocks(Cluster):
    """How much memory there is, and who makes blocks if they have to fit into it."""

    memory: str | None = option("Stay within so much, such as 6G: everything is read from disk in blocks.", rare=True)

    def limit(self) -> int | None:
        """The limit in bytes, kept from now on."""
        return keep_memory(self.memory)

    @contextmanager
    def open(self, folder: Path, say: Quiet) -> Iterator[Workers]:
        """Workers: processes here, or of a cluster, if each of its nodes sees the folder."""
        from fewnode.embedding.workers import Workers, connected

        limit = self.limit()

        if self.backend == "local":
            yield Workers(self.workers, limit, say.progress())
        else:
            with connected(self.address, folder, say.note) as ray:
                yield Workers(self.workers, limit, say.progress(), ray)


def keep_memory(memory: str | None) -> int | None:
    """The limit that the user set, kept from now on."""
    from fewnode._system.memory import keep_within, parse_size

    limit = parse_size(memory) if memory else None
    keep_within(limit)
    return limit
