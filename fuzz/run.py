"""Fuzz readers, led by coverage: `python fuzz/run.py npz grid --runs 100000`; without names, all of them.

Each reader gets its share of the runs in a fork of its own. An input that raises anything but our error, hangs or takes
512 MB is written as `crash-…` or `timeout-…` to the current folder. What is found becomes a test.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import sys
import warnings
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parent))
SOURCE = Path(__file__).parents[1] / "src"
COMPILED = [
    ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    for folder in ("engine", "methods", "represent")
    for path in (SOURCE / "fewnode" / folder).glob("*.py")
]
"""Loops of machine code cannot be watched; methods and views read no files."""
with atheris.instrument_imports(include=["fewnode"], exclude=COMPILED):
    from readers import Reader, readers, scratch

MEMORY = 512


def fuzz(reader: Reader, runs: int, seed: int, corpus: Path) -> None:
    """In this process, which ends with it."""
    corpus.mkdir(parents=True)
    for number, blob in enumerate(reader.seeds):
        (corpus / str(number)).write_bytes(blob)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    arguments = [f"-runs={runs}", f"-seed={seed}", "-timeout=60", "-max_len=65536", "-verbosity=0"]
    arguments += [f"-rss_limit_mb={before + MEMORY}", str(corpus)]

    def once(blob: bytes) -> None:
        reader(blob)

    atheris.Setup([sys.argv[0], *arguments], once)
    atheris.Fuzz()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reader", nargs="*")
    parser.add_argument("--runs", type=int, default=100_000, help="of all readers together")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    warnings.simplefilter("error")  # as in the tests: a warning of a library is something we did not check
    folder = scratch()
    every = readers(folder)
    chosen = {name: every[name] for name in given.reader} or every
    shares = sum(reader.share for reader in chosen.values())
    failed = []
    for name, reader in chosen.items():
        runs, start = max(1, given.runs * reader.share // shares), os.times()
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            fuzz(reader, runs, given.seed, folder / "corpus" / name)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        spent = os.times().children_user - start.children_user
        print(f"{name}: {runs:,} executions, {spent:.0f} s of processor time, exit {code}", flush=True)
        failed += [name] if code else []
    shutil.rmtree(folder, ignore_errors=True)
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
