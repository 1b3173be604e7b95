"""`fewnode data`: list, info and download; those that make a dataset are in `make_dataset`."""

from __future__ import annotations

from pathlib import Path

import typer

from fewnode.cli import make_dataset
from fewnode.cli.options import Command, options
from fewnode.cli.output import Printing, table
from fewnode.cli.table_options import ImportCommand
from fewnode.options import Options, option

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Read tables and files into datasets; look at them."
)


class Source(Options):
    """A dataset."""

    source: str = option("A built-in name, a dataset directory or a file.", ..., metavar="D", door="argument")


@app.command("list", cls=Command)
@options(Printing)
def list_(say: Printing) -> None:
    """The datasets that come with the package, and those that can be built or downloaded.

    \b
    Example:
      fewnode data list
      fewnode data info debian
    """
    from fewnode.formats.sources import BUILT_IN, PUBLIC
    from fewnode.paper import BUILDERS

    loaded = [BUILT_IN[name]() for name in BUILT_IN]
    datasets = [{"name": d.name, "nodes": d.graph.n, "classes": len(d.class_names)} for d in loaded]
    rows = [
        (d.name, f"{d.graph.n:,}", f"{d.graph.n_edges:,}", f"{d.graph.n_features:,}", len(d.class_names))
        for d in loaded
    ]
    shown = table(["name", "nodes", "edges", "attributes", "classes"], rows)
    say.result({"datasets": datasets, "builders": list(BUILDERS), "public": list(PUBLIC)}, shown)
    say.note(f"fewnode data build makes {', '.join(BUILDERS)} from raw files")
    say.note(f"--data also takes, by the loaders of PyG: {', '.join(PUBLIC)}")


@app.command(cls=Command)
@options(Source, Printing)
def info(of: Source, say: Printing) -> None:
    """What is in a dataset: what became of its tables, counts, degrees, homophily, and which tasks its classes allow.

    \b
    Example:
      fewnode data info debian

    Where few edges join nodes of one class (low homophily) the graph can hurt: `fewnode train --method gpn-plus` and
    `propagation` find out by themselves how far to trust it.
    """
    from fewnode.formats.sources import load
    from fewnode.tables.report import report, statistics

    data = load(of.source)
    if say.as_json:
        say.result({**statistics(data), "source": data.info}, "")
    else:
        say.result({}, report(data))


app.command("import", cls=ImportCommand)(make_dataset.import_)


app.command(cls=Command)(make_dataset.build)
app.command(cls=Command)(make_dataset.extend)


class Published(Options):
    """Files that are fetched."""

    name: str = option("amazon-clothing, amazon-electronics or dblp.", ..., metavar="NAME", door="argument")
    out: Path = option("Directory for the files; a partial download there is continued.", ...)
    base: str | None = option("The https address of a mirror; default: the authors' repository.", flag="--from")


@app.command(cls=Command)
@options(Published, Printing)
def download(of: Published, say: Printing) -> None:
    """Fetch the files that the paper's authors publish, and check each against its known id.

    \b
    Example:
      fewnode data download amazon-clothing --out published
      fewnode data import published --name amazon-clothing --out clothing
    """
    from fewnode.paper.download import DEFAULT_BASE
    from fewnode.paper.download import download as fetch

    name, progress = of.name, say.progress()
    paths = fetch(
        name, of.out, of.base or DEFAULT_BASE, lambda file, done, total: progress(f"bytes of {file}", done, total)
    )
    say.result({"name": name, "files": [str(path) for path in paths]}, "")
    say.note(*map(str, paths), f"all as published; next: fewnode data import {of.out} --name {name} --out {name}")
