"""How long, and with how much memory, `fewnode data import` reads a million nodes and ten million edges from tables.

    python benchmarks/import_tables.py [--nodes 1000000] [--edges 10000000] [--format csv] [--keep DIR]
    python benchmarks/import_tables.py --nodes 2000000 --memory 2G     # also from disk to disk: the same bytes?

The tables are made from a fixed seed: ids are text, labels follow a long tail, and every node has eight words of text,
a number and a category. The import is the command itself in a process of its own, from start to written dataset.
"""

from __future__ import annotations

import argparse
import filecmp
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

TARGET_SECONDS, TARGET_GB = 60, 4


def numbered(prefix: str, numbers: np.ndarray) -> pa.Array:
    return pc.binary_join_element_wise(prefix, pc.cast(pa.array(numbers), pa.string()), "")


def make_tables(n: int, e: int) -> tuple[pa.Table, pa.Table]:
    rng = np.random.default_rng(0)
    words = [numbered("word", np.minimum(rng.zipf(1.3, n), 20_000)) for _ in range(8)]
    nodes = pa.table(
        {
            "id": numbered("node", np.arange(n)),
            "label": numbered("class", np.minimum(rng.zipf(1.2, n), 1000)),
            "text": pc.binary_join_element_wise(*words, " "),
            "size": rng.lognormal(size=n),
            "kind": numbered("kind", rng.integers(0, 20, n)),
        }
    )
    ends = [numbered("node", rng.integers(0, n, e)) for _ in range(2)]
    return nodes, pa.table({"source": ends[0], "target": ends[1]})


def write(table: pa.Table, path: Path) -> None:
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path)
    elif path.suffix == ".gz":
        with gzip.open(path, "wb", compresslevel=1) as file:
            pyarrow.csv.write_csv(table, file)
    else:
        pyarrow.csv.write_csv(table, path)


def measure(folder: Path, suffix: str, out: str = "dataset", memory: str | None = None) -> dict[str, float]:
    """Seconds by the clock and of processor time, and the peak of memory, of the import."""
    roles = ["--text", "text", "--numeric", "size", "--category", "kind"]
    tables = ["--nodes", folder / f"nodes.{suffix}", "--edges", folder / f"edges.{suffix}"]
    limit = ["--memory", memory] if memory else []
    command = [sys.executable, "-m", "fewnode", "data", "import", *tables, *roles, *limit, "--name", "tables", "-q"]
    start = time.perf_counter()
    process = subprocess.Popen([*command, "--out", folder / out])
    _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit("the import failed")
    seconds = time.perf_counter() - start
    return {
        "seconds": round(seconds, 1),
        "processor_seconds": round(used.ru_utime + used.ru_stime, 1),
        "gigabytes": round(used.ru_maxrss / 2**20, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=10_000_000)
    parser.add_argument("--format", default="csv", choices=["csv", "csv.gz", "parquet"])
    parser.add_argument("--memory", help="also import with this limit, and compare")
    parser.add_argument("--keep", type=Path, help="directory for the tables; default: a temporary one")
    given = parser.parse_args()
    folder = given.keep or Path(tempfile.mkdtemp(prefix="fewnode-import-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        for name, table in zip(("nodes", "edges"), make_tables(given.nodes, given.edges), strict=True):
            write(table, folder / f"{name}.{given.format}")
        del table
        found = measure(folder, given.format)
        if given.memory:
            found["within"] = {"memory": given.memory, **measure(folder, given.format, "pieces", given.memory)}
            files = [folder / out / "dataset.safetensors" for out in ("dataset", "pieces")]
            found["within"]["same_bytes"] = filecmp.cmp(*files, shallow=False)
    finally:
        for path in (folder / "dataset", folder / "pieces") if given.keep else (folder,):
            shutil.rmtree(path, ignore_errors=True)
    target = {"seconds": TARGET_SECONDS, "gigabytes": TARGET_GB}
    met = all(found[what] < most for what, most in target.items())
    shape = {"nodes": given.nodes, "edges": given.edges, "format": given.format}
    print(json.dumps({**shape, **found, "target": target, "met": met}))


if __name__ == "__main__":
    main()
