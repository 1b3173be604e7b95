"""`fewnode data list | info | import | build`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fewnode.cli.show import Json, Quiet, emit, note, table
from fewnode.errors import FewnodeError, closest

if TYPE_CHECKING:
    from fewnode.graph import Dataset

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="List, inspect, import and build datasets.")
Out = typer.Option(..., "--out", help="Directory for the dataset; it must not hold one yet.")


@app.command("list")
def list_(as_json: bool = Json) -> None:
    """The datasets that come with the package.

    \b
    Example:
      fewnode data list
    """
    from fewnode.datasets import BUILT_IN

    loaded = [BUILT_IN[name]() for name in BUILT_IN]
    if as_json:
        emit({"datasets": [{"name": d.name, "nodes": d.graph.n, "classes": len(d.class_names)} for d in loaded]})
        return
    rows = [
        (d.name, f"{d.graph.n:,}", f"{d.graph.n_edges:,}", f"{d.graph.n_features:,}", len(d.class_names))
        for d in loaded
    ]
    typer.echo(table(["name", "nodes", "edges", "attributes", "classes"], rows))


@app.command()
def info(
    source: str = typer.Argument(..., metavar="D", help="A built-in name, a dataset directory or a file."),
    as_json: bool = Json,
) -> None:
    """What is in a dataset: counts, class sizes, homophily, and which tasks its classes allow.

    \b
    Example:
      fewnode data info debian
    """
    from fewnode.datasets import load
    from fewnode.datasets.info import statistics

    facts = statistics(load(source))
    if as_json:
        emit(facts)
    else:
        typer.echo(describe(facts))


@app.command("import")
def import_(
    source: Path = typer.Argument(..., metavar="SRC", help="An .npz file."),
    out: Path = Out,
    split: str = typer.Option("50/20/30", "--split", help="Shares of train/valid/test classes, if the file has none."),
    seed: int = typer.Option(0, "--seed", min=0, help="Of that split."),
    directed: bool = typer.Option(False, "--directed", help="Keep the direction of edges."),
    quiet: bool = Quiet,
    as_json: bool = Json,
) -> None:
    """Read a network from a file and write it as a dataset directory.

    \b
    Example:
      fewnode data import network.npz --out mydata
      fewnode train --data mydata --out run
    """
    from fewnode.datasets import import_dataset

    data = import_dataset(source, _fractions(split), seed, directed)
    _keep(data, out, quiet, as_json)


@app.command()
def build(
    name: str = typer.Argument(..., metavar="NAME", help="debian."),
    raw: Path = typer.Option(..., "--raw", help="Directory with the raw files."),
    out: Path = Out,
    quiet: bool = Quiet,
    as_json: bool = Json,
) -> None:
    """Build a network from the raw files of its source.

    debian: the index files of apt, Packages and Translation-en (plain, .gz, .xz or .lz4), as fetched by
    `apt-get -o Acquire::Languages=en update`.

    \b
    Example:
      fewnode data build debian --raw /var/lib/apt/lists --out debian-now
    """
    from fewnode.datasets import BUILDERS

    if name not in BUILDERS:
        raise FewnodeError(f"unknown network {name!r}{closest(name, BUILDERS)}; known are {', '.join(BUILDERS)}")
    _keep(BUILDERS[name](raw), out, quiet, as_json)


def _keep(data: Dataset, out: Path, quiet: bool, as_json: bool) -> None:
    from fewnode.datasets.info import statistics
    from fewnode.io import save_dataset

    facts = statistics(data)
    if not as_json:
        note(describe(facts), quiet)
    save_dataset(data, out)
    if as_json:
        emit({**facts, "out": str(out)})
    else:
        note(f"written to {out}; next: fewnode train --data {out} --out run", quiet)


def describe(facts: dict[str, Any], bars: int = 12) -> str:
    """The facts for a terminal of 80 columns."""
    kind = "directed" if facts["directed"] else "undirected"
    homophily = "unknown" if facts["homophily"] is None else f"{facts['homophily']:.2f}"
    degree = facts["degree"]
    lines = [
        f"{facts['name']}: {facts['nodes']:,} nodes, {facts['edges']:,} {kind} edges",
        f"attributes        {facts['attributes']:,}, {facts['attributes_per_node']:.1f} of them a node",
        f"labelled nodes    {facts['labelled']:,} in {len(facts['class_sizes'])} classes",
        f"isolated nodes    {facts['isolated']:,}",
        f"degree            mean {degree['mean']:.1f}, median {degree['median']:.0f}, max {degree['max']:,}",
        f"edge homophily    {homophily}",
    ]
    for part, task in facts["largest_tasks"].items():
        size = facts["classes"][part]
        lines.append(
            f"{part + ' classes':<18}{size}: up to {task['way']}-way, {task['shot']}-shot with as many queries"
        )
    return "\n".join([*lines, "", *_histogram(facts["class_sizes"], bars)])


def _histogram(sizes: dict[str, int], bars: int) -> list[str]:
    """The long tail: the largest and the smallest classes as bars."""
    rows = list(sizes.items())
    shown = rows if len(rows) <= bars else [*rows[: bars // 2], *rows[-(bars - bars // 2) :]]
    top = max(sizes.values(), default=1)
    lines = [f"{name[:24]:<24} {size:>7,} {'█' * max(1, round(40 * size / top))}" for name, size in shown]
    if len(rows) > bars:
        lines.insert(bars // 2, f"… {len(rows) - bars} classes between")
    return lines


def _fractions(split: str) -> tuple[float, ...]:
    try:
        return tuple(float(share) for share in split.split("/"))
    except ValueError:
        raise FewnodeError(f"--split {split!r}: expected three shares such as 50/20/30") from None
