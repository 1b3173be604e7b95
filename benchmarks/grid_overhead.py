"""What a grid costs beyond its cells: the share of the processes' time in which no cell was trained or evaluated.

    python benchmarks/grid_overhead.py --workers 2 --seeds 12

The whole command is timed, from its start to its end: imports, reading the network, starting processes, writing.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fewnode.experiment.ledger import read_ledger

GRID = """
[[compare]]
datasets = "debian"
methods = ["gpn", "gpn-naive"]
way = [5, 10]
shot = 5
seeds = {seeds}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=12)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        grid, out = Path(folder) / "grid.toml", Path(folder) / "out"
        grid.write_text(GRID.format(seeds=arguments.seeds))
        command = [sys.executable, "-m", "fewnode", "experiment", grid, "--out", out, "--workers", arguments.workers]
        start = time.perf_counter()
        subprocess.run([*map(str, command), "-q"], check=True)
        wall = time.perf_counter() - start
        records = read_ledger(out)[0].values()
    own = sum(sum(record.seconds.values()) for record in records)
    overhead = 1 - own / (wall * arguments.workers)
    print(f"{len(records)} cells, {wall:.1f} s with {arguments.workers} workers; cells' own time {own:.1f} s")
    print(f"overhead {100 * overhead:.1f} % (at most 5 % wanted)")


if __name__ == "__main__":
    main()
