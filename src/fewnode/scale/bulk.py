"""Every node of a network larger than memory, classified in blocks from disk to disk.

z is read from the embedding that was kept with the run. Where there is none, it is made once: by GPN+ in tiles, by GPN
in memory. The numbers are those of `embedding`.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.graph import Ints
from fewnode.machine.files import atomic_write, exclusive
from fewnode.method import Embeds
from fewnode.methods.plus import GPNPlus
from fewnode.model.embedding_cache import recall
from fewnode.model.estimator import Estimator, load_model
from fewnode.nodes import Nodes
from fewnode.recognition.answers import Answers
from fewnode.recognition.classes import Given
from fewnode.recognition.openness import cannot_tell, closed_because
from fewnode.recognition.population import claimable
from fewnode.recognition.question import Question
from fewnode.represent.room import Room
from fewnode.represent.workers import HERE, Workers
from fewnode.storage.io import load_dataset, map_safetensors, write_safetensors
from fewnode.vectors import as_arrays, from_arrays

ROWS = 1 << 16
"""Nodes of a block: some seconds of work."""


@dataclass(frozen=True)
class Bulk:
    """All that a block of the work needs to know, wherever it is made."""

    run: Path
    home: Path
    support: tuple[int, ...]
    labels: tuple[str, ...]
    explain: bool = False
    closed_set: bool = False
    threshold: float | None = None
    multi_label: bool = False
    rejected: tuple[tuple[str, tuple[int, ...]], ...] = ()
    rows: int = ROWS
    work: Path = Path()


def write_answers(path: Path, bulk: Bulk, low: int, high: int) -> None:
    """Rows of the table of predictions."""
    own = low + np.flatnonzero(claimable(_opened(bulk)[1], np.array(bulk.support))[low:high])
    text = _answer(bulk, own).to_csv()
    with atomic_write(path) as file:
        file.write((text if low == 0 else text.partition("\n")[2]).encode())


def _answer(bulk: Bulk, nodes: Sequence[int] | Ints) -> Answers:
    mode: dict[str, Any] = {"closed_set": bulk.closed_set, "threshold": bulk.threshold}
    return _question(bulk).judge(nodes, **mode, explain=bulk.explain)


@lru_cache(maxsize=1)
def _question(bulk: Bulk) -> Question:
    """Once in a process: what share of the network is in the classes is the same for all blocks."""
    model, data = _opened(bulk)
    if not model.has_space(data.graph) and not recall(model, data):
        model.space(data.graph, from_arrays(map_safetensors(_own_embedding(bulk)), data.graph.n))
    return model.question(data, _given(bulk, data), bulk.multi_label)


def _given(bulk: Bulk, data: Dataset) -> Given:
    no: dict[Hashable, Nodes] = {name: list(rows) for name, rows in bulk.rejected}
    return Given.of_support(data, list(bulk.support), list(bulk.labels), no=no, several=bulk.multi_label)


def classify(
    bulk: Bulk,
    out: Path,
    resume: bool = False,
    workers: Workers = HERE,
) -> Answers:
    """Write the table of predictions for every node, and the answer for the support nodes, which tells the classes.

    Blocks are in a folder beside `out` until the table is whole; `resume` goes on with those of an earlier run.
    """
    model, data = _opened(bulk)
    if not isinstance(model.method_, Embeds):
        raise FewnodeError(f"{model.method} has no way to classify in blocks; gpn-plus, gpn, gpn-naive and pn have")
    names = [str(name) for name in _given(bulk, data).names]
    cannot = cannot_tell(model.method, len(names), model.head)
    closed_because(names, bulk.multi_label, cannot, bulk.closed_set, bulk.threshold)  # or is refused
    work = out.with_name(f"{out.name}.blocks")
    bulk = replace(bulk, work=work.resolve() / _identity(bulk, model, data))
    with exclusive(work):
        if bulk.work.exists() and not resume:
            raise FewnodeError(f"{work}: there are blocks of an unfinished run; continue it with --resume")
        _embed(bulk, model, data, workers)
        ranges = [(low, min(low + bulk.rows, data.graph.n)) for low in range(0, data.graph.n, bulk.rows)]
        pieces = {bulk.work / "answers" / f"{low:012d}.csv": (bulk, low, high) for low, high in ranges}
        workers.make("nodes", write_answers, pieces)
        with atomic_write(out) as file:
            for path in pieces:
                file.write(path.read_bytes())
        found = _answer(bulk, bulk.support)
    shutil.rmtree(work)
    return found


def _own_embedding(bulk: Bulk) -> Path:
    return bulk.work / "z.safetensors"


def _embed(bulk: Bulk, model: Estimator, data: Dataset, workers: Workers) -> None:
    """z and importance of all nodes as a file, unless an earlier process has kept them for this machine."""
    known = recall(model, data)
    if _own_embedding(bulk).exists() or (known and workers.alone):
        return
    folder = bulk.work / "views"
    if not known and isinstance(model.method_, GPNPlus):
        model.method_.room = Room.of(data.graph, folder, model.all_settings(), workers)
    write_safetensors(_own_embedding(bulk), as_arrays(model.space(data.graph).embedding))
    shutil.rmtree(folder, ignore_errors=True)


def _identity(bulk: Bulk, model: Estimator, data: Dataset) -> str:
    """Blocks of another model, network or support are other blocks."""
    asked = [bulk.support, bulk.labels, bulk.rows, bulk.explain, bulk.closed_set, bulk.threshold, bulk.multi_label]
    calibrated = [bulk.rejected, model.trained_["temperature"], model.trained_["membership"]]
    digest = hashlib.sha256(json.dumps([*asked, *calibrated]).encode())
    digest.update(data.sha256.encode())
    for _, tensor in sorted(model.method_.state().items()):
        digest.update(np.asarray(tensor).tobytes())
    return digest.hexdigest()[:16]


def _opened(bulk: Bulk) -> tuple[Estimator, Dataset]:
    return _open(bulk.run, bulk.home)


@lru_cache(maxsize=1)
def _open(run: Path, home: Path) -> tuple[Estimator, Dataset]:
    """Once in a process; the leader has checked what all of them open."""
    return load_model(run), load_dataset(home, check=False)
