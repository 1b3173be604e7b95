"""Fuzz one reader, led by coverage: `python fuzz/run.py npz --runs 100000`; without a name it lists them.

A crash is written by atheris as `crash-…`; so is an input that takes over a second. What is found becomes a test.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import sys
import warnings
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parent))
with atheris.instrument_imports(include=["fewnode.datasets", "fewnode.io", "fewnode.experiment", "fewnode.estimator"]):
    from readers import readers, scratch

MEMORY = 512


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reader", nargs="?")
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    warnings.simplefilter("error")  # as in the tests: a warning of a library is something we did not check
    folder = scratch()
    found = readers(folder)
    if given.reader not in found:
        sys.exit("\n".join(found))
    reader = found[given.reader]
    corpus = folder / "corpus"
    corpus.mkdir()
    for number, seed in enumerate(reader.seeds):
        (corpus / str(number)).write_bytes(seed)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    arguments = [f"-runs={given.runs}", f"-seed={given.seed}", "-timeout=1", "-max_len=65536", "-verbosity=0"]
    arguments += [f"-rss_limit_mb={before + MEMORY}", "-print_final_stats=1", str(corpus)]
    atheris.Setup([sys.argv[0], *arguments], lambda blob: reader(blob) and None)
    try:
        atheris.Fuzz()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
