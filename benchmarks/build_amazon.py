"""How fast a raw dump streams: a network from a generated Amazon-style file, in MB/s of one core and peak memory.

    python benchmarks/build_amazon.py --megabytes 1000 [--gzip] [--file FILE]

The file is made as SNAP's are: long and short lines, a long tail of categories, and of the products about as many in
classes that stay as the paper's networks have. Speed counts the whole build, both passes and the bag of words, against
the size of the plain text.
The target is 40 MB/s and under 1 GB.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from fewnode.datasets.amazon import build_amazon_clothing

LINE_BYTES = 1300  # on average, to choose how many products there are to link to


def write_dump(path: Path, megabytes: int, seed: int = 0) -> None:
    with gzip.open(path, "wb", compresslevel=5) if path.suffix == ".gz" else path.open("wb") as file:
        written = 0
        for line in products(megabytes * 1_000_000 // LINE_BYTES, seed):
            written += file.write(line)
            if written >= megabytes * 1_000_000:
                return


def products(n: int, seed: int) -> Iterator[bytes]:
    """Endless lines about n products: two thirds have links, half a description, one in five descriptions a quote."""
    rng = random.Random(seed)
    vocabulary = ["".join(rng.choices("aeiourstlnmpdc", k=rng.randrange(3, 9))) for _ in range(12_000)]
    categories = [f"{rng.choice(vocabulary).title()} {i}" for i in range(3_000)]
    weights = [(i + 3) ** -1.5 for i in range(len(categories))]
    number = 0
    while True:
        record: dict[str, object] = {"asin": f"B{number:09d}", "title": " ".join(rng.choices(vocabulary, k=7))}
        [leaf] = rng.choices(categories, weights)
        record["categories"] = [["Clothing, Shoes & Jewelry", "Women", leaf], ["Novelty, Costumes & More", leaf]]
        if rng.random() < 0.66:
            kinds = (("also_bought", 90), ("also_viewed", 60), ("bought_together", 4))
            record["related"] = {
                kind: [f"B{rng.randrange(n):09d}" for _ in range(rng.randrange(1, most))] for kind, most in kinds
            }
        if rng.random() < 0.5:
            text = " ".join(rng.choices(vocabulary, k=rng.randrange(10, 220)))
            record["description"] = text + rng.choice((".", ".", ".", ". It's 6'", ". 4\" heel, it's \\n"))
        record["imUrl"] = f"http://ecx.images-amazon.com/images/I/{number:x}._SY300_.jpg"
        record["price"] = round(rng.random() * 200, 2)
        record["salesRank"] = {"Clothing": rng.randrange(2_000_000)}
        yield f"{record!r}\n".encode()
        number += 1


def measure(path: Path, megabytes: int) -> dict[str, object]:
    """In this process: seconds of wall clock and of one core, and the most memory it ever held."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall, core = time.perf_counter(), time.process_time()
    data = build_amazon_clothing(path)
    wall, core = time.perf_counter() - wall, time.process_time() - core
    return {
        "file": path.name,
        "megabytes": megabytes,
        "seconds": round(wall, 1),
        "core_seconds": round(core, 1),
        "mb_per_second": round(megabytes / wall, 1),
        "mb_per_core_second": round(megabytes / core, 1),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "peak_mb_before": before // 1024,
        "network": str(data.graph),
        "records": data.info["records"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--gzip", action="store_true", help="compress the generated file, as SNAP's are")
    parser.add_argument("--file", type=Path, help="keep the generated file here, and use it if it is there already")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measure(given.file, given.megabytes)))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = given.file or Path(folder) / ("products.json.gz" if given.gzip else "products.json")
        if not path.exists():
            write_dump(path, given.megabytes)
        # A process of its own, so that the generator's memory is not counted.
        subprocess.run(
            [sys.executable, __file__, "--measure", "--file", path, "--megabytes", str(given.megabytes)], check=True
        )


if __name__ == "__main__":
    main()
