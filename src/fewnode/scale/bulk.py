"""Every node of a network larger than memory, embedded and classified in blocks from disk to disk.

GPN goes layer by layer: the first is ReLU(P W), row by row; every other gathers, through Â, what the last one left on
the disk. GPN+ reads the embedding that was kept with its run, or makes it in tiles. The numbers are those of
`embedding`, which does the same in memory.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fewnode.dataset import Dataset
from fewnode.engine import episode
from fewnode.engine.compiled import Compiled
from fewnode.engine.fields import ReceptiveFields
from fewnode.engine.sparse import as_tensor
from fewnode.errors import FewnodeError
from fewnode.estimator import Estimator, load_model
from fewnode.gpn import Encoder
from fewnode.graph import Ints
from fewnode.machine import memory
from fewnode.machine.files import atomic_write, exclusive
from fewnode.methods.gpn import GPN
from fewnode.methods.plus import GPNPlus
from fewnode.nodes import Nodes
from fewnode.predict.embedding_cache import recall
from fewnode.predict.labelling import claimable
from fewnode.predict.predictions import Answerer, Predictions
from fewnode.represent.blocks import Runner, clear_blocks, cut, finish, here
from fewnode.represent.workspace import Workspace
from fewnode.storage.io import Stream, load_dataset, map_safetensors, write_safetensors

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
    limit: int | None = None
    n: int = 0
    work: Path = Path()

    @property
    def ranges(self) -> list[tuple[int, int]]:
        return cut(self.n, self.rows)


@dataclass(frozen=True)
class Layer:
    """Rows of one layer of the encoder, times the weight of the next one if there is one; the last gives z."""

    bulk: Bulk
    layer: int

    @property
    def keys(self) -> list[tuple[int, ...]]:
        return [(r,) for r in range(len(self.bulk.ranges))]

    @property
    def folder(self) -> Path:
        return self.bulk.work / f"layer-{self.layer}"

    @property
    def whole(self) -> Path:
        """The file that all blocks become."""
        return self.bulk.work / f"layer-{self.layer}.safetensors"

    def path(self, key: tuple[int, ...]) -> Path:
        return self.folder / f"{key[0]:06d}.safetensors"

    def make(self, key: tuple[int, ...]) -> None:
        model, data = _opened(self.bulk)
        g, encoder = _parts(model, data)
        nodes, bias = np.arange(*self.bulk.ranges[key[0]]), encoder.bias[self.layer].detach().numpy()
        if self.layer == 0:
            rows: Any = g.propagated(nodes)[0] if encoder.graph else g.features(nodes)
            h = episode.convolve(None, (rows @ encoder.weight[0].detach()).numpy(), bias)
        else:
            before = _rows(Layer(self.bulk, self.layer - 1).whole)
            hw = g.adj.rows(nodes).multiply(before) if encoder.graph else before[nodes]
            h = episode.convolve(None, hw, bias)
        if self.layer + 1 < len(encoder.weight):
            h = (torch.from_numpy(h) @ encoder.weight[self.layer + 1].detach()).numpy()
        write_safetensors(self.path(key), {"h": h})

    def assemble(self) -> None:
        width = map_safetensors(self.path((0,)))["h"].shape[1]
        pieces = (map_safetensors(self.path(key))["h"] for key in self.keys)
        write_safetensors(self.whole, {"h": Stream(np.dtype(np.float32), (self.bulk.n, width), pieces)})
        clear_blocks(self.folder)


@dataclass(frozen=True)
class Answers:
    """Rows of the table of predictions."""

    bulk: Bulk
    last: int

    @property
    def keys(self) -> list[tuple[int, ...]]:
        return [(r,) for r in range(len(self.bulk.ranges))]

    def path(self, key: tuple[int, ...]) -> Path:
        return self.bulk.work / "answers" / f"{key[0]:06d}.csv"

    def make(self, key: tuple[int, ...]) -> None:
        low, high = self.bulk.ranges[key[0]]
        answer = _answer(self, low + np.flatnonzero(claimable(_opened(self.bulk)[1], self.bulk.support)[low:high]))
        text = answer.to_csv() if low == 0 else answer.to_csv().partition("\n")[2]
        with atomic_write(self.path(key)) as file:
            file.write(text.encode())


def _answer(stage: Answers, nodes: Sequence[int] | Ints) -> Predictions:
    bulk = stage.bulk
    found = _answerer(stage).predictions(nodes, bulk.explain, closed_set=bulk.closed_set, threshold=bulk.threshold)
    return found.with_reasons() if bulk.explain else found


@lru_cache(maxsize=1)
def _answerer(stage: Answers) -> Answerer:
    """Once in a process: what share of the network is in the classes is the same for all blocks."""
    bulk = stage.bulk
    model, data = _opened(bulk)
    method = model.method_
    if not method.remembers(data.graph) and isinstance(method, GPN):
        z = as_tensor(_rows(Layer(bulk, stage.last).whole))
        importance, given = torch.zeros(bulk.n), np.array(bulk.support)
        importance[given] = method.engine(data.graph, method.networks_).embed(method.networks_, given)[1]
        method.remember(data.graph, z, importance)
    elif not method.remembers(data.graph) and not recall(model, data):
        method.remember(data.graph, as_tensor(_rows(_own_embedding(bulk))), torch.zeros(bulk.n))
    return _asked(bulk, model, data)


def _asked(bulk: Bulk, model: Estimator, data: Dataset) -> Answerer:
    no: dict[Hashable, Nodes] = dict(bulk.rejected)
    return Answerer(model, data, bulk.support, bulk.labels, multi_label=bulk.multi_label, rejected=no)


def classify(
    bulk: Bulk,
    out: Path,
    resume: bool = False,
    runner: Runner = here,
    report: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> Predictions:
    """Write the table of predictions for every node, and the answer for the support nodes, which tells the classes.

    Blocks are in a folder beside `out` until the table is whole; `resume` goes on with those of an earlier run.
    """
    model, data = _opened(bulk)
    layers = 0 if isinstance(model.method_, GPNPlus) else len(_parts(model, data)[1].weight)
    asked = _asked(bulk, model, data)
    asked.closed_because(bulk.closed_set, bulk.threshold)  # or is refused
    work = out.with_name(f"{out.name}.blocks")
    bulk = replace(bulk, work=work.resolve() / _identity(bulk, model, data), n=data.graph.n)
    with exclusive(work):
        if bulk.work.exists() and not resume:
            raise FewnodeError(f"{work}: there are blocks of an unfinished run; continue it with --resume")
        if not layers:
            _embed(bulk, model, data, runner, report)
        for layer in (Layer(bulk, i) for i in range(layers)):
            if not layer.whole.exists():
                finish(layer, runner, partial(report, f"layer {layer.layer + 1}"))
                layer.assemble()
        answers = Answers(bulk, layers - 1)
        finish(answers, runner, partial(report, "nodes"))
        with atomic_write(out) as file:
            for key in answers.keys:
                file.write(answers.path(key).read_bytes())
        found = _answer(answers, bulk.support)
    clear_blocks(work)
    return found


def _own_embedding(bulk: Bulk) -> Path:
    return bulk.work / "z.safetensors"


def _embed(
    bulk: Bulk, model: Estimator, data: Dataset, runner: Runner, report: Callable[[str, int, int], None]
) -> None:
    """z of all nodes by GPN+ as a file, unless this process or an earlier one has kept it for this machine."""
    known = recall(model, data)
    if _own_embedding(bulk).exists() or (known and runner is here):
        return
    method: GPNPlus = model.method_
    folder = bulk.work / "views"
    if not known:
        method.workspace = Workspace.of(data.graph, folder, model.all_settings(), bulk.limit, runner, report)
    z, _ = method.embedding(data.graph)
    write_safetensors(_own_embedding(bulk), {"h": z.numpy()})
    clear_blocks(folder)


def _identity(bulk: Bulk, model: Estimator, data: Dataset) -> str:
    """Blocks of another model, network or support are other blocks."""
    asked = [bulk.support, bulk.labels, bulk.rows, bulk.explain, bulk.closed_set, bulk.threshold, bulk.multi_label]
    calibrated = [bulk.rejected, model.trained_["temperature"], model.trained_["membership"]]
    digest = hashlib.sha256(json.dumps([*asked, *calibrated]).encode())
    digest.update(data.sha256.encode())
    for _, tensor in sorted(model.method_.state().items()):
        digest.update(tensor.numpy().tobytes())
    return digest.hexdigest()[:16]


def _opened(bulk: Bulk) -> tuple[Estimator, Dataset]:
    return _open(bulk.run, bulk.home, bulk.limit)


@lru_cache(maxsize=1)
def _open(run: Path, home: Path, limit: int | None) -> tuple[Estimator, Dataset]:
    """Once in a process; the leader has checked what all of them open."""
    memory.keep_within(limit)
    return load_model(run), load_dataset(home, check=False)


def _parts(model: Estimator, data: Dataset) -> tuple[ReceptiveFields, Encoder]:
    method = model.method_
    if not isinstance(method, GPN) or not isinstance(method.networks_.encoder, Encoder):
        raise FewnodeError(f"{model.method} has no way to classify in blocks; gpn-plus, gpn, gpn-naive and pn have")
    engine = method.engine(data.graph, method.networks_)
    if not isinstance(engine, Compiled) or not engine.fields.on_disk or model.features is not None:
        raise FewnodeError(f"{data.graph.home}: is not prepared for blocks; fewnode data prepare does that")
    return engine.fields, method.networks_.encoder


@lru_cache(maxsize=1)
def _rows(path: Path) -> NDArray[np.float32]:
    return map_safetensors(path)["h"]
