"""How long, and with how much memory, `fewnode data import` reads two million nodes and ten million edges from CSV.

    python benchmarks/import_tables.py --nodes 2000000 --memory 2G     # also within a limit: are the bytes the same?

The tables are made from a fixed seed: ids are text, labels follow a long tail, and every node has eight words of text,
a number and a category. The import is the command itself in a process of its own, from start to written dataset.
"""

from __future__ import annotations

import argparse
import filecmp
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv


def numbered(prefix: str, numbers: np.ndarray) -> pa.Array:
    return pc.binary_join_element_wise(prefix, pc.cast(pa.array(numbers), pa.string()), "")


def make_tables(folder: Path, n: int, e: int) -> None:
    rng = np.random.default_rng(0)
    words = [numbered("word", np.minimum(rng.zipf(1.3, n), 20_000)) for _ in range(8)]
    nodes = {
        "id": numbered("node", np.arange(n)),
        "label": numbered("class", np.minimum(rng.zipf(1.2, n), 1000)),
        "text": pc.binary_join_element_wise(*words, " "),
        "size": rng.lognormal(size=n),
        "kind": numbered("kind", rng.integers(0, 20, n)),
    }
    pyarrow.csv.write_csv(pa.table(nodes), folder / "nodes.csv")
    edges = {end: numbered("node", rng.integers(0, n, e)) for end in ("source", "target")}
    pyarrow.csv.write_csv(pa.table(edges), folder / "edges.csv")


def measure(folder: Path, out: str, *limit: str) -> dict[str, float]:
    roles = ["--text", "text", "--numeric", "size", "--category", "kind", "--name", "tables", "-q", *limit]
    tables = ["--nodes", folder / "nodes.csv", "--edges", folder / "edges.csv", "--out", folder / out]
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "fewnode", "data", "import", *tables, *roles])
    _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit("the import failed")
    seconds, processor = time.perf_counter() - start, used.ru_utime + used.ru_stime
    return {"seconds": seconds, "processor_seconds": processor, "gigabytes": used.ru_maxrss / 2**20}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=2_000_000)
    parser.add_argument("--edges", type=int, default=10_000_000)
    parser.add_argument("--memory", help="also import within this limit, and compare")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_tables(folder, given.nodes, given.edges)
        found: dict[str, object] = {"in memory": measure(folder, "dataset")}
        if given.memory:
            found[given.memory] = measure(folder, "pieces", "--memory", given.memory)
            files = [folder / out / "dataset.safetensors" for out in ("dataset", "pieces")]
            found["same bytes"] = filecmp.cmp(*files, shallow=False)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
