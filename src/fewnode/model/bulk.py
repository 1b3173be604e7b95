"""Every node of a network larger than memory, judged in blocks from disk to disk.

z is made once, by GPN+ in tiles and by GPN in memory, unless the user's cache has it. The numbers are those of `judge`
in memory.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from fewnode._system.files import atomic_write, exclusive
from fewnode.dataset import Dataset
from fewnode.embedding.room import Room
from fewnode.embedding.workers import HERE, Workers
from fewnode.errors import FewnodeError
from fewnode.formats.directory import load_dataset, map_safetensors, write_safetensors
from fewnode.graph import Ints
from fewnode.method import Embeds
from fewnode.methods.plus import GPNPlus
from fewnode.model.estimator import Estimator
from fewnode.model.model_files import fingerprint, load_model, recall
from fewnode.nodes import Nodes
from fewnode.recognition.answers import Answers
from fewnode.recognition.classes import Given
from fewnode.recognition.population import cannot_tell, claimable, closed_because
from fewnode.recognition.question import Question
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

    @property
    def z(self) -> Path:
        """The embedding of all nodes."""
        return self.work / "z.safetensors"

    def given(self, data: Dataset) -> Given:
        no: dict[Hashable, Nodes] = {name: list(rows) for name, rows in self.rejected}
        return Given.of_support(data, list(self.support), list(self.labels), no=no, several=self.multi_label)

    def judge(self, nodes: Sequence[int] | Ints) -> Answers:
        mode = {"closed_set": self.closed_set, "explain": self.explain}
        return _prepared(self).judge(nodes, **mode, threshold=self.threshold)


def classify(bulk: Bulk, out: Path, resume: bool = False, workers: Workers = HERE) -> Answers:
    """Write the table of answers for every node, and give those for the support nodes, which tell the classes.

    Blocks are in a folder beside `out` until the table is whole; `resume` goes on with those of an earlier run.
    """
    model, data = _opened(bulk.run, bulk.home)
    if not isinstance(model.method_, Embeds):
        raise FewnodeError(f"{model.method} has no way to classify in blocks; gpn-plus, gpn, gpn-naive and pn have")
    names = [str(name) for name in bulk.given(data).names]
    cannot = cannot_tell(model.method, len(names), model.head)
    closed_because(names, bulk.multi_label, cannot, bulk.closed_set, bulk.threshold)  # or is refused
    work = out.with_name(f"{out.name}.blocks")
    calibration = model.trained_["temperature"], model.trained_["membership"]
    asked = f"{bulk} {calibration} {fingerprint(model, data)}"  # blocks of another question are other blocks
    bulk = replace(bulk, work=work.resolve() / hashlib.sha256(asked.encode()).hexdigest()[:16])
    with exclusive(work):
        if bulk.work.exists() and not resume:
            raise FewnodeError(f"{work}: there are blocks of an unfinished run; continue it with `resume`")
        _embed(bulk, model, data, workers)
        blocks = {
            bulk.work / "answers" / f"{low:012d}.csv": (bulk, low, min(low + bulk.rows, data.graph.n))
            for low in range(0, data.graph.n, bulk.rows)
        }
        workers.make("nodes", write_answers, blocks)
        with atomic_write(out) as file:
            for path in blocks:
                file.write(path.read_bytes())
        answers = bulk.judge(bulk.support)
    shutil.rmtree(work)
    return answers


def _embed(bulk: Bulk, model: Estimator, data: Dataset, workers: Workers) -> None:
    """z and importance of all nodes as a file: on a cluster, others read it."""
    if bulk.z.exists():
        return
    folder = bulk.work / "views"
    if not recall(model, data) and isinstance(model.method_, GPNPlus):
        model.method_.room = Room.of(data.graph, folder, model.all_settings(), workers)
    write_safetensors(bulk.z, as_arrays(model.space(data.graph).embedding))
    shutil.rmtree(folder, ignore_errors=True)


def write_answers(path: Path, bulk: Bulk, low: int, high: int) -> None:
    """Rows of the table of answers, of the nodes that may have a class; its heading above the first ones."""
    nodes = low + np.flatnonzero(claimable(_opened(bulk.run, bulk.home)[1], np.array(bulk.support))[low:high])
    text = bulk.judge(nodes).to_csv()
    with atomic_write(path) as file:
        file.write((text if low == 0 else text.partition("\n")[2]).encode())


@lru_cache(maxsize=1)
def _prepared(bulk: Bulk) -> Question:
    """Once in a process: what share of the network is in the classes is the same for all blocks."""
    model, data = _opened(bulk.run, bulk.home)
    if not model.has_space(data.graph):
        model.space(data.graph, from_arrays(map_safetensors(bulk.z), data.graph.n))
    return model.question(data, bulk.given(data), bulk.multi_label)


@lru_cache(maxsize=1)
def _opened(run: Path, home: Path) -> tuple[Estimator, Dataset]:
    """Once in a process; the leader has checked what all of them open."""
    return load_model(run), load_dataset(home, check=False)
