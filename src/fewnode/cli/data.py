"""`fewnode data`: list, info and download; those that make a dataset are in `make_dataset`."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import typer

from fewnode.cli import make_dataset
from fewnode.cli.output import Json, Quiet, counting, emit, note, table
from fewnode.cli.table_options import ImportCommand

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Read tables and files into datasets; look at them."
)
Source = typer.Argument(..., metavar="D", help="A built-in name, a dataset directory or a file.")


@app.command("list")
def list_(quiet: bool = Quiet, as_json: bool = Json) -> None:
    """The datasets that come with the package, and those that can be built or downloaded.

    \b
    Example:
      fewnode data list
      fewnode data info debian
    """
    from fewnode.formats.sources import BUILT_IN, PUBLIC
    from fewnode.paper import BUILDERS

    loaded = [BUILT_IN[name]() for name in BUILT_IN]
    if as_json:
        found = [{"name": d.name, "nodes": d.graph.n, "classes": len(d.class_names)} for d in loaded]
        emit({"datasets": found, "builders": list(BUILDERS), "public": list(PUBLIC)})
        return
    rows = [
        (d.name, f"{d.graph.n:,}", f"{d.graph.n_edges:,}", f"{d.graph.n_features:,}", len(d.class_names))
        for d in loaded
    ]
    typer.echo(table(["name", "nodes", "edges", "attributes", "classes"], rows))
    note(f"fewnode data build makes {', '.join(BUILDERS)} from raw files", quiet)
    note(f"--data also takes, by the loaders of PyG and OGB: {', '.join(PUBLIC)}", quiet)


@app.command()
def info(
    source: str = Source,
    quiet: bool = Quiet,
    as_json: bool = Json,
) -> None:
    """What is in a dataset: what became of its tables, counts, degrees, homophily, and which tasks its classes allow.

    \b
    Example:
      fewnode data info debian

    Where few edges join nodes of one class (low homophily) the graph can hurt: `fewnode train --method gpn-plus` and
    `propagation` find out by themselves how far to trust it.
    """
    from fewnode.formats.sources import load
    from fewnode.tables.report import report, statistics

    data = load(source)
    if as_json:
        emit({**statistics(data), "source": data.info})
    else:
        typer.echo(report(data))


app.command("import", cls=ImportCommand)(make_dataset.import_)


app.command()(make_dataset.build)
app.command()(make_dataset.extend)


@app.command()
def download(
    name: str = typer.Argument(..., metavar="NAME", help="amazon-clothing, amazon-electronics or dblp."),
    out: Path = typer.Option(..., "--out", help="Directory for the files; a partial download there is continued."),
    base: str = typer.Option(None, "--from", help="The https address of a mirror; default: the authors' repository."),
    quiet: bool = Quiet,
    as_json: bool = Json,
) -> None:
    """Fetch the files that the paper's authors publish, and check each against its known id.

    \b
    Example:
      fewnode data download amazon-clothing --out published
      fewnode data import published --name amazon-clothing --out clothing
    """
    from fewnode.paper.download import DEFAULT_BASE
    from fewnode.paper.download import download as fetch

    tell: Any = defaultdict(lambda: counting("bytes", quiet or as_json))  # one for each file
    paths = fetch(name, out, base or DEFAULT_BASE, lambda file, done, total: tell[file](done, total))
    if as_json:
        emit({"name": name, "files": [str(path) for path in paths]})
    else:
        note("\n".join(str(path) for path in paths), quiet)
        note(f"all as published; next: fewnode data import {out} --name {name} --out {name}", quiet)
