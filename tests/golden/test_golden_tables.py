"""Sloppy tables at the command line: accepted with these counts, or refused in a line that a terminal can show.

`python tests/golden/test_golden_tables.py` writes the committed answers anew.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from doors import commit, committed, done, fewnode
from sloppy import CASES, Case, Content, Contents, File

REFUSED = "refused"
READ_WHOLE = (".jsonl", ".npy")


def write(folder: Path, name: str, content: Content) -> str:
    if isinstance(content, File):
        name, content = content
    else:
        name += ".parquet" if isinstance(content, pa.Table) else ".csv"
    if isinstance(content, pa.Table):
        pq.write_table(content, folder / name)
    elif isinstance(content, list):
        np.save(folder / name, np.array(content))
    else:
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return name


def tables(folder: Path, what: str, contents: Contents) -> Iterator[str]:
    """Writes them, and gives the option for each."""
    if isinstance(contents, Mapping):
        for kind, content in contents.items():
            yield f"--{what}={kind}:{write(folder, kind, content)}"
    elif isinstance(contents, list):
        for i, content in enumerate(contents):
            yield f"--{what}={write(folder, f'{what}{i}', content)}"
    else:
        yield f"--{what}={write(folder, what, contents)}"


def imported(case: Case, folder: Path) -> Any:
    given = [*tables(folder, "nodes", case.nodes), *tables(folder, "edges", case.edges), *shlex.split(case.options)]
    files = [write(folder, "", file) for file in case.beside] + sorted(path.name for path in folder.iterdir())
    given += ["--min-nodes=1", "--name=sloppy"]
    said = fewnode("data", "import", *given, "--out=whole", folder=folder)
    assert all(line.isprintable() for line in said.err.splitlines())
    in_blocks = fewnode("data", "import", *given, "--out=blocks", "--memory=1G", "--json", folder=folder)
    if said.code:
        assert (said.code, said.out, said.err.count("\n"), in_blocks.code) == (2, "", 1, 2)
        assert not (folder / "whole").exists()
        return REFUSED
    assert max(map(len, said.err.splitlines())) <= 80
    assert all(file in said.err for file in files if not file.endswith((".npy", "labels.csv", "hierarchy.csv")))
    facts = done("data", "info", "whole", "--json", folder=folder).json
    if in_blocks.code == 0 or not any(file.endswith(READ_WHOLE) for file in files):
        assert in_blocks.json["sha256"] == facts["sha256"]
    counts = {name: facts[name] for name in ("nodes", "edges", "attributes", "labelled")}
    return {**counts, "classes": {name[:40]: size for name, size in sorted(facts["class_sizes"].items())}}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_sloppy_pair_gives_these_counts_or_is_refused(case: Case, tmp_path: Path) -> None:
    assert imported(case, tmp_path) == committed("tables")[case.name]


def test_there_are_enough_and_each_is_one_of_its_kind() -> None:
    assert list(committed("tables")) == [case.name for case in CASES]
    assert len({case.name for case in CASES}) == len(CASES) >= 140


if __name__ == "__main__":
    answers = {}
    for case in CASES:
        with TemporaryDirectory() as folder:
            answers[case.name] = imported(case, Path(folder))
    commit("tables", answers)
