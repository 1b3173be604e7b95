"""What the common commands cost, beside a yardstick of plain NumPy and SciPy that is measured in the same run.

Seconds differ from machine to machine, and with what else runs there; the ratio of two measured together hardly does.
`python tests/golden/test_golden_resources.py` writes the committed figures anew.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

COMMITTED = Path(__file__).parent / "answers" / "resources.json"
CPU_SLACK, MEMORY_SLACK = 1.3, 1.1
YARDSTICK = """
import numpy as np, scipy.sparse as sp
rng = np.random.default_rng(0)
edges = rng.integers(200_000, size=(2, 2_000_000))
matrix = sp.csr_array((np.ones(2_000_000, np.float32), (edges[0], edges[1])), shape=(200_000, 200_000))
dense = rng.standard_normal((200_000, 32), np.float32)
for _ in range(10):
    dense = matrix @ dense / 10
np.linalg.svd(rng.standard_normal((1500, 400)))
sum(hash((i, str(i))) & 1 for i in range(1_500_000))
"""


def spent(*command: object, home: Path) -> dict[str, float]:
    """Processor seconds and peak of resident memory of a process, its children included."""
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "XDG_CACHE_HOME": str(home / "cache"),
        "XDG_DATA_HOME": str(home),
    }
    with (home / "said").open("w") as said:
        process = subprocess.Popen(
            [sys.executable, *map(str, command)], cwd=home, env=environment, stdout=said, stderr=said
        )
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, (home / "said").read_text()[-2000:]
    return {"cpu": usage.ru_utime + usage.ru_stime, "mb": usage.ru_maxrss / 1024}


def fewnode(*arguments: object, home: Path) -> dict[str, float]:
    return spent("-m", "fewnode", *arguments, home=home)


def planted(path: Path, n: int, columns: int = 64) -> None:
    """A network of ten sections whose members are linked and alike, as an .npz file."""
    rng = np.random.default_rng(n)
    y = rng.integers(10, size=n)
    order = np.argsort(y, kind="stable")
    place = np.argsort(order)
    near = order[np.minimum(place + rng.integers(1, 50, size=n), n - 1)]
    edges = [np.stack([np.arange(n), other]) for other in (near, *rng.integers(n, size=(4, n)))]
    x = rng.standard_normal((n, columns), np.float32) + np.eye(10, columns, dtype=np.float32)[y]
    unknown = np.full(n, -1)
    np.savez(path, edge_index=np.concatenate(edges, axis=1), x=x, y=unknown)


def tables(home: Path, n: int, edges: int) -> None:
    rng = np.random.default_rng(0)
    with (home / "nodes.csv").open("w") as file:
        file.write("id,note,amount\n")
        file.writelines(f"node-{i},word{i % 977} word{i % 31},{i % 1013}.5\n" for i in range(n))
    ends = rng.integers(n, size=(edges, 2))
    with (home / "edges.csv").open("w") as file:
        file.write("source,target\n")
        file.writelines(f"node-{a},node-{b}\n" for a, b in ends.tolist())


def measured() -> Iterator[tuple[str, dict[str, float]]]:
    """Each journey with the yardstick beside it, one after the other."""
    with TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "support.csv").write_text("node,class\nopenvpn,vpn\ntinc,vpn\npostfix,mail\nmutt,mail\n")
        (home / "rows.csv").write_text("node,class\n0,a\n1,a\n2,b\n3,b\n")
        (home / "asked.csv").write_text("node\n" + "".join(f"{i}\n" for i in range(4, 100)))
        spent("-c", YARDSTICK, home=home)  # what is read from the disk is in memory from here on
        yield "yardstick", spent("-c", YARDSTICK, home=home)
        ask = ("predict", "--data", "debian", "--support", "support.csv", "--all", "--out")
        fewnode(*ask, "warm.csv", home=home)  # loops are compiled once for all versions of the sources
        (home / "cache").rename(home / "elsewhere")
        yield "predict.first", fewnode(*ask, "first.csv", home=home)
        yield "predict.second", fewnode(*ask, "second.csv", home=home)
        yield (
            "train.gpn",
            fewnode("train", "--data", "debian", "--method", "gpn", "--seed", 0, "--out", "run", home=home),
        )
        tables(home, 100_000, 1_000_000)
        table = ("data", "import", "--nodes", "nodes.csv", "--edges", "edges.csv", "--no-label", "--out", "tables")
        yield "import.1m_edges", fewnode(*table, home=home)
        for name, n in (("100k", 100_000), ("1m", 1_000_000)):
            planted(home / f"{name}.npz", n)
            fewnode("data", "import", f"{name}.npz", "--out", name, home=home)
            question = ("--support", "rows.csv", "--query", "asked.csv", "--out", f"{name}.csv")
            yield f"predict.{name}_nodes", fewnode("predict", "--data", name, *question, home=home)
        yield "yardstick.again", spent("-c", YARDSTICK, home=home)


def ratios() -> dict[str, dict[str, float]]:
    seen = dict(measured())
    unit = (seen.pop("yardstick")["cpu"] + seen.pop("yardstick.again")["cpu"]) / 2
    return {name: {"cpu": round(cost["cpu"] / unit, 2), "mb": round(cost["mb"])} for name, cost in seen.items()}


@pytest.mark.check
def test_nothing_costs_more_than_it_did() -> None:
    today, committed = ratios(), json.loads(COMMITTED.read_text())
    assert today.keys() == committed.keys()
    dearer = {
        name: (cost, committed[name])
        for name, cost in today.items()
        if cost["cpu"] > CPU_SLACK * committed[name]["cpu"] or cost["mb"] > MEMORY_SLACK * committed[name]["mb"]
    }
    assert dearer == {}


if __name__ == "__main__":
    COMMITTED.parent.mkdir(exist_ok=True)
    COMMITTED.write_text(json.dumps(ratios(), indent=1) + "\n")
