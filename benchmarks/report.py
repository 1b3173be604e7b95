"""The report of a grid as large as the paper's: seconds and size of the page.

    python benchmarks/report.py

1,280 cells of made-up scores (4 networks, 4 settings, 8 methods, 10 seeds), the sweeps, an ablation and a case study.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from synthetic import case_part, noisy, part, write

NETWORKS = ("amazon-clothing", "amazon-electronics", "dblp", "reddit")
METHODS = ("deepwalk", "node2vec", "gcn", "sgc", "pn", "maml", "meta-gnn", "gpn")
THREE = ("gpn", "gpn-naive", "pn")
PARTS = ("gpn", "no valuator", "no graph", "no dropout", "no early stopping")
SWEEPS = {
    "way": [(n, 5, 5) for n in (2, 4, 6, 8, 10)],
    "shot": [(5, k, k) for k in (1, 3, 5, 7, 9)],
    "query": [(5, 5, m) for m in (1, 5, 10, 15, 20)],
}


def main() -> None:
    means = {name: 0.3 + 0.05 * i for i, name in enumerate(dict.fromkeys((*METHODS, *THREE, *PARTS)))}
    score = noisy(means, seeds=10)
    settings = [(way, shot, shot) for way in (5, 10) for shot in (3, 5)]
    parts = [part("compare", score, NETWORKS, METHODS, settings)]
    parts += [part("sweep", score, NETWORKS, THREE, points, along, along) for along, points in SWEEPS.items()]
    parts += [part("ablation", score, NETWORKS, PARTS), case_part(NETWORKS, ("meta-gnn", "gpn"), list("abcde"))]
    with tempfile.TemporaryDirectory() as folder:
        results, page = write(Path(folder) / "results", parts), Path(folder) / "report.html"
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "fewnode", "report", results, "--out", page, "-q"], check=True)
        seconds, size = time.perf_counter() - start, page.stat().st_size
        cells = sum(len(records) for _, records in parts)
    print(f"{cells} cells: {seconds:.1f} s (20 wanted), {size / 1e6:.2f} MB (2 wanted)")


if __name__ == "__main__":
    main()
