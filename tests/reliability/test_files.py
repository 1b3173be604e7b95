"""Model and dataset files from strangers: damage is always noticed, nothing in them runs, nothing in them explodes."""

from __future__ import annotations

import copy
import gzip
import hashlib
import io
import itertools
import json
import lzma
import operator
import pickle
import pickletools
import random
import shutil
import struct
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial, reduce
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.numpy import save as safetensors_bytes

from fewnode.cli.train import tuned_options
from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.experiment.grid import read_grid
from fewnode.experiment.ledger import read_ledger
from fewnode.experiment.results import read_results
from fewnode.formats.directory import canonical, load_dataset, save_dataset
from fewnode.formats.sources import load
from fewnode.method import Embeds
from fewnode.model.estimator import Estimator
from fewnode.model.model_files import load_model
from fewnode.recognition.classes import read_support
from fewnode.tables.read import read_tables
from fewnode.tables.report import report
from fewnode.tasks import read_pool
from graphs import planted as make
from sizes import Figure, in_child, sizes


@pytest.fixture(scope="module")
def small() -> Dataset:
    """Small enough that every byte can be damaged."""
    return make(classes=12, size=12)


@pytest.fixture(scope="module")
def kept(small: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kept")
    save_dataset(small, folder / "data")
    Estimator("gpn", 2, 2, episodes=10, hidden=(4, 3)).fit(small).save(folder / "run")
    return folder


T = TypeVar("T")
LOADERS: dict[str, Callable[[Path], object]] = {"run": load_model, "data": load_dataset}


def refusal(read: Callable[[], object]) -> float:
    """Processor seconds that saying no took; anything but our error is an error here."""
    start = time.process_time()
    with pytest.raises(FewnodeError):
        read()
    return time.process_time() - start


@sizes(400, 10_000, 200_000)
@pytest.mark.parametrize("what", ["run", "data"])
def test_every_flipped_bit_is_noticed(kept: Path, tmp_path: Path, figure: Figure, what: str, count: int) -> None:
    out = tmp_path / what
    shutil.copytree(kept / what, out)
    files = sorted(p for p in out.iterdir() if p.name != ".lock")
    good = {path: path.read_bytes() for path in files}
    rng, slowest = random.Random(0), 0.0
    for _ in range(count):
        path = rng.choices(files, [len(blob) for blob in good.values()])[0]
        bad = bytearray(good[path])
        place = rng.randrange(8 * len(bad))
        bad[place // 8] ^= 1 << place % 8
        path.write_bytes(bad)
        slowest = max(slowest, refusal(lambda: LOADERS[what](out)))
        path.write_bytes(good[path])
    LOADERS[what](out)
    figure(f"files.flips.{what}", f"{count:,} flipped bits: all refused, the slowest in {1000 * slowest:.0f} ms")


@sizes(97, 1, 1)
@pytest.mark.parametrize("what", ["run", "data"])
def test_every_truncation_is_noticed(kept: Path, tmp_path: Path, figure: Figure, what: str, count: int) -> None:
    out, slowest, tried = tmp_path / what, 0.0, 0
    shutil.copytree(kept / what, out)
    for path in sorted(out.glob("*.[js]*")):  # the card is not read
        good = path.read_bytes()
        for length in range(0, len(good), count):
            path.write_bytes(good[:length])
            slowest, tried = max(slowest, refusal(lambda: LOADERS[what](out))), tried + 1
        path.write_bytes(good)
    figure(f"files.cuts.{what}", f"{tried:,} truncations: all refused, the slowest in {1000 * slowest:.0f} ms")


# --- a stranger can write a checksum too --------------------------------------------------------------------------


def forged(source: Path, out: Path, kind: str, meta: dict[str, Any] | None = None, blob: bytes | None = None) -> Path:
    """A directory with other content and right checksums; keys with dots lead into tables."""
    out.mkdir(parents=True)
    manifest = json.loads((source / f"{kind}.json").read_text())
    for key, value in (meta or {}).items():
        table = manifest
        *path, last = key.split(".")
        for part in path:
            table = table[part]
        table[last] = value
    blob = (source / f"{kind}.safetensors").read_bytes() if blob is None else blob
    manifest["sha256"] = {f"{kind}.safetensors": hashlib.sha256(blob).hexdigest()}
    manifest["sha256"]["manifest"] = hashlib.sha256(canonical(manifest).encode()).hexdigest()
    (out / f"{kind}.json").write_text(canonical(manifest))
    (out / f"{kind}.safetensors").write_bytes(blob)
    return out


NASTY: list[Any] = [
    *(None, True, False, 0, -1, 1, 3, 1 << 40, 1 << 80, -(1 << 63), 0.5, 1e-320, 1e30, -1e30, 1e300),
    *("", "svd", "a", "1", "nan", "\0", "a\nb", "\u202e\U0001f600", "../../etc/passwd", "x" * 70_000, "cpu", "meta"),
    *([], {}, [[]], [None], ["a"], [1, 2], [1e30], {"a": {}}, {"": 1}, [[[[[]]]]]),
]
"""Values that some field somewhere does not expect."""


def fields(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of everything in a manifest, and of the first thing of each list."""
    if place:
        yield place
    for key in (
        sorted(value) if isinstance(value, dict) else range(min(1, len(value))) if isinstance(value, list) else ()
    ):
        yield from fields(value[key], (*place, key))


def mutants(path: Path, part: tuple[str, ...] = ()) -> Iterator[tuple[str, Callable[[], None]]]:
    """The manifest with one field other or gone, its checksums right; each has a name, and is written when called."""
    text = path.read_text()
    manifest = json.loads(text)
    del manifest["sha256"]["manifest"]
    gone = object()
    for place in [place for place in fields(manifest) if place[: len(part)] == part]:
        for value in [gone, *NASTY]:
            forged = copy.deepcopy(manifest)
            *way, last = place
            table = reduce(operator.getitem, way, forged)
            if value is gone:
                del table[last]
            else:
                table[last] = value
            if isinstance(forged.get("sha256"), dict):
                forged["sha256"]["manifest"] = hashlib.sha256(canonical(forged).encode()).hexdigest()
            yield (
                f"{place} = {'gone' if value is gone else repr(value)[:40]}",
                partial(path.write_text, canonical(forged)),
            )  # type: ignore[misc]


WHOLE: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "gpn": ({"episodes": 10, "hidden": (4, 3)}, ()),
    "gpn-plus": (dict.fromkeys(("mix", "sharpen", "metric", "ridge"), True) | {"views": "attributes"}, ("options",)),
    "propagation": ({"steps": 1, "teleport": 0.5, "scaling": "l2", "centre": True, "distance": "cosine"}, ("options",)),
    "deepwalk": ({"dimensions": 4, "walks": 1, "length": 5}, ("options",)),
    "sgc": ({"episodes": 10}, ("options",)),
    "logistic": ({}, ("options",)),
}
"""Options of a method, and the part of its manifest that is tried: what is not an option is the same for all."""


@pytest.mark.parametrize(
    ("method", "step"),
    [(name, 3) for name in WHOLE if name != "gpn-plus"] + [pytest.param(n, 1, marks=pytest.mark.check) for n in WHOLE],
)
def test_any_field_of_a_model_may_be_anything(
    small: Dataset, tmp_path: Path, figure: Figure, method: str, step: int
) -> None:
    """It is refused in our words, or its answers are numbers. Every `step`th manifest is tried."""
    options, part = WHOLE[method]
    Estimator(method, 2, 2, **options).fit(small).save(tmp_path / "run")
    tried = taken = 0
    for name, write in itertools.islice(mutants(tmp_path / "run" / "model.json", part), 0, None, step):
        write()
        tried += 1
        answers = ours_or(name, lambda: answers_of(load_model(tmp_path / "run"), small))
        if answers is not None:
            taken += 1
            assert all(np.isfinite(answer).all() for answer in answers), name
    assert tried > 100 / step
    assert taken > 0, "a fuzzer whose every file is refused tells little"
    figure(f"files.fields.{method}", f"{tried:,} manifests with one other field: {taken:,} taken, with finite answers")


def answers_of(model: Estimator, data: Dataset) -> list[Any]:
    task: tuple[Any, ...] = ([0, 13, 26], ["a", "b", "b"], [1, 14, 27])
    model.check_features(data)
    found = [model.predict_proba(data.graph, *task)]
    if isinstance(model.method_, Embeds):
        found.append(model.predict_proba(data.graph, *task, transductive=True))
        found += [model.familiar(data.graph, *task)] if model.trained_["membership"] else []
        model.explain(data.graph, *task)
    return found


def ours_or(name: str, read: Callable[[], T]) -> T | None:
    """What was read, or None if it was refused in one line; anything else is an error of that name."""
    try:
        return read()
    except FewnodeError as error:
        said = str(error)
    except Exception as error:
        raise AssertionError(name) from error
    assert "\n" not in said, name
    return None


def test_any_field_of_a_dataset_may_be_anything(small: Dataset, kept: Path, tmp_path: Path, figure: Figure) -> None:
    shutil.copytree(kept / "data", tmp_path / "data")
    tried = taken = 0
    for name, write in mutants(tmp_path / "data" / "dataset.json"):
        write()
        tried += 1
        taken += ours_or(name, lambda: report(load_dataset(tmp_path / "data"))) is not None
    assert tried > 500
    assert taken > 10
    figure("files.fields.data", f"{tried:,} datasets with one other field: {taken:,} taken, and described")


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_manifest_holds_no_number_that_is_none(kept: Path, tmp_path: Path, value: str) -> None:
    run = forged(kept / "run", tmp_path / "run", "model", {"trained.seconds": 12345.5})
    text = (run / "model.json").read_text().replace("12345.5", value)
    manifest = json.loads(text)
    del manifest["sha256"]["manifest"]
    plain = json.dumps(manifest, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    manifest["sha256"]["manifest"] = hashlib.sha256(plain.encode()).hexdigest()
    (run / "model.json").write_text(json.dumps(manifest, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    refusal(lambda: load_model(run))


@pytest.mark.parametrize("what", ["weights", "known"])
def test_an_answer_that_is_not_a_number_is_never_given(small: Dataset, kept: Path, tmp_path: Path, what: str) -> None:
    """Every field in its range, every weight finite, and yet nothing comes out."""
    found = {name: np.full_like(array, 3e38) for name, array in tensors_of(kept / "run" / "model.safetensors").items()}
    model = load_model(forged(kept / "run", tmp_path / "run", "model", None, safetensors_bytes(found)))
    task: tuple[Any, ...] = ([0, 13], ["a", "b"], [1, 14])
    with pytest.raises(FewnodeError, match="is not a number"), np.errstate(all="ignore"):
        model.familiar(small.graph, *task) if what == "known" else model.predict_proba(small.graph, *task)


def tensors_of(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    from safetensors.numpy import load_file

    return load_file(path)


def odd_tensors(found: dict[str, np.ndarray[Any, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    first = sorted(found)[0]
    yield "one too many", {**found, "zzz": np.zeros(3, np.float32)}
    yield "one missing", {name: array for name, array in found.items() if name != first}
    yield "none", {}
    yield "another shape", {**found, first: found[first][..., None]}
    yield "another type", {**found, first: found[first].astype(np.float16)}
    yield "another precision", {**found, first: found[first].astype(np.float64)}
    yield "not a number", {**found, first: np.full_like(found[first], np.nan)}
    yield "infinite", {**found, first: np.full_like(found[first], np.inf)}


def test_tensors_with_a_right_checksum_that_are_not_the_models(kept: Path, tmp_path: Path) -> None:
    found = tensors_of(kept / "run" / "model.safetensors")
    for i, (what, tensors) in enumerate(odd_tensors(found)):
        run = forged(kept / "run", tmp_path / f"{i} {what}", "model", None, safetensors_bytes(tensors))
        refusal(lambda: load_model(run))  # noqa: B023


def test_datasets_with_a_right_checksum_and_wrong_content(kept: Path, tmp_path: Path) -> None:
    found = tensors_of(kept / "data" / "dataset.safetensors")
    far = found["adj.indices"].copy()
    far[0] = 1 << 30
    bad: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"x_shape": [1 << 40, 3]}, {}),
        ({"x_shape": [3]}, {}),
        ({"x_shape": "ab"}, {}),
        ({"class_names": 5}, {}),
        ({"split": {"train": [0], "valid": [0], "test": []}}, {}),
        ({"split": {"train": [1 << 60], "valid": [], "test": []}}, {}),
        ({}, {"adj.indices": far}),
        ({}, {"adj.indices": -far}),
        ({}, {"adj.indptr": found["adj.indptr"][::-1].copy()}),
        ({}, {"y": found["y"].astype(np.float32)}),
        ({}, {"y": found["y"] - 7}),
        ({}, {"x.data": np.full_like(found["x.data"], np.nan)}),
        ({}, {"node_names.ends": found["node_names.ends"][:-1]}),
        ({}, {"node_names": np.full_like(found["node_names"], 255)}),
    ]
    for i, (meta, tensors) in enumerate(bad):
        blob = safetensors_bytes({**found, **tensors})
        refusal(lambda: load_dataset(forged(kept / "data", tmp_path / str(i), "dataset", meta, blob)))  # noqa: B023


# --- what would run ------------------------------------------------------------------------------------------------


class Canary:
    """Unpickled, it writes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def payloads(canary: Path) -> dict[str, bytes]:
    """Files that run code in readers that let them."""
    plain = {f"pickle {protocol}": pickle.dumps(Canary(canary), protocol) for protocol in range(6)}
    code = plain["pickle 2"]
    script = f"open({str(canary)!r}, 'w').close()"
    objects = np.empty(1, object)
    objects[0] = Canary(canary)
    npy, npz, zipped, saved, legacy = (io.BytesIO() for _ in range(5))
    np.save(npy, objects, allow_pickle=True)
    np.savez(npz, edge_index=objects, y=objects, x=objects, node_names=objects, info=objects)
    torch.save({"weights": Canary(canary)}, saved)
    torch.save({"weights": Canary(canary)}, legacy, _use_new_zipfile_serialization=False)
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("archive/data.pkl", code)
        archive.writestr("edge_index.npy", code)
    tensors = safetensors_bytes({"w": np.zeros(2, np.float32)}, {"code": script, "pickle": code.hex()})
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({script},)}}".ljust(117) + "\n"
    found = {
        **plain,
        "optimised": pickletools.optimize(code),
        "pickle in gzip": gzip.compress(code),
        "pickle in xz": lzma.compress(code),
        "pickle in zlib": zlib.compress(code),
        "npy of objects": npy.getvalue(),
        "npz of objects": npz.getvalue(),
        "npy with code for a header": b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode(),
        "torch.save": saved.getvalue(),
        "torch.save, old": legacy.getvalue(),
        "zip with pickles": zipped.getvalue(),
        "safetensors, then pickle": tensors + code,
        "pickle, then safetensors": code + tensors,
        "safetensors, then zip": tensors + zipped.getvalue(),
        "gzip, then pickle": gzip.compress(b"id,label\n") + code,
        "zip, then safetensors": zipped.getvalue() + tensors,
        "header of safetensors": tensors,
        "script": script.encode(),
        "literal": f"{{'asin': {script}, 'x': __import__('os').system('touch {canary}')}}".encode(),
        "json": json.dumps({"py/reduce": [{"py/function": "os.system"}, f"touch {canary}"]}).encode(),
        "yaml": f"!!python/object/apply:os.system ['touch {canary}']".encode(),
        "toml": f'method = "gpn"\n[options]\ncode = """{script}"""\n'.encode(),
        "csv": f"node,class\n\"=cmd|'touch {canary}'!A1\",$(touch {canary})\n`touch {canary}`,{{{{7*7}}}}\n".encode(),
        "shell": f"#!/bin/sh\ntouch {canary}\n".encode(),
        "template": f"{{{{ cycler.__init__.__globals__.os.popen('touch {canary}') }}}}".encode(),
        "matlab": b"MATLAB 5.0".ljust(124) + b"\x00\x01IM" + code,
    }
    buffer = io.BytesIO()
    pq.write_table(pa.table({"id": ["a"], "code": [code]}), buffer)
    return {**found, "parquet with pickle": buffer.getvalue()}


NAMES = ("d.npz", "n_network", "n_test.mat", "t.csv", "t.csv.gz", "t.jsonl", "t.parquet", "g.toml", "p.jsonl")


def doors(folder: Path, data: Dataset, blob: bytes) -> Iterator[Callable[[], object]]:
    """Every reader, given the same bytes."""
    folder.mkdir()
    for name in NAMES:
        (folder / name).write_bytes(blob)
    yield lambda: load(folder / "d.npz")
    yield lambda: load(folder)
    yield lambda: read_support(folder / "t.csv", data)
    yield lambda: read_pool(folder / "p.jsonl", data)
    yield lambda: read_grid(folder / "g.toml")
    yield lambda: tuned_options(folder / "g.toml", "gpn")
    for name in ("t.csv", "t.csv.gz", "t.jsonl", "t.parquet"):
        yield lambda name=name: read_tables(folder / name, folder / name)  # type: ignore[misc]
    for kind, read in (("model", load_model), ("dataset", load_dataset)):
        (folder / kind).mkdir()
        (folder / kind / f"{kind}.json").write_bytes(blob)
        (folder / kind / f"{kind}.safetensors").write_bytes(blob)
        yield lambda kind=kind, read=read: read(folder / kind)  # type: ignore[misc]
    (folder / "cells.jsonl").write_bytes(blob)
    (folder / "layout.json").write_bytes(blob)
    yield lambda: read_ledger(folder)
    yield lambda: read_results(folder)


def test_nothing_in_a_file_runs(small: Dataset, kept: Path, tmp_path: Path, figure: Figure) -> None:
    canary = tmp_path / "canary"
    found = payloads(canary)
    assert len(found) >= 30
    pickle.loads(found["pickle 2"])  # noqa: S301
    assert canary.exists(), "the canary sings where it is let"
    canary.unlink()
    opened = 0
    for number, blob in enumerate(found.values()):
        for read in doors(tmp_path / str(number), small, blob):
            opened += 1
            with suppress(FewnodeError):
                read()
        shutil.rmtree(tmp_path / str(number))
    forge = {"method": f"{tmp_path}/evil.py:Evil"}
    (tmp_path / "evil.py").write_text(f"open({str(canary)!r}, 'w')\nclass Evil: fit = predict_proba = print\n")
    refusal(lambda: load_model(forged(kept / "run", tmp_path / "run", "model", forge)))
    assert not canary.exists()
    figure("files.payloads", f"{len(found) + 1} payloads through {opened + 1} doors: the canary was silent")


# --- what would explode --------------------------------------------------------------------------------------------


def zip_of(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, blob in members.items():
            archive.writestr(name, blob)
    return buffer.getvalue()


def npy(shape: str, data: bytes = b"") -> bytes:
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def safetensors_header(entries: str) -> bytes:
    return struct.pack("<Q", len(entries)) + entries.encode()


def bombs(folder: Path, kept: Path, small: Dataset) -> Iterator[tuple[str, Callable[[], object]]]:
    """Each made before it is lit."""
    zeros = bytes(1 << 20)

    def put(name: str, blob: bytes) -> Path:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(blob)
        return folder / name

    def npz(name: str, members: dict[str, bytes]) -> Callable[[], object]:
        path = put(name, zip_of(members))
        return lambda: load(path)

    def table(name: str, blob: bytes) -> Callable[[], object]:
        path = put(name, blob)
        return lambda: read_tables(path, path)

    def model(name: str, blob: bytes | None, meta: dict[str, Any] | None = None) -> Callable[[], object]:
        path = forged(kept / "run", folder / name, "model", meta, blob)
        return lambda: load_model(path)

    def grid(name: str, blob: bytes) -> Callable[[], object]:
        path = put(name, blob)
        return lambda: read_grid(path)

    yield "zip of 100 MB of zeros", npz("a.npz", {"y.npy": zeros * 100})
    yield "an array of 200 MB of zeros", npz("a2.npz", {"y.npy": npy("(26214400,)") + zeros * 200})
    yield "npy header of 7 TiB", npz("b.npz", {"y.npy": npy("(1000000000000,)")})
    yield "npy header of 2^80", npz("c.npz", {"y.npy": npy(f"({1 << 80},)")})
    yield "npz of 20,000 members", npz("d.npz", {f"y{i}.npy": b"" for i in range(20_000)})
    many = zlib.compress(zeros * 100, 9)
    put("e/n_network", b"0\t1\n")
    put("e/n_test.mat", b"MATLAB 5.0".ljust(124) + b"\x00\x01IM" + struct.pack("<II", 15, len(many)) + many)
    yield "mat of 100 MB of zeros", lambda: load(folder / "e")
    yield "gzip of one line of 40 MB", table("f.jsonl.gz", gzip.compress(b'{"id": "' + zeros * 40 + b'"}\n'))
    yield "JSON a million deep", table("g.jsonl", b'{"id": ' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}\n")
    wide = b",".join(b"%d" % i for i in range(100_000)) + b"\n"
    yield "CSV of 100,000 columns", table("w.csv", wide * 4)
    support = put("w2.csv", b"node,class\n" + b"12," * 4_000_000)
    yield "a row of 4 million cells", lambda: read_support(support, small)
    header = put("w3.csv", b"node," * 2_000_000)
    yield "a support table of 2 million columns", lambda: read_support(header, small)
    entries = ",".join(f'"{i}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}' for i in range(100_000))
    yield "100,000 tensors", model("h", safetensors_header("{" + entries + "}"))
    entries = ",".join(f'"{i}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}' for i in range(5_000))
    yield "5,000 tensors", model("h2", safetensors_header("{" + entries + "}"))
    yield "safetensors header of 4 EiB", model("i", struct.pack("<Q", 1 << 62) + b"{}")
    wide = {"trained.width": 1 << 23, "trained.n_features": 1 << 23, "trained.feature_names": None}
    yield "a network of 32 TiB", model("j", None, wide | {"options.hidden": [1 << 20, 1 << 20]})
    put("k/model.json", b'{"a": [' + b"[]," * 8_000_000 + b"[]]}")
    yield "eight million lists", lambda: load_model(folder / "k")
    part = b'[[compare]]\ndatasets = "d"\nmethods = "gpn"\n'
    yield "two billion seeds", grid("l.toml", part + b"way = 5\nshot = 5\nseeds = 2147483647\n")
    axis = b"[" + b",".join(b"%d" % i for i in range(2, 10_000)) + b"]"
    yield "a trillion settings", grid("m.toml", part + b"way = %b\nshot = %b\nquery = %b\n" % (axis, axis, axis))
    yield "a number of 200,000 digits", grid("n.toml", b"a = " + b"9" * 200_000)
    quoted = put("o.csv", b"node,class\n" + b'"' + zeros * 20)
    yield "a quote that never ends", lambda: read_support(quoted, small)


def peak() -> int:
    """Most memory since it was last asked, in MB."""
    status = Path("/proc/self/status").read_text()
    Path("/proc/self/clear_refs").write_text("5")
    return int(status.partition("VmHWM:")[2].split()[0]) >> 10


def test_no_bomb_goes_off(kept: Path, small: Dataset, tmp_path: Path, figure: Figure) -> None:
    """Each in a fork of its own, for memory that was used is not given back."""
    tried, slowest, most = 0, 0.0, 0
    for name, light in bombs(tmp_path, kept, small):
        seen = tmp_path / "seen"

        def work() -> None:
            peak()
            before = peak()
            start = time.process_time()
            try:
                light()  # noqa: B023
            except FewnodeError as error:
                said = str(error)
            seconds = time.process_time() - start
            seen.write_text(json.dumps([seconds, peak() - before, said]))  # noqa: B023

        assert in_child(work, quiet=False) == 0, name
        seconds, memory, said = json.loads(seen.read_text())
        assert memory < 100, (name, memory, said)
        tried, slowest, most = tried + 1, max(slowest, seconds), max(most, memory)
    assert tried >= 12
    figure("files.bombs", f"{tried} bombs: refused in at most {slowest:.2f} s and {most} MB")
