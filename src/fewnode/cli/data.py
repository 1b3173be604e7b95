"""`fewnode data`: list, info, import, build, extend and download."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fewnode.cli.options import Command, options_of
from fewnode.cli.output import Json, Quiet, counting, emit, note, table
from fewnode.cli.scale import keep_memory
from fewnode.errors import FewnodeError, closest
from fewnode.tables.spec import ImportSpec

if TYPE_CHECKING:
    from fewnode.dataset import Dataset

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Read tables and files into datasets; look at them."
)
Source = typer.Argument(..., metavar="D", help="A built-in name, a dataset directory or a file.")
Out = typer.Option(..., "--out", help="Directory for the dataset; it must not hold one yet.")
Edges = typer.Option(
    [],
    "--edges",
    metavar="[NAME:]FILE",
    help="Table of edges, or FILE:SOURCE,TARGET with its columns of node ids. NAME: their kind. Repeatable.",
)
CLASSES = ("no_label", "split", "seed", "min_nodes", "train_classes", "valid_classes", "test_classes", "name")
"""What can be said of every source."""
WRITTEN = ("separator", "decimal", "encoding", "missing", "multiline", "no_header", "no_node_header")
NEW_ROWS = ("id", "label", "labels", "vector", "encoder", "source", "target", "weight", "relation", "unknown_ends")
AS_IN_D = {
    "id": "Column of node ids; default: as in D.",
    "label": "Column of classes; default: as in D, if it is there.",
    "vector": "Vectors of the new nodes, where D has such a FILE.npy. Repeatable.",
    "weight": "Of the edges; default: as in D.",
    "relation": "Of the edges; default: as in D.",
}


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

    loaded = [make() for make in BUILT_IN.values()]
    if as_json:
        facts = [{"name": d.name, "nodes": d.graph.n, "classes": len(d.class_names)} for d in loaded]
        emit({"datasets": facts, "builders": list(BUILDERS), "public": list(PUBLIC)})
        return
    rows = [
        (d.name, f"{d.graph.n:,}", f"{d.graph.n_edges:,}", f"{d.graph.n_features:,}", len(d.class_names))
        for d in loaded
    ]
    typer.echo(table(["name", "nodes", "edges", "attributes", "classes"], rows))
    note(f"fewnode data build makes {', '.join(BUILDERS)} from raw files", quiet)
    note(f"--data also takes, by the loaders of PyG and OGB: {', '.join(PUBLIC)}", quiet)


@app.command()
def info(source: str = Source, quiet: bool = Quiet, as_json: bool = Json) -> None:
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


@app.command("import", cls=ImportCommand)
@options_of(ImportSpec)
def import_(
    file: Path | None = typer.Argument(
        None, metavar="SRC", help="An .npz, .graphml or .gml file, or a folder of published files."
    ),
    out: Path = Out,
    nodes: list[str] = typer.Option(
        [],
        "--nodes",
        metavar="[NAME:]FILE",
        help="Table of nodes: .csv, .tsv, .jsonl (also .gz) or .parquet. NAME: their kind. Repeatable.",
    ),
    edges: list[str] = Edges,
    quiet: bool = Quiet,
    as_json: bool = Json,
    *,
    given: Mapping[str, Any],
) -> None:
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
    _need_free(out)
    progress = counting("texts encoded", quiet or as_json)
    if file is not None and (nodes or edges):
        raise FewnodeError(f"{file} is one file; --nodes, --edges and what is said about them are for tables")
    if file is None and not (nodes and edges):
        raise FewnodeError("give a file, or a table of nodes and one of edges: --nodes nodes.csv --edges edges.csv")
    data = (
        _import_tables(nodes, edges, out, given, progress) if file is None else _import_file(file, out, given, progress)
    )
    source = " and ".join(nodes) if file is None else file
    has_label = "labels" in given or not data.encoding or "label" in data.encoding["spec"]
    if not has_label and not given.get("no_label"):
        others = ", ".join(column for column, role in data.info["columns"].items() if role != "id")
        name_it = f"which column holds the class? Name it with --label: {others}; none: --no-label"
        raise FewnodeError(f"{source}: {name_it if others else 'no column holds the class: say --no-label'}")
    if given.get("no_label") and data.graph.home != out.resolve() and (data.y >= 0).any():
        raise FewnodeError(f"{source}: --no-label, but there are classes in it; leave that option out")
    _keep(data, out, quiet, as_json)


def _import_tables(
    nodes: Sequence[str], edges: Sequence[str], out: Path, given: Mapping[str, Any], progress: Any
) -> Dataset:
    """With a limit of memory, what does not fit waits in the folder of the dataset."""
    from fewnode.tables.read import read_tables

    spec = ImportSpec.of({"name": out.name, **given}, door=ImportSpec.flag)
    keep_memory(spec.memory)
    tables = [_named_files("--nodes", nodes), _named_files("--edges", edges)]
    made = [path for path in (out, *out.parents) if not path.exists()] if spec.memory else []
    out.mkdir(parents=True, exist_ok=True) if made else None
    try:
        return read_tables(*tables, spec=spec, progress=progress, room=out if spec.memory else None)
    except BaseException:
        for folder in made:
            with suppress(OSError):
                folder.rmdir()
        raise


def _import_file(source: Path, out: Path, given: Mapping[str, Any], progress: Any) -> Dataset:
    """A file's own class split stays unless another is asked for. With a limit of memory it is imported in pieces."""
    from fewnode.formats.graphs import read_graph
    from fewnode.formats.npz import has_split
    from fewnode.formats.sources import import_dataset
    from fewnode.tables.splits import choose_split

    spec = ImportSpec.of(given, door=ImportSpec.flag)
    is_graph = source.name.lower().removesuffix(".gz").endswith((".graphml", ".gml"))
    used = {*CLASSES, "directed", "weight_scale", "memory"}
    if is_graph:
        used = {*ImportSpec.model_fields} - {*WRITTEN, "source", "target", "memory"}
    unused, where = [field for field in given if field not in used], f"for {source}, which is one file"
    split = spec.class_lists or spec.split
    if not unused and not is_graph and split is None:
        where = f"where {source} has a class split of its own and no --split replaces it"
        unused = [name for name in ("min_nodes", "seed") if name in given and (name != "seed" or has_split(source))]
    if unused:
        raise FewnodeError(f"{', '.join(map(ImportSpec.flag, unused))}: not used {where}; leave it out")
    if is_graph:
        return read_graph(source, progress=progress, **{"name": out.name, **given})
    room = out if keep_memory(spec.memory) else None
    if room is not None and not source.name.lower().endswith(".npz"):
        raise FewnodeError(f"{source}: --memory imports .npz files and tables, not this one")
    data = import_dataset(
        source, seed=spec.seed, directed=spec.directed, name=spec.name, scale=spec.weight_scale, room=room
    )
    if split is None:
        return data
    return replace(data, split=choose_split(data.y, data.class_names, split, spec.seed, spec.min_nodes))


@app.command()
def build(
    name: str = typer.Argument(
        ..., metavar="NAME", help="debian, amazon-clothing, amazon-electronics, dblp or reddit."
    ),
    raw: Path = typer.Option(..., "--raw", help="Directory with the raw files."),
    out: Path = Out,
    quiet: bool = Quiet,
    as_json: bool = Json,
) -> None:
    """Build a network from the raw files of its source.

    \b
    debian              the index files of apt, Packages and Translation-en
                        (`apt-get -o Acquire::Languages=en update` fetches them)
    amazon-clothing     meta_Clothing_Shoes_and_Jewelry.json.gz
    amazon-electronics  meta_Electronics.json.gz, both of the Amazon product data
    dblp                the AMiner v11 dump
    reddit              the GraphSAGE archive: reddit-G.json and files beside it

    \b
    Example:
      fewnode data build debian --raw /var/lib/apt/lists --out debian-now
      fewnode train --data debian-now --method gpn-plus --out run

    Files that the paper's authors publish: `fewnode data download`. Your own tables: `fewnode data import`.
    """
    from fewnode.paper import BUILDERS

    if name not in BUILDERS:
        raise FewnodeError(f"unknown network {name!r}{closest(name, BUILDERS)}; known are {', '.join(BUILDERS)}")
    _need_free(out)
    _keep(BUILDERS[name](raw), out, quiet, as_json)


@app.command()
@options_of(ImportSpec, (*NEW_ROWS, *WRITTEN), AS_IN_D)
def extend(
    dataset: str = typer.Argument(..., metavar="D", help="A dataset that was imported from tables."),
    nodes: list[str] = typer.Option(
        ...,
        "--nodes",
        metavar="[NAME:]FILE",
        help="Table of new nodes with the columns of the first one. NAME: their kind. Repeatable.",
    ),
    out: Path = Out,
    edges: list[str] = Edges,
    alone: bool = typer.Option(False, "--alone", help="A network of the new nodes only, encoded as D is."),
    quiet: bool = Quiet,
    as_json: bool = Json,
    *,
    given: Mapping[str, Any],
) -> None:
    """Add new nodes and their edges to a dataset, encoded as its own were. A model trained on D works on the result.

    \b
    Example:
      fewnode data extend mydata --nodes new.csv --edges links.csv --out mydata2
      fewnode predict --run run --data mydata2 --support support.csv --all
    \f

    Edges may join new nodes with each other and with those of D. They must be of the kinds that D has, and weights are
    brought to the scale of D. The class split stays: a class that D does not have is in no part of it. The decimal
    mark and the words for missing values are those of the import unless given.
    """
    from fewnode.formats.sources import load
    from fewnode.tables.extend import extend as extend_tables

    _need_free(out)
    ImportSpec.of(given, door=ImportSpec.flag)
    data = extend_tables(
        load(dataset),
        _named_files("--nodes", nodes),
        _named_files("--edges", edges) if edges else None,
        alone=alone,
        progress=counting("texts encoded", quiet or as_json),
        **given,
    )
    _keep(data, out, quiet, as_json, then="predict --run run --data {} --support support.csv --all")


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


def _named_files(option: str, files: Sequence[str]) -> list[Any]:
    """The files, those of a named kind under its name. A name ends at a colon behind which there is a file."""
    tables: list[Any] = []
    for given in files:
        name, colon, rest = given.partition(":")
        if (source := _table(given)) is not None:
            tables.append(source)
        elif name.strip() and (source := _table(rest)) is not None:
            tables.append({name.strip(): source})
        elif colon:
            raise FewnodeError(f"{option} {given}: no such file, expected FILE or NAME:FILE, and {rest!r} is no file")
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


def _need_free(out: Path) -> None:
    """Say before a long reading, not after it, that the result cannot be written."""
    from fewnode._system.files import need_no_file

    need_no_file(out)
    if (out / "dataset.json").exists():
        raise FewnodeError(f"{out}: there is a dataset already; choose another --out")


def _keep(data: Dataset, out: Path, quiet: bool, as_json: bool, then: str | None = None) -> None:
    from fewnode.formats.directory import save_dataset
    from fewnode.tables.report import report, statistics, warnings_of

    if not as_json:
        note(report(data, latest=True), quiet)
    if quiet and not as_json and (warnings := warnings_of(data.info, latest=True)):
        note(warnings, quiet=False)  # what may be wrong is said to everyone
    if data.graph.home != out.resolve():  # what was imported in pieces is there already
        save_dataset(data, out)
    if as_json:
        emit({**statistics(data), "source": data.info, "out": str(out)})
    else:
        usual = "train --data {} --out run" if data.split.train else "predict --data {} --support support.csv --all"
        note(f"written to {out}; next: fewnode {(then or usual).format(out)}", quiet)
