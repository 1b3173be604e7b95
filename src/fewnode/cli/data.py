"""`fewnode data`: list, info, import, build, extend and download."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from pydantic import create_model

from fewnode.cli.options import Command, options, with_flags
from fewnode.cli.output import Printing, table
from fewnode.cli.source import keep_memory
from fewnode.errors import FewnodeError, closest
from fewnode.options import Options, option
from fewnode.tables.spec import ImportSpec

if TYPE_CHECKING:
    from fewnode.dataset import Dataset

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Read tables and files into datasets; look at them."
)


CLASSES = ("no_label", "split", "seed", "min_nodes", "train_classes", "valid_classes", "test_classes", "name")
"""What can be said of every source."""
WRITTEN = ("separator", "decimal", "encoding", "missing", "multiline", "no_header", "no_node_header")
NEW_ROWS = ("id", "label", "labels", "vector", "encoder", "source", "target", "weight", "relation", "unknown_ends")
EDGES = option(
    "Table of edges, or FILE:SOURCE,TARGET with its columns of node ids. NAME: their kind. Repeatable.",
    [],
    metavar="[NAME:]FILE",
)


class Target(Options):
    """Where a dataset goes."""

    out: Path = option("Directory for the dataset; it must not hold one yet.", ...)


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

    loaded = [make() for make in BUILT_IN.values()]
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
        say.result({}, with_flags(report(data), ImportSpec, Printing))


class ImportCommand(Command):
    """A command whose `--directed` may have a value or not.

    A word behind it is the name of a relation, unless it is the file to import.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        tables = any(arg.split("=")[0] in ("--nodes", "--edges") for arg in args)
        given: list[str] = []
        for arg, after in zip(args, [*args[1:], "-"], strict=True):
            bare = arg == "--directed" and (after.startswith("-") or (not tables and Path(after).exists()))
            given.append("--directed=" if bare else arg)
        return super().parse_args(ctx, given)


class Tables(Target):
    """What is read."""

    file: Path | None = option(
        "An .npz, .graphml or .gml file, or a folder of published files.", metavar="SRC", door="argument"
    )
    nodes: list[str] = option(
        "Table of nodes: .csv, .tsv, .jsonl (also .gz) or .parquet. NAME: their kind. Repeatable.",
        [],
        metavar="[NAME:]FILE",
    )
    edges: list[str] = EDGES


@app.command("import", cls=ImportCommand)
@options(Tables, ImportSpec, Printing)
def import_(of: Tables, spec: ImportSpec, say: Printing) -> None:
    """Read a network from a file, or from tables of nodes and of edges, and write it as a dataset directory.

    What became of every column is printed before anything is written.

    \b
    Example:
      fewnode data import network.npz --out mydata
      fewnode data import --nodes nodes.csv --edges edges.csv --id package \\
          --label section --text summary --numeric size --out mydata
      fewnode data import --nodes person:people.csv --nodes phone:phones.csv \\
          --edges pays:transfers.csv:payer,payee \\
          --edges uses:logins.csv:person,phone --label fraud --out mydata
    \f

    Columns that no --text, --numeric, --category or --vector names are used as what they look like, unless --only says
    so. The label never becomes an attribute. What may be the answer becomes one only if you name it. Numbers that are
    missing count as the mean, and a flag says so; `fewnode data extend` encodes new nodes the same way later.

    The classes are dealt into training, validation and test classes, 50/20/30 by --seed; those that --test-classes
    lists are for test, and the rest is dealt. Classes to be found later need not be in the tables at all.
    """
    file, out, no_label = of.file, of.out, spec.no_label
    _check_free(out)
    if file is not None and (of.nodes or of.edges):
        raise FewnodeError(f"{file} is one file; --nodes, --edges and what is said about them are for tables")
    if file is None and not (of.nodes and of.edges):
        raise FewnodeError("give a file, or a table of nodes and one of edges: --nodes nodes.csv --edges edges.csv")
    limit, progress = keep_memory(spec.memory), partial(say.progress(), "texts encoded")
    if file is not None:
        data, source = _import_file(file, out, spec, limit, progress), str(file)
    else:
        from fewnode.tables.read import read_tables

        tables, source = (_named_files("--nodes", of.nodes), _named_files("--edges", of.edges)), " and ".join(of.nodes)
        spec = spec if spec.name else spec.model_copy(update={"name": out.name})
        made = [path for path in (out, *out.parents) if limit and not path.exists()]
        try:
            if limit:
                out.mkdir(parents=True, exist_ok=True)
            data = read_tables(*tables, spec=spec, progress=progress, room=out if limit else None)
        except BaseException:
            for folder in made:
                with suppress(OSError):
                    folder.rmdir()
            raise
    if not (no_label or spec.labels or not data.encoding or "label" in data.encoding["spec"]):
        others = ", ".join(column for column, role in data.info["columns"].items() if role != "id")
        name_it = f"which column holds the class? Name it with --label: {others}; none: --no-label"
        raise FewnodeError(f"{source}: {name_it if others else 'no column holds the class: say --no-label'}")
    if no_label and data.graph.home != out.resolve() and (data.y >= 0).any():
        raise FewnodeError(f"{source}: --no-label, but there are classes in it; leave that option out")
    _keep(data, out, say)


def _import_file(source: Path, out: Path, spec: ImportSpec, limit: int | None, progress: Any) -> Dataset:
    """A file's own class split stays unless another is asked for. With a limit of memory it is imported in pieces."""
    from fewnode.formats.graphs import read_graph
    from fewnode.formats.npz import has_split
    from fewnode.formats.sources import import_dataset
    from fewnode.tables.splits import choose_split

    given, split = {name: getattr(spec, name) for name in spec.model_fields_set}, spec.class_lists or spec.split
    is_graph = source.name.lower().removesuffix(".gz").endswith((".graphml", ".gml"))
    used, where = {*CLASSES, "directed", "weight_scale", "memory"}, f"for {source}, which is one file"
    if is_graph:
        used = {*ImportSpec.model_fields} - {*WRITTEN, "source", "target", "memory"}
    unused = [field for field in given if field not in used]
    if not unused and not is_graph and split is None:
        where = f"where {source} has a class split of its own and no --split replaces it"
        unused = [name for name in ("min_nodes", "seed") if name in given and (name != "seed" or has_split(source))]
    if unused:
        raise FewnodeError(f"{', '.join(map(ImportSpec.flag, unused))}: not used {where}; leave it out")
    if is_graph:
        return read_graph(source, progress=progress, **{"name": out.name, **given})
    if limit and not source.name.lower().endswith(".npz"):
        raise FewnodeError(f"{source}: --memory imports .npz files and tables, not this one")
    read: dict[str, Any] = {"seed": spec.seed, "directed": spec.directed, "name": spec.name, "scale": spec.weight_scale}
    data = import_dataset(source, **read, room=out if limit else None)
    if split is None:
        return data
    return replace(data, split=choose_split(data.y, data.class_names, split, spec.seed, spec.min_nodes))


class Raw(Target):
    """Raw files."""

    name: str = option("amazon-clothing, amazon-electronics, dblp or reddit.", ..., metavar="NAME", door="argument")
    raw: Path = option("Directory with the raw files.", ...)


@app.command(cls=Command)
@options(Raw, Printing)
def build(of: Raw, say: Printing) -> None:
    """Build a network from the raw files of its source.

    \b
    amazon-clothing     meta_Clothing_Shoes_and_Jewelry.json.gz
    amazon-electronics  meta_Electronics.json.gz, both of the Amazon product data
    dblp                the AMiner v11 dump
    reddit              the GraphSAGE archive: reddit-G.json and files beside it

    \b
    Example:
      fewnode data build amazon-clothing --raw dumps --out clothing
      fewnode train --data clothing --method gpn-plus --out run

    Files that the paper's authors publish: `fewnode data download`. Your own tables: `fewnode data import`.
    """
    from fewnode.paper import BUILDERS

    if of.name not in BUILDERS:
        known = f"known are {', '.join(BUILDERS)}"
        raise FewnodeError(f"unknown network {of.name!r}{closest(of.name, BUILDERS)}", remedy=known)
    _check_free(of.out)
    _keep(BUILDERS[of.name](of.raw), of.out, say)


_FIELDS: Any = {
    name: (ImportSpec.model_fields[name].annotation, ImportSpec.model_fields[name]) for name in (*NEW_ROWS, *WRITTEN)
}
NewRows = create_model("NewRows", __base__=Options, **_FIELDS)


class NewNodes(Target):
    """What is added to what."""

    dataset: str = option("A dataset that was imported from tables.", ..., metavar="D", door="argument")
    nodes: list[str] = option(
        "Table of new nodes with the columns of the first one. NAME: their kind. Repeatable.",
        ...,
        metavar="[NAME:]FILE",
    )
    edges: list[str] = EDGES
    alone: bool = option("A network of the new nodes only, encoded as D is.", False)


@app.command(cls=Command)
@options(NewNodes, NewRows, Printing)
def extend(of: NewNodes, rows: Options, say: Printing) -> None:
    """Add new nodes and their edges to a dataset, encoded as its own were. A model trained on D works on the result.

    \b
    Example:
      fewnode data extend mydata --nodes new.csv --edges links.csv --out mydata2
      fewnode predict --run run --data mydata2 --support support.csv --all

    Names of columns, the decimal mark and the words for missing values are those of D unless given.
    \f

    Edges may join new nodes with each other and with those of D. They must be of the kinds that D has, and weights are
    brought to the scale of D. The class split stays: a class that D does not have is in no part of it.
    """
    from fewnode.formats.sources import load
    from fewnode.tables.extend import extend as extend_tables

    _check_free(of.out)
    given = {name: getattr(rows, name) for name in rows.model_fields_set}
    ImportSpec.of(given, door=ImportSpec.flag)
    data = extend_tables(
        load(of.dataset),
        _named_files("--nodes", of.nodes),
        _named_files("--edges", of.edges) if of.edges else None,
        alone=of.alone,
        progress=partial(say.progress(), "texts encoded"),
        **given,
    )
    _keep(data, of.out, say, then="predict --run run --data {} --support support.csv --all")


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


def _named_files(flag: str, files: Sequence[str]) -> list[Any]:
    """The files, those of a named kind under its name. A name ends at a colon behind which there is a file."""
    tables: list[Any] = []
    for given in files:
        name, colon, rest = given.partition(":")
        if (source := _table(given)) is not None:
            tables.append(source)
        elif name.strip() and (source := _table(rest)) is not None:
            tables.append({name.strip(): source})
        elif colon:
            raise FewnodeError(f"{flag} {given}: no such file, expected FILE or NAME:FILE, and {rest!r} is no file")
        else:
            tables.append(Path(given))
    return tables


def _table(given: str) -> Any:
    """A file, or a file and behind a colon the two columns with the ends of its edges; None if there is no such."""
    from fewnode.tables.edges import EdgeTable

    file, _, columns = given.rpartition(":")
    if given and Path(given).exists():
        return Path(given)
    if not Path(file).is_file() or columns.count(",") != 1:
        return None
    source, target = columns.split(",")
    return EdgeTable(Path(file), source.strip(), target.strip())


def _check_free(out: Path) -> None:
    """Say before a long reading, not after it, that the result cannot be written."""
    from fewnode._system.files import need_no_file

    need_no_file(out)
    if (out / "dataset.json").exists():
        raise FewnodeError(f"{out}: there is a dataset already; choose another --out")


def _keep(data: Dataset, out: Path, say: Printing, then: str | None = None) -> None:
    from fewnode.formats.directory import save_dataset
    from fewnode.tables.report import report, statistics, warnings_of

    if say.quiet and not say.as_json and (warnings := warnings_of(data.info, latest=True)):
        Printing().note(with_flags(warnings, ImportSpec, Printing))  # what may be wrong is said to everyone
    elif not say.as_json:
        say.note(with_flags(report(data, latest=True), ImportSpec, Printing))
    if data.graph.home != out.resolve():  # what was imported in pieces is there already
        save_dataset(data, out)
    if say.as_json:
        say.result({**statistics(data), "source": data.info, "out": str(out)}, "")
        return
    usual = "train --data {} --out run" if data.split.train else "predict --data {} --support support.csv --all"
    say.note(f"written to {out}; next: fewnode {(then or usual).format(out)}")
