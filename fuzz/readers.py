"""Every reader of files as a function of bytes, with files to begin from. Only `FewnodeError` may come out of one."""

from __future__ import annotations

import copy
import gzip
import hashlib
import io
import json
import tempfile
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fewnode.cli.train import tuned_options
from fewnode.dataset import ClassSplit, Dataset
from fewnode.episodes import EpisodeSampler
from fewnode.errors import FewnodeError
from fewnode.experiment.grid import read_grid, read_reported
from fewnode.experiment.ledger import read_ledger
from fewnode.experiment.results import read_results
from fewnode.formats.checkpoint import CHECKPOINT, Checkpoints
from fewnode.formats.directory import canonical, load_dataset, save_dataset
from fewnode.formats.sources import load
from fewnode.graph import Graph
from fewnode.model.estimator import Estimator
from fewnode.model.model_files import load_model
from fewnode.paper import BUILDERS
from fewnode.paper.linked_texts import DUMPS
from fewnode.paper.records import BadRecordError
from fewnode.recognition.classes import read_query, read_support
from fewnode.recognition.description import describe, read_classes
from fewnode.service.bodies import AnswerChange, AttachChange, ClassChange, NewNode
from fewnode.service.log import Log, time_of
from fewnode.tables.read import read_tables
from fewnode.tables.splits import choose_split
from fewnode.tasks import read_pool, save_pool
from fewnode.train import Adam, History, Point


@dataclass(frozen=True)
class Reader:
    """What to call with bytes, and bytes that it takes."""

    read: Callable[[bytes], object]
    seeds: tuple[bytes, ...]
    share: int = 1
    """Of the executions, relative to the others: the quick ones get more."""

    def __call__(self, blob: bytes) -> bool:
        """Whether the bytes were taken; anything but our own refusal is raised."""
        try:
            self.read(blob)
        except (FewnodeError, BadRecordError):
            return False
        return True


def network() -> Dataset:
    """Twelve classes of ten nodes, with names."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(12), 10)
    x = (rng.random((120, 8)) < 0.3).astype(np.float32)
    graph = Graph.from_edges(rng.integers(0, 120, (2, 300)), 120, x)
    parts = (tuple(range(4)), tuple(range(4, 8)), tuple(range(8, 12)))
    names = tuple(f"n{i}" for i in range(120))
    return Dataset(graph, y, ClassSplit(*parts), tuple(f"c{c}" for c in range(12)), names, name="fuzz")


GRAPHML = (
    b'<?xml version="1.0"?>\n<graphml><key id="k" for="node" attr.name="class"/><key id="w" for="edge" '
    b'attr.name="weight"><default>2</default></key>\n<graph edgedefault="directed"><node id="a"><data key="k">x</data>'
    b'</node><node id="b"/>\n<edge source="a" target="b"><data key="w">1.5</data></edge></graph></graphml>'
)
GML = (
    b'graph [\n directed 1\n node [ id 1 label "a" class "x" at [ x 1 ] ]\n node [ id 2 label "b" ]\n'
    b" edge [ source 1 target 2 weight 2.5 ]\n]\n"
)


def readers(folder: Path) -> dict[str, Reader]:
    """All of them. `folder` is where the bytes are put; on a disk of memory that is quick."""
    data = network()

    def at(name: str, read: Callable[[Path], object]) -> Callable[[bytes], object]:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)

        def put(blob: bytes) -> object:
            path.write_bytes(blob)
            return read(path)

        return put

    tables = {
        "csv": b'id,label,text,size\na,x,some words here,1\nb,y,"quoted, more",2.5\nc,x,,\n',
        "jsonl": b'{"id": "a", "label": "x", "n": 1.5, "tags": ["p", "q"]}\n{"id": "b", "label": null}\n{"id": "c"}\n',
        "parquet": _parquet(),
    }
    edges = folder / "edges.csv"
    edges.write_bytes(b"source,target\na,b\nb,c\n")
    found = {
        f"table.{kind}": Reader(at(f"t/{kind}.{kind}", lambda path: read_tables(path, edges, min_nodes=1)), (seed,), 2)
        for kind, seed in tables.items()
    }
    gz = at("t/g.csv.gz", lambda path: read_tables(path, edges))
    found["table.csv.gz"] = Reader(gz, (gzip.compress(tables["csv"]),), 2)
    for name, (given, seed) in WRITTEN.items():
        read = at(f"t/{name}", lambda path, given=given: read_tables(path, {"s": ["a"], "t": ["b"]}, **given))  # type: ignore[misc]
        found[f"columns of {name}"] = Reader(read, (seed,), 4)
    found["edges.csv"] = Reader(
        at("t/e.csv", lambda path: read_tables(_nodes(folder), path, min_nodes=1)), (edges.read_bytes(),), 2
    )
    weighed = {"weight": "amount", "relation": "kind", "min_nodes": 1}
    found["weighed.csv"] = Reader(
        at("t/w.csv", lambda path: read_tables(_nodes(folder), path, **weighed)),  # type: ignore[arg-type]
        (b"source,target,amount,kind\na,b,1.5,pays\nb,c,2,owns\n",),
        2,
    )
    found["labels.csv"] = Reader(
        at("t/l.csv", lambda path: read_tables({"id": list("abc")}, edges, labels=path, hierarchy="/", min_nodes=1)),
        (b"node,class\na,x/y\na,z\nb,x\n",),
        2,
    )
    found["graphml"] = Reader(at("t/g.graphml", load), (GRAPHML,), 2)
    found["gml"] = Reader(at("t/g.gml", load), (GML,), 2)
    found["npz"] = Reader(at("n/d.npz", load), (_npz(), _npz(weighed=True)), 2)
    found["network"] = Reader(at("w/f_network", lambda path: load(path.parent)), (b"0\t1\n1\t2\n",), 4)
    found["support"] = Reader(at("s.csv", lambda path: read_support(path, data)), (b"node,class\nn1,a\nn2,'=b\n",), 8)
    found["classes"] = Reader(at("k.csv", read_classes), (b"class,description\na,some words\nb,\n",), 8)
    spoken = replace(data, feature_names=("mail", "send", "wifi", "filter", "library", "email", "open", "run"))
    found["description"] = Reader(
        lambda blob: describe(spoken, blob.decode("utf-8", "replace"), "mail"),
        (b"Filtering e-mails, 3D wi-fi C++",),
        40,
    )
    vectors = at("t/v.npy", lambda path: read_tables(_nodes(folder), edges, vectors=path))
    found["vectors"] = Reader(vectors, (_npy(),), 4)
    found["query"] = Reader(at("q.csv", lambda path: read_query(path, data)), (b"node\nn1\n\nn2\n",), 8)
    save_pool(folder / "pool", EpisodeSampler(data, "test", 2, 2, 2).take(2), data)
    found["pool"] = Reader(at("p.jsonl", lambda path: read_pool(path, data)), ((folder / "pool").read_bytes(),), 4)
    found["grid"] = Reader(at("g.toml", read_grid), (GRID,), 8)
    found["reported"] = Reader(at("r.toml", read_reported), (REPORTED,), 8)
    found["tuned"] = Reader(
        at("o.json", lambda path: tuned_options(path, "gpn")),
        (b'{"method": "gpn", "options": {"lr": 0.01, "hidden": [4, 3]}}',),
        8,
    )
    found["class list"] = Reader(
        at("c.txt", lambda p: choose_split(data.y, data.class_names, {"train": ["c1"], "valid": ["c2"], "test": p})),
        (b"c3\nc4\n",),
        8,
    )
    product = b"{'asin': 'B0', 'related': {'also_viewed': ['B1']}, 'categories': [['A', 'B']], 'description': 'White'}"
    paper = b'{"id": "1", "venue": {"raw": "V"}, "year": 2014, "references": ["2"], "indexed_abstract": '
    paper += b'{"IndexLength": 2, "InvertedIndex": {"word": [0, 1]}}}'
    for name, line in (("amazon-clothing", product), ("dblp", paper)):
        found[f"line of {name}"] = Reader(DUMPS[name][1], (line,), 40)
    found["products"] = Reader(at("am/meta.json", BUILDERS["amazon-clothing"]), (product + b"\n" + product,), 4)
    found["papers"] = Reader(at("db/papers.txt.gz", BUILDERS["dblp"]), (gzip.compress(paper), paper), 4)
    found |= _reddit(folder, at)
    found |= _own_files(folder, at, data)
    return found


# --- seeds --------------------------------------------------------------------------------------------------------

GRID = b"""title = "T"
[defaults]
datasets = ["debian"]
seeds = 2
[[compare]]
methods = ["gpn", "wide"]
way = [5, 10]
shot = 3
[[sweep]]
methods = ["gpn"]
way = 5
shot = [1, 2]
[methods.wide]
method = "gpn"
options = { hidden = [8, 4] }
"""
REPORTED = b'source = "s"\n[[result]]\ndataset = "d"\nway = 5\nshot = 3\naccuracy = { gpn = 70.1 }\nf1 = { gpn = 69 }\n'


def _parquet(columns: dict[str, Any] | None = None) -> bytes:
    buffer = io.BytesIO()
    tags = {"id": ["a", "b", "c"], "label": ["x", None, "y"], "size": [1.5, None, 2], "tags": [["p"], [], None]}
    pq.write_table(pa.table(columns or tags), buffer, compression="none")
    return buffer.getvalue()


WRITTEN: dict[str, tuple[dict[str, Any], bytes]] = {
    "s.csv": ({}, 'id;vector;size\na;"[0.5, 2]";1,5\nb;[3 4];NA\n'.encode("utf-16")),
    "w.csv": ({"encoding": "utf-16-le", "multiline": True}, 'id|size\na|"1\n2"\nb|2\n'.encode("utf-16-le")),
    "c.tsv": (
        {"separator": ",", "decimal": ",", "encoding": "cp1252", "missing": "x", "no_node_header": True},
        'a,"1.234,5"\rb,"2,5"\r'.encode("cp1252"),
    ),
    "v.jsonl": (
        {"decimal": ".", "missing": ""},
        b'{"id": "a", "v": [0.5, 7], "b": NaN}\n{"id": "b", "v": [1, 2e3], "b": "1,234"}\n',
    ),
    "v.parquet": ({}, _parquet({"id": ["a", "b"], "v": [[0.5, 2.0], [3.0, 4.0]], "f": [7.0, 2.0**53]})),
    "d.csv": ({}, b"id,seen,day\na,2024-01-31,1.2.2023\nb,2024-02-01 10:00,13.2.2023\n"),
}
"""Tables in other ways of writing, each file with what is said about it."""


def _nodes(folder: Path) -> Path:
    path = folder / "nodes.csv"
    if not path.exists():
        path.write_bytes(b"id,label\na,x\nb,y\nc,x\n")
    return path


def _npy() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.eye(3))
    return buffer.getvalue()


def _npz(weighed: bool = False) -> bytes:
    buffer = io.BytesIO()
    csr = {"data": np.ones(2, np.float32), "indices": np.array([0, 1]), "indptr": np.array([0, 1, 2, 2, 2, 2, 2])}
    arrays: dict[str, Any] = {f"x_{part}": array for part, array in csr.items()} | {"x_shape": np.array([6, 3])}
    arrays |= {"y": np.repeat([0, 1], 3), "edge_index": np.array([[0, 1], [1, 2]]), "class_names": np.array(["a", "b"])}
    if weighed:
        names = np.array(["p", "q"])
        arrays |= {"edge_weight": np.array([1.5, 9.0]), "edge_type": np.array([0, 1]), "relation_names": names}
    np.savez(buffer, **arrays)
    return buffer.getvalue()


At = Callable[[str, Callable[[Path], object]], Callable[[bytes], object]]


def _reddit(folder: Path, at: At) -> dict[str, Reader]:
    """Three of the four files as they should be, the fourth as given."""
    buffer = io.BytesIO()
    np.save(buffer, np.arange(6.0).reshape(2, 3))
    files = {
        "reddit-G.json": b'{"nodes": [{"id": "a"}, {"id": "b"}], "links": [{"source": 0, "target": 1}]}',
        "reddit-id_map.json": b'{"a": 0, "b": 1}',
        "reddit-class_map.json": b'{"a": 3, "b": 4}',
        "reddit-feats.npy": buffer.getvalue(),
    }
    found = {}
    for name, seed in files.items():
        place = folder / name.replace(".", "_")
        place.mkdir(exist_ok=True)
        for other, blob in files.items():
            (place / other).write_bytes(blob)
        found[name] = Reader(at(f"{place.name}/{name}", lambda path: BUILDERS["reddit"](path.parent)), (seed,), 4)
    return found


def _own_files(folder: Path, at: At, data: Dataset) -> dict[str, Reader]:
    """Our own formats, each with right checksums: without them the fuzzer would see one line of code."""
    save_dataset(data, folder / "data")
    Estimator("gpn", 2, 2, episodes=10, hidden=(4, 3)).fit(data).save(folder / "run")
    found = {}
    for kind, home, read in (("model", folder / "run", load_model), ("dataset", folder / "data", load_dataset)):
        manifest, blob = ((home / f"{kind}.{end}").read_bytes() for end in ("json", "safetensors"))
        out = folder / f"forged-{kind}"
        out.mkdir(exist_ok=True)

        def forged(text: bytes, blob: bytes, kind: str = kind, out: Path = out, read: Any = read) -> object:
            with suppress(ValueError, RecursionError):
                meta = json.loads(text)
                if isinstance(meta, dict):
                    meta["sha256"] = {f"{kind}.safetensors": hashlib.sha256(blob).hexdigest()}
                    meta["sha256"]["manifest"] = hashlib.sha256(canonical(meta).encode()).hexdigest()
                    text = canonical(meta).encode()
            (out / f"{kind}.json").write_bytes(text)
            (out / f"{kind}.safetensors").write_bytes(blob)
            return read(out)

        found[f"{kind}.json"] = Reader(lambda text, f=forged, b=blob: f(text, b), (manifest,), 2)  # type: ignore[misc]
        found[f"{kind}.safetensors"] = Reader(lambda b, f=forged, m=manifest: f(m, b), (blob,), 2)  # type: ignore[misc]
    found["checkpoint"] = _checkpoint(folder, at)
    body = {"id": "a", "cell": {}, "status": "failed", "reason": "r"}
    found["ledger"] = Reader(
        at("l/cells.jsonl", lambda path: read_ledger(path.parent)), (json.dumps(body).encode(),), 8
    )
    found["service state"] = Reader(at("v/state.sqlite", _read_state), (_state(folder / "seed.sqlite"),), 2)
    layout = {"title": "t", "parts": [], "reported": []}
    found["layout"] = Reader(
        at("y/layout.json", lambda path: read_results(path.parent)), (json.dumps(layout).encode(),), 8
    )
    return found


def _checkpoint(folder: Path, at: At) -> Reader:
    model = {"weight": np.ones((1, 2), np.float32), "bias": np.ones(1, np.float32)}
    optimizer = Adam(model, 0.1, 0.0)
    journal = Checkpoints(folder / "ck")
    journal.save(model, optimizer, History([Point(10, 0.5, 0.5)]), copy.deepcopy(model))
    seed = (folder / "ck" / CHECKPOINT).read_bytes()
    return Reader(at(f"ck/{CHECKPOINT}", lambda _: journal.resume(model, optimizer)), (seed,), 2)


def _read_state(path: Path) -> None:
    for end in ("-wal", "-shm", "-journal"):
        path.with_name(path.name + end).unlink(missing_ok=True)
    with closing(Log(path)) as log:
        log.open()
    for aside in path.parent.glob(f"{path.name}.unusable-*"):
        aside.unlink()


def _state(path: Path) -> bytes:
    """The file of a service with classes, a description, an attached node and an answer."""
    answer = {"node": "n5", "class": "vpn", "verdict": "no"}
    changes = [
        ClassChange(name="vpn", support=["n1", "n2"]),
        AttachChange(nodes=[NewNode(node="new", row={"a": 1.5, "b": "c"}, edges=["n1"])]),
        ClassChange(name="mail", support=["n3"], description="send and filter e-mail"),
        AnswerChange.model_validate({"answers": [answer], "check": True, "id": "0123-abcd"}),
    ]
    with closing(Log(path)) as log:
        log.open()
        for change in changes:
            state = log.state.copied()
            state.apply(change, "Ann", time_of())
            log.append(state, change, "Ann", time_of())
    return path.read_bytes()


def scratch() -> Path:
    """A folder on a disk of memory, if there is one."""
    shm = Path("/dev/shm")  # noqa: S108
    return Path(tempfile.mkdtemp(prefix="fewnode-fuzz-", dir=shm if shm.is_dir() else None))
