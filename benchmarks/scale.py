"""A network larger than memory from file to predictions, each stage in a process of its own: time, memory, disk.

    python benchmarks/scale.py --nodes 10_000_000 --edges 100_000_000 --memory 6G --out docs/scale.json
    python benchmarks/scale.py --nodes 1_000_000 --edges 10_000_000 --width 8000 --words 32 --memory 6G
    python benchmarks/scale.py --plan docs/scale-runs-plus.json     what it costs, on paper

The generator's memory is bounded, too; a network that an earlier run left with --keep is used again. Memory is the peak
of each process (VmHWM), mapped pages included. The support of the classification are nodes of test classes.

`--plan` fits processor seconds on runs of this script, with coefficients that are not negative and relative errors that
count alike, and holds back the runs with so many nodes. What is read at random costs more the larger the array is that
it is read from: hence doublings from 100,000 nodes on, whose numbers the caches of a core hold. Bytes are counted. Then
come networks that no machine here could hold. The text goes into docs/scale.md as it is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
from scipy.optimize import nnls

CLASSES = (20, 10, 10)
COMMUNITY = 1_000
INSIDE = 0.7
SPREAD = 0.5
"""Of log degrees: the largest degree is then some hundreds where the mean is 20."""
PIECE, ROWS = 1 << 20, 1 << 16
"""Edges, and rows of attributes, that are made at a time."""


def generate(path: Path, nodes: int, edges: int, width: int, words: int = 0, seed: int = 0) -> None:
    """Communities of `COMMUNITY` nodes of one class each, ends of edges by weight, attributes around the class's mean.

    With `words` a node has so many words instead, 3 of 10 from the class's own 200.
    """
    rng = np.random.default_rng(seed)
    classes = sum(CLASSES)
    community = rng.permutation(np.arange(-(-nodes // COMMUNITY)) % classes)
    name = rng.permutation(nodes).astype(np.int32)  # or a community would lie together on the disk
    total = np.concatenate([[0.0], np.cumsum(rng.lognormal(sigma=SPREAD, size=nodes))])
    y = np.empty(nodes, np.int64)
    y[name] = community[np.arange(nodes) // COMMUNITY]
    centre = rng.standard_normal((classes, width)).astype(np.float32)  # drawn also where words are asked for
    ends = np.empty((2, edges), np.int32)
    for low in range(0, edges, PIECE):
        count = min(PIECE, edges - low)
        one, other = _by_weight(total, count, rng), rng.permutation(_by_weight(total, count, rng))
        inside = rng.random(count) < INSIDE
        bottom = one[inside] // COMMUNITY * COMMUNITY
        top = np.minimum(bottom + COMMUNITY, nodes)
        at = total[bottom] + rng.random(bottom.size) * (total[top] - total[bottom])
        other[inside] = np.clip(np.searchsorted(total, at, side="right") - 1, bottom, top - 1)
        ends[0, low : low + count], ends[1, low : low + count] = name[one], name[other]
    labelled = np.where(rng.random(nodes) < 0.05, y, -1)
    bounds = np.cumsum([0, *CLASSES])
    parts = {f"{part}_classes": np.arange(*bounds[i : i + 2]) for i, part in enumerate(("train", "valid", "test"))}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for key, array in {"edge_index": ends, "y": labelled, **parts}.items():
            _write(archive, key, array.shape, array.dtype, [array])
        if words:
            _write_words(archive, y, width, words, rng)
        else:
            some = (y[low : low + ROWS] for low in range(0, nodes, ROWS))
            rows = (centre[part] + 3 * rng.standard_normal((part.size, width), np.float32) for part in some)
            _write(archive, "x", (nodes, width), np.dtype(np.float32), rows)
    np.save(path.with_suffix(".y.npy"), y)


def _by_weight(total: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """So many nodes by weights that sum up to `total`, ascending: looked up in order, they are found much faster."""
    gaps = np.cumsum(rng.standard_exponential(count + 1))  # of sorted uniform numbers
    return np.searchsorted(total, gaps[:-1] / gaps[-1] * total[-1], side="right") - 1


def _write_words(archive: zipfile.ZipFile, y: np.ndarray, width: int, words: int, rng: np.random.Generator) -> None:
    """Rows of words in ascending order, none twice."""
    topic = rng.integers(0, width, (sum(CLASSES), 200))
    count, rows = np.zeros(y.size, np.int64), []
    for low in range(0, y.size, PIECE // words):
        part = y[low : low + PIECE // words]
        shape = part.size, words
        own = topic[part[:, None], rng.integers(0, 200, shape)]
        common = (width * rng.random(shape) ** 3).astype(np.int64)
        drawn = np.sort(np.where(rng.random(shape) < 0.3, own, common), axis=1)
        new = np.diff(drawn, axis=1, prepend=-1) > 0
        count[low : low + part.size] = new.sum(axis=1)
        rows.append(drawn[new].astype(np.int32))
    indptr = np.concatenate([[0], np.cumsum(count)])
    ones = (np.ones(each.size, np.float32) for each in rows)
    _write(archive, "x_indptr", indptr.shape, indptr.dtype, [indptr])
    _write(archive, "x_indices", (int(indptr[-1]),), np.dtype(np.int32), rows)
    _write(archive, "x_data", (int(indptr[-1]),), np.dtype(np.float32), ones)
    shape = np.array([y.size, width])
    _write(archive, "x_shape", shape.shape, shape.dtype, [shape])


def _write(archive: zipfile.ZipFile, key: str, shape: tuple[int, ...], dtype: np.dtype, pieces) -> None:
    with archive.open(f"{key}.npy", "w", force_zip64=True) as file:
        header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        for piece in pieces:
            file.write(np.ascontiguousarray(piece).data)


def support_table(work: Path, way: int = 5, shot: int = 5) -> None:
    """Labelled nodes of the first test classes."""
    y = np.load(work / "network.y.npy", mmap_mode="r")
    first = sum(CLASSES[:2])
    rows = [f"{node},class {c}" for c in range(first, first + way) for node in np.flatnonzero(y == c)[:shot]]
    (work / "support.csv").write_text("node,class\n" + "\n".join(rows) + "\n")


def accuracy(work: Path, way: int = 5) -> float:
    """Of nodes of the support's classes, in the table of predictions."""
    y = np.load(work / "network.y.npy", mmap_mode="r")
    first, right, seen = sum(CLASSES[:2]), 0, 0
    with (work / "predictions.csv").open() as file:
        next(file)
        for line, label in zip(file, y, strict=True):
            if first <= label < first + way:
                seen += 1
                right += line.split(",", 2)[1] == f"class {label}"
    return right / seen


def watched(command: list[str], log: Path) -> dict[str, float]:
    """Run a command; its seconds, processor seconds and peak of resident memory."""
    start, peak = time.perf_counter(), 0
    with log.open("ab") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file)
    while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
        with suppress(OSError, IndexError):
            status = Path(f"/proc/{process.pid}/status").read_text()
            peak = max(peak, int(status.partition("VmHWM:")[2].split()[0]))
        time.sleep(0.05)
    process.returncode = os.waitstatus_to_exitcode(ended[1])
    if process.returncode:
        sys.exit(f"{' '.join(command)} failed with {process.returncode}; see {log}")
    seconds, processor = time.perf_counter() - start, ended[2].ru_utime + ended[2].ru_stime
    return {"seconds": round(seconds, 1), "processor_seconds": round(processor, 1), "peak_gb": round(peak / 2**20, 2)}


# --- what it costs, on paper ------------------------------------------------------------------------------------------

GB = 2**30
RANK, STRUCTURE = 256, 64
"""Directions of attributes at most, and those of the structure."""
STEPS, STRUCTURE_STEPS = 22, 50
"""Products that all views of a source share: 20 of Â and 2 of the walk; 10 and 40."""
STAGES = {"import": ("start", "a", "n d"), "train": ("start", "p", "p l"), "classify": ("start", "n")}
"""What the time of each stage is linear in: n and a are millions of nodes and arcs, p 10⁹ multiply-adds of a fit."""
PLANNED = {
    "ogbn-papers100M": (111_059_956, 1_615_685_872, 128, 6.0),
    "10 billion edges": (500_000_000, 10_000_000_000, 128, 6.0),
}
"""Nodes, edges, attributes and `spread`."""


class Network:
    """Counts of a network; `spread` is <k²>/<k>², 1 if all degrees are equal, exp(0.5²) of the generator."""

    def __init__(self, nodes: int, edges: int, width: int, spread: float = 1.28) -> None:
        arcs, columns, index = 2 * edges, min(width, RANK), 4 if 2 * edges + nodes < 2**31 else 8
        near = arcs + min(20_000_000, arcs * (arcs / nodes) * spread)  # pairs that are one or two steps apart
        diffused = 1.5 * arcs * (STEPS * columns + STRUCTURE_STEPS * STRUCTURE) / 1e9
        products = diffused + near * 5 * (STRUCTURE + 16) / 1e9
        self.shared = diffused / products
        """The share of a fit that workers share; the rest is one process's."""
        self.terms = {"start": 1, "a": arcs / 1e6, "n": nodes / 1e6, "n d": nodes / 1e6 * width, "p": products}
        self.terms["p l"] = products * float(np.log2(nodes / 100_000))
        self.dataset_bytes = index * (arcs + nodes) + 4 * nodes * width + 8 * nodes
        self.run_bytes = 4 * nodes * (5 * columns + 5 * STRUCTURE + 2 * RANK)  # sources, eight half-width views, z
        self.least_memory = 4 * nodes * 22 + 2 * (index + 4) * near  # a column of twelve arrays, degrees, what is near


def fit(runs: list[dict], stage: str) -> dict[str, float]:
    rows = np.array(
        [[Network(run["nodes"], run["edges"], run["width"]).terms[term] for term in STAGES[stage]] for run in runs]
    )
    seconds = np.array([run["stages"][stage]["processor_seconds"] for run in runs])
    return dict(zip(STAGES[stage], nnls(rows / seconds[:, None], np.ones(len(runs)))[0], strict=True))


def cost(network: Network, model: dict[str, float]) -> float:
    return sum(c * network.terms[term] for term, c in model.items())


def error(run: dict, stage: str, model: dict[str, float]) -> float:
    return (
        cost(Network(run["nodes"], run["edges"], run["width"]), model) / run["stages"][stage]["processor_seconds"] - 1
    )


def spoken(seconds: float) -> str:
    minutes = f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
    return f"{seconds:.0f} s" if seconds < 600 else minutes


def markdown(header: list[str], rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in [header, ["---"] * len(header), *rows]) + "\n"


def plan(path: Path, held_back: int) -> None:
    runs = json.loads(path.read_text())
    seen = [run for run in runs if run["nodes"] != held_back]
    models = {stage: fit(seen, stage) for stage in STAGES}
    print(f"Processor seconds, fitted on {len(seen)} runs of up to {max(r['nodes'] for r in seen):,} nodes. Here n are")
    print("millions of nodes, a = 2E of arcs, d is the width, p are 10⁹ multiply-adds,")
    print("l doublings from 100,000 nodes to all:\n")
    for stage, model in models.items():
        worst = max(abs(error(run, stage, model)) for run in seen)
        said = " + ".join(f"{c:.3g} ({term})" for term, c in model.items() if c > 0)
        print(f"- {stage}: {said}; largest error on these runs {100 * worst:.0f} %")
    for run in (run for run in runs if run["nodes"] == held_back):
        load = f"load {run['load_before']:.0f} when it began"
        print(f"\nHeld back: {run['nodes']:,} nodes, {run['edges']:,} edges, {load}.\n")
        rows = []
        for stage, model in models.items():
            measured, off = run["stages"][stage]["processor_seconds"], error(run, stage, model)
            rows.append([stage, f"{measured * (1 + off):.1f}", f"{measured:.1f}", f"{100 * off:+.0f} %"])
        print(markdown(["stage", "expected, processor s", "measured", "error"], rows))
    rows = []
    for name, counts in PLANNED.items():
        network = Network(*counts)
        seconds = {stage: cost(network, model) for stage, model in models.items()}
        seconds |= {"train on 16 workers": (1 - network.shared * 15 / 16) * seconds["train"]}
        sizes = f"{network.dataset_bytes / GB:.0f} + {network.run_bytes / GB:.0f}", f"{network.least_memory / GB:.0f}"
        rows.append([name, *sizes, *map(spoken, seconds.values())])
    print(markdown(["network", "disk GB", "memory GB at least", *seconds], rows))


def stages(given: argparse.Namespace, work: Path) -> dict[str, list[str]]:
    fewnode, limit = [sys.executable, "-m", "fewnode"], ["--memory", given.memory]
    shape = [f"--{name}={getattr(given, name)}" for name in ("nodes", "edges", "width", "words")]
    data, run = str(work / "data"), str(work / "run")
    classified = ["--support", str(work / "support.csv"), "--all", "--out", str(work / "predictions.csv")]
    return {
        "generate": [sys.executable, __file__, "--generate", f"--work={work}", *shape],
        "import": [*fewnode, "data", "import", str(work / "network.npz"), "--out", data, *limit],
        "train": [*fewnode, "train", "--data", data, "--out", run, *limit],
        "classify": [*fewnode, "predict", "--run", run, *classified, *limit],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=10_000_000)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--words", type=int, default=0, help="So many words a node, of --width, instead of numbers.")
    parser.add_argument("--memory", default="6G")
    parser.add_argument("--work", type=Path, default=Path("scale-work"))
    parser.add_argument("--keep", action="store_true", help="Leave the files.")
    parser.add_argument("--out", type=Path, help="Where the figures go, too, as JSON.")
    parser.add_argument("--plan", type=Path, metavar="RUNS", help="Fit on these runs instead, and look ahead.")
    parser.add_argument("--held-back", type=int, default=10_000_000, help="Nodes of runs that are not fitted on.")
    parser.add_argument("--generate", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    work = given.work
    if given.plan:
        plan(given.plan, given.held_back)
        return
    if given.generate:
        generate(work / "network.npz", given.nodes, given.edges, given.width, given.words)
        return
    work.mkdir(parents=True, exist_ok=True)
    found = {name: getattr(given, name) for name in ("nodes", "edges", "width", "words", "memory")}
    found |= {"load_before": round(os.getloadavg()[0], 1), "stages": {}}
    for name, command in stages(given, work).items():
        if name == "generate" and (work / "network.npz").exists():
            continue
        if name == "classify":
            support_table(work)
        print(f"{name} …", file=sys.stderr, flush=True)
        measured = watched(command, work / "log")
        disk = sum(path.stat().st_size for path in work.rglob("*") if path.is_file())
        found["stages"][name] = measured | {"disk_gb": round(disk / 2**30, 2)}
    text = json.dumps(found | {"accuracy": round(accuracy(work), 4)}, indent=1)
    print(text)
    if given.out:
        given.out.write_text(text + "\n")
    if not given.keep:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
