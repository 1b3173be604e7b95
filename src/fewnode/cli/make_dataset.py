"""`fewnode data import | build | extend`: the commands that make a dataset."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import create_model

from fewnode.cli import table_options
from fewnode.cli.options import options, with_flags
from fewnode.cli.output import Printing
from fewnode.cli.scale import keep_memory
from fewnode.errors import FewnodeError, closest
from fewnode.options import Options, option
from fewnode.tables.spec import ImportSpec

if TYPE_CHECKING:
    from fewnode.dataset import Dataset

CLASSES = ("no_label", "split", "seed", "min_nodes", "train_classes", "valid_classes", "test_classes", "name")
"""What can be said of every source."""
WRITTEN = ("separator", "decimal", "encoding", "missing", "multiline", "no_header", "no_node_header")
NEW_ROWS = (
    *("id", "label", "labels", "vector", "encoder", "source", "target", "weight", "relation", "unknown_ends"),
    *WRITTEN,
)


class Tables(table_options.Target):
    """What is read."""

    file: Path | None = option(
        "An .npz, .graphml or .gml file, or a folder of published files.", metavar="SRC", door="argument"
    )
    nodes: list[str] = option(
        "Table of nodes: .csv, .tsv, .jsonl (also .gz) or .parquet. NAME: their kind. Repeatable.",
        [],
        metavar="[NAME:]FILE",
    )
    edges: list[str] = table_options.EDGES


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
    file, out, nodes, edges = of.file, of.out, of.nodes, of.edges
    given = {name: getattr(spec, name) for name in spec.model_fields_set}
    _check_free(out)
    files = " and ".join(nodes) if file is None else file
    progress = partial(say.progress(), "texts encoded")
    if file is not None:
        if nodes or edges:
            raise FewnodeError(f"{file} is one file; --nodes, --edges and what is said about them are for tables")
        data = _import_file(file, out, spec, given, progress)
    else:
        from fewnode.tables.read import read_tables

        if not (nodes and edges):
            raise FewnodeError("give a file, or a table of nodes and one of edges: --nodes nodes.csv --edges edges.csv")
        spec = spec if spec.name else spec.model_copy(update={"name": out.name})
        keep_memory(spec.memory)
        tables = [table_options.named_files(*each) for each in (("--nodes", nodes), ("--edges", edges))]
        missing = [path for path in (out, *out.parents) if not path.exists()] if spec.memory else []
        out.mkdir(parents=True, exist_ok=True) if missing else None
        try:
            data = read_tables(*tables, spec=spec, progress=progress, room=out if spec.memory else None)
        except BaseException:
            for folder in missing:
                with suppress(OSError):
                    folder.rmdir()
            raise
    has_label = "labels" in given or not data.encoding or "label" in data.encoding["spec"]
    if not has_label and not given.get("no_label"):
        others = ", ".join(column for column, role in data.info["columns"].items() if role != "id")
        name_it = f"which column holds the class? Name it with --label: {others}; none: --no-label"
        raise FewnodeError(f"{files}: {name_it if others else 'no column holds the class: say --no-label'}")
    if given.get("no_label") and data.graph.home != out.resolve() and (data.y >= 0).any():
        raise FewnodeError(f"{files}: --no-label, but there are classes in it; leave that option out")
    _keep(data, out, say)


def _import_file(source: Path, out: Path, spec: ImportSpec, given: Mapping[str, Any], progress: Any) -> Dataset:
    """A file's own class split stays unless another is asked for. With a limit of memory it is imported in pieces."""
    from fewnode.formats.sources import import_dataset
    from fewnode.tables.splits import choose_split

    is_graph = source.name.lower().removesuffix(".gz").endswith((".graphml", ".gml"))
    used = {*CLASSES, "directed", "weight_scale", "memory"}
    if is_graph:
        used = {*ImportSpec.model_fields} - {*WRITTEN, "source", "target", "memory"}
    if unused := [ImportSpec.flag(field) for field in given if field not in used]:
        raise FewnodeError(f"{', '.join(unused)}: not used for {source}, which is one file; leave it out")
    if is_graph:
        from fewnode.formats.graphs import read_graph

        return read_graph(source, progress=progress, **{"name": out.name, **given})
    split = spec.class_lists or spec.split
    from fewnode.formats.npz import has_split

    unused = ["min_nodes", *(["seed"] if has_split(source) else [])] if split is None else []
    if unused := [ImportSpec.flag(field) for field in unused if field in given]:
        where = f"where {source} has a class split of its own and no --split replaces it"
        raise FewnodeError(f"{', '.join(unused)}: not used {where}; leave it out")
    room = out if keep_memory(spec.memory) else None
    if room is not None and not source.name.lower().endswith(".npz"):
        raise FewnodeError(f"{source}: --memory imports .npz files and tables, not this one")
    data = import_dataset(
        source, seed=spec.seed, directed=spec.directed, name=spec.name, scale=spec.weight_scale, room=room
    )
    if split is None:
        return data
    return replace(data, split=choose_split(data.y, data.class_names, split, spec.seed, spec.min_nodes))


class Raw(table_options.Target):
    """Raw files."""

    name: str = option(
        "debian, amazon-clothing, amazon-electronics, dblp or reddit.", ..., metavar="NAME", door="argument"
    )
    raw: Path = option("Directory with the raw files.", ...)


@options(Raw, Printing)
def build(of: Raw, say: Printing) -> None:
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

    if of.name not in BUILDERS:
        known = f"known are {', '.join(BUILDERS)}"
        raise FewnodeError(f"unknown network {of.name!r}{closest(of.name, BUILDERS)}", remedy=known)
    _check_free(of.out)
    _keep(BUILDERS[of.name](of.raw), of.out, say)


_AS_IN_D = {
    "id": "Column of node ids; default: as in D.",
    "label": "Column of classes; default: as in D, if it is there.",
    "vector": "Vectors of the new nodes, where D has such a FILE.npy. Repeatable.",
    "weight": "Of the edges; default: as in D.",
    "relation": "Of the edges; default: as in D.",
}


def _as_in_d(name: str) -> tuple[Any, Any]:
    """A field of the import, whose words are those of `_AS_IN_D` if it has some."""
    field = copy(ImportSpec.model_fields[name])
    field.description = _AS_IN_D.get(name, field.description)
    return field.annotation, field


_FIELDS: Any = {name: _as_in_d(name) for name in NEW_ROWS}
NewRows = create_model("NewRows", __base__=Options, **_FIELDS)


class NewNodes(table_options.Target):
    """What is added to what."""

    dataset: str = option("A dataset that was imported from tables.", ..., metavar="D", door="argument")
    nodes: list[str] = option(
        "Table of new nodes with the columns of the first one. NAME: their kind. Repeatable.",
        ...,
        metavar="[NAME:]FILE",
    )
    edges: list[str] = table_options.EDGES
    alone: bool = option("A network of the new nodes only, encoded as D is.", False)


@options(NewNodes, NewRows, Printing)
def extend(of: NewNodes, rows: Options, say: Printing) -> None:
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

    _check_free(of.out)
    given = {name: getattr(rows, name) for name in rows.model_fields_set}
    ImportSpec.of(given, door=ImportSpec.flag)
    data = extend_tables(
        load(of.dataset),
        table_options.named_files("--nodes", of.nodes),
        table_options.named_files("--edges", of.edges) if of.edges else None,
        alone=of.alone,
        progress=partial(say.progress(), "texts encoded"),
        **given,
    )
    _keep(data, of.out, say, then="predict --run run --data {} --support support.csv --all")


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
