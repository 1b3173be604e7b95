"""Every command that the README, the docs and `--help` show is started as it is written, where it finds what it names.

Tutorials run theirs while the site is built. What would take longer than a minute even on small networks is stopped
once it says what it should.
"""

from __future__ import annotations

import itertools
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from cli.test_build import crowd
from datasets.test_fewshot_mat import publish
from fewnode.dataset import Dataset
from fewnode.formats.directory import save_dataset
from graphs import planted
from test_docs import COMMANDS, PAGES, ROOT, written

pytestmark = pytest.mark.check

PATIENCE = 300
LONG = {
    "fewnode experiment paper/": r"\d/\d+ .*: \d+\.\d %",
    "fewnode experiment research/": r"\d/\d+ .*: \d+\.\d %",
    "fewnode serve": "ready",
    "fewnode tune --data debian": "trial 1/10",
    "python benchmarks/scale.py --plan": "Held back",
    "python benchmarks/scale.py": "generate",  # ten million nodes take minutes
    "python benchmarks/speed.py": "they agree",
    "python benchmarks/": r"(?<![\w.])\d+\.\d+(?![\d.])",  # a figure: no address, no version
}
"""What begins so may be stopped when its output has this."""
ELSEWHERE = {
    ".* --backend ray": "tests/embedding/test_cluster.py",  # on a cluster of this machine
    "fewnode data import --nodes person:": "tests/golden/test_golden_tables.py",  # tables of several kinds
    "fewnode data download": "tests/paper/test_download.py",  # from a server on this machine
    "make demo": "tests/cli/test_demo.py",
    "make docs": "tests/test_docs.py",
    "make test": ".ci/run",
    "make check": "Makefile",  # which runs this
}


def shown() -> dict[str, list[str]]:
    """Commands in the blocks and sentences of each page, and in each help text, in their order."""
    found: dict[str, list[str]] = {}
    for page in PAGES:
        text = re.sub(r"^```\{run\}.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        inline = [c for c in re.findall(r"`(python benchmarks/[^`]+)`", text) if "…" not in c]
        found[str(page.relative_to(ROOT))] = list(dict.fromkeys([*written(text), *inline]))
    for name, command in COMMANDS.items():
        found[f"{name} --help"] = re.findall(
            r"^ +((?:fewnode|printf) .*)", command.help.replace("\\\n", " "), re.MULTILINE
        )
    return {place: commands for place, commands in found.items() if commands}


def run(command: str, folder: Path) -> None:
    """To its end, or until it says what a long one should; either way without an error."""
    if command.startswith("printf"):
        subprocess.run(["bash", "-c", command], cwd=folder, check=True)
        return
    words = shlex.split(command)
    awaited = next((text for start, text in LONG.items() if command.startswith(start)), None)
    program = {"fewnode": [sys.executable, "-m", "fewnode"], "python": [sys.executable]}[words[0]]
    env = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}", "PYTHONUNBUFFERED": "1"}
    log = folder / "log.txt"
    with log.open("wb") as out:
        process = subprocess.Popen(
            program + words[1:], cwd=folder, env=env, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
        until = time.monotonic() + PATIENCE
        while process.poll() is None:
            before = log.read_text(errors="replace")
            said = awaited is not None and re.search(awaited, before)
            if said or time.monotonic() > until:
                os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does: what it has started ends with it
                with suppress(subprocess.TimeoutExpired):
                    process.wait(30)
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                assert "Traceback" not in before, f"{command}: {before}"
                assert said, f"{command}: still at it after {PATIENCE} s: {log.read_text()}"
                return
            time.sleep(0.2)
    assert process.returncode == 0, f"{command}: {log.read_text()}"


def outputs(command: str) -> list[str]:
    return re.findall(r"--out (\S+)", command)


def clear(command: str, folder: Path) -> None:
    """Away with what an earlier command of the same page has left where this one writes to."""
    for place in outputs(command):
        if (folder / place).is_dir():
            shutil.rmtree(folder / place)
        else:
            (folder / place).unlink(missing_ok=True)


@pytest.fixture(name="world", scope="module")
def _world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small network under every name that the commands use."""
    world = tmp_path_factory.mktemp("world")
    for name in ("examples", "paper", "research", "benchmarks"):
        (world / name).symlink_to(ROOT / name)
    (world / "docs").mkdir()
    shutil.copy(ROOT / "docs" / "scale-runs-plus.json", world / "docs")
    data = planted(30)
    tables(world, data)
    split = {f"{part}_classes": getattr(data.split, part) for part in ("train", "valid", "test")}
    arrays = {"edge_index": np.stack(data.graph.adj.nonzero()), "y": data.y, **split}
    for name in ("amazon_clothing_test20", "coauthor_cs", "wikispeedia", "nell_partial", "network"):
        np.savez(world / f"{name}.npz", x=data.graph.x.toarray(), **arrays)
    for name in ("corafull_noattr", "amazon_electronics_noattr"):
        np.savez(world / f"{name}.npz", **arrays)
    for folder, name in itertools.product(
        ("DATA", "data"), ("amazon-clothing", "amazon-electronics", "dblp", "reddit")
    ):
        save_dataset(data, world / folder / name)
    (world / "dumps").mkdir()
    for folder in ("few_shot_data", "published"):
        (world / folder).mkdir()
        for part in publish(world / folder, "Amazon_clothing").glob("*.mat"):
            part.unlink()  # only what the authors published is opened
    dump = "".join(f"{record!r}\n" for leaf in map(str, range(30)) for record in crowd(leaf))
    (world / "dumps" / "meta_Clothing_Shoes_and_Jewelry.json").write_text(dump)
    run("fewnode data import --nodes nodes.csv --edges edges.csv --id package --label section --out mydata", world)
    run("fewnode train --data mydata --out run", world)
    for copy in ("other", "demo/run"):
        shutil.copytree(world / "run", world / copy)
    (world / "grid.toml").write_text(GRID)
    run("fewnode experiment grid.toml --out results", world)
    run("fewnode evaluate --run run --tasks 5 --save-pool tasks.jsonl", world)
    run("fewnode tune --data mydata --method meta-gnn --trials 1 --out tuned.toml", world)
    return world


PACKAGES = {20: ("openvpn", "tinc", "strongswan"), 21: ("postfix", "exim4", "exim4-base", "dovecot-core", "curl")}
"""Nodes of two classes that the small network has, too, by the names that examples give."""
GRID = """
[[compare]]
title = "Results"
way = 5
shot = 5
datasets = ["coauthor_cs.npz"]
methods = ["propagation"]
seeds = 1
tasks = 20
"""


def tables(world: Path, data: Dataset) -> None:
    words = ["".join(chr(97 + int(digit)) for digit in f"{i:04}") for i in range(data.graph.n_features)]
    names = [f"node-{i}" for i in range(data.graph.n)]
    for c, packages in PACKAGES.items():
        for node, name in zip(data.members(c), packages, strict=False):
            names[node] = name
    rows = ["package,name,node,section,kind,summary,size"]
    for i, (name, label) in enumerate(zip(names, data.y, strict=True)):
        text = " ".join(words[j] for j in data.graph.x[[i]].indices)
        rows.append(f"{name},{name},{name},s{label},s{label},{text},{i}")
    links = [f"{names[i]},{names[j]}" for i, j in zip(*data.graph.adj.nonzero(), strict=True) if i < j]
    asked = [f"node-{i}" for i in range(40, 60)]
    support = ["openvpn,vpn", "tinc,vpn", "postfix,mail", "exim4,mail"]
    files = {"nodes": rows, "edges": ["source,target", *links], "support": ["node,class", *support]}
    common = [int(data.graph.x[data.members(c)].sum(axis=0).argmax()) for c in range(len(data.class_names))]
    files["classes"] = ["class,description", *(f"s{c},{words[place]}" for c, place in enumerate(common))]
    files |= {"asked": ["node", *asked], "candidates": ["node", *asked]}
    files["new"] = [rows[0], "new-1,new-1,new-1,s1,s1,aaab aaac,3"]
    files |= {name: ["source,target", "new-1,node-1"] for name in ("new_edges", "links")}
    for name, lines in files.items():
        (world / f"{name}.csv").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("place", shown())
def test_commands_that_are_shown_do_what_they_say(place: str, world: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(world, tmp_path / "here", symlinks=True)
    if any("network.npz --memory" in command for command in shown()[place]):  # its nodes have no names
        (folder / "support.csv").write_text("node,class\n1,vpn\n2,vpn\n3,mail\n4,mail\n")
    for command in shown()[place]:
        if test := next((path for start, path in ELSEWHERE.items() if re.match(start, command)), None):
            assert (ROOT / test).exists()
            continue
        clear(command, folder)
        run(command, folder)
        for written_to in outputs(command):
            if not (folder / written_to).exists() and (world / written_to).is_file():
                shutil.copy(world / written_to, folder / written_to)  # it was stopped before it could write
