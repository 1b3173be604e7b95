"""`fewnode data import | build | extend`: the commands that make a dataset."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fewnode.cli import table_options
from fewnode.cli.output import Json, Quiet, counting, emit, note, refuse_unused
from fewnode.cli.scale import Memory, keep_memory
from fewnode.errors import FewnodeError, closest

if TYPE_CHECKING:
    from fewnode.dataset import Dataset
    from fewnode.datasets.scratch import Scratch
    from fewnode.datasets.splits import Split


def import_(
    context: typer.Context,
    source: Path | None = typer.Argument(
        None, metavar="SRC", help="An .npz, .graphml or .gml file, or a folder of published files."
    ),
    out: Path = table_options.Out,
    nodes: list[str] = typer.Option(
        [],
        "--nodes",
        metavar="[NAME:]FILE",
        help="Table of nodes: .csv, .tsv, .jsonl (also .gz) or .parquet. NAME: their kind. Repeatable.",
    ),
    edges: list[str] = table_options.Edges,
    id_column: str = table_options.IdColumn,
    label: str = table_options.LabelColumn,
    no_label: bool = table_options.NoLabel,
    label_separator: str = table_options.LabelSeparator,
    labels: Path = table_options.Labels,
    hierarchy: str = table_options.Hierarchy,
    kind: str = table_options.Kind,
    text: list[str] = typer.Option(
        [], "--text", metavar="COLUMN", help="A column of text: its words are counted. Repeatable."
    ),
    numeric: list[str] = typer.Option(
        [], "--numeric", metavar="COLUMN", help="A column of numbers, standardised. Repeatable."
    ),
    category: list[str] = typer.Option(
        [], "--category", metavar="COLUMN", help="A column of categories, one-hot. Repeatable."
    ),
    vector: list[str] = typer.Option(
        [], "--vector", metavar="COLUMN", help="Lists of numbers, scaled as a whole, or a FILE.npy. Repeatable."
    ),
    encoder: Path = table_options.EncoderFolder,
    source_column: str = table_options.SourceColumn,
    target_column: str = table_options.TargetColumn,
    weight: str = table_options.Weight,
    weight_scale: str = table_options.WeightScale,
    relation: str = table_options.Relation,
    directed: list[str] = table_options.Directed,
    unknown_ends: str = table_options.UnknownEnds,
    separator: str = table_options.Separator,
    decimal: str = table_options.Decimal,
    encoding: str = table_options.Encoding,
    missing: list[str] = table_options.Missing,
    multiline: bool = table_options.Multiline,
    no_header: bool = table_options.NoHeader,
    no_node_header: bool = table_options.NoNodeHeader,
    split: str = typer.Option(
        None, "--split", help="Shares of classes, 50/20/30, or counts, 40,17,20; replaces the file's own."
    ),
    seed: int = typer.Option(0, "--seed", min=0, help="Of that split."),
    min_nodes: int = typer.Option(10, "--min-nodes", min=1, help="Smaller classes are in no part of that split."),
    train_classes: Path = typer.Option(None, "--train-classes", help="File of class names, one a line."),
    valid_classes: Path = typer.Option(None, "--valid-classes", help="The same for validation."),
    test_classes: Path = typer.Option(None, "--test-classes", help="The same for test."),
    vocabulary: int = typer.Option(10_000, "--vocabulary", help="Words at most."),
    min_count: int = typer.Option(2, "--min-count", help="Nodes that a word is in at least."),
    max_share: float = typer.Option(0.5, "--max-share", help="Share of nodes that a word is in at most."),
    stop_words: str = typer.Option("english", "--stop-words", help="english, none, or a file with one a line."),
    name: str = typer.Option(None, "--name", help="Of the network; in a folder of published files: which one."),
    memory: str = Memory,
    quiet: bool = Quiet,
    as_json: bool = Json,
) -> None:
    """Read a network from a file, or from tables of nodes and of edges, and write it as a dataset directory.

    What became of every column is printed before anything is written. If no --text, --numeric, --category or
    --vector is given, every column is used as what it looks like. The label never becomes an attribute. What may be
    the answer becomes one only if you name it. Numbers that are missing count as the mean, and a flag says so; new
    nodes are encoded the same way when `fewnode data extend` adds them later.

    \b
    Example:
      fewnode data import network.npz --out mydata
      fewnode data import --nodes nodes.csv --edges edges.csv --id package \\
          --label section --text summary --numeric size --out mydata
      fewnode data import --nodes n.csv --edges e.csv --no-label --out mydata
      fewnode data import --nodes person:people.csv --nodes firm:firms.csv \\
          --label sector --edges pays:transfers.csv --edges owns:shares.csv \\
          --weight amount --directed --out mydata
      fewnode data info mydata
      fewnode train --data mydata --method gpn-plus --out run

    The classes are dealt into training, validation and test classes, 50/20/30 by --seed; those that --test-classes
    lists are for test, and the rest is dealt. Classes to be found later need not be in the tables at all.
    """
    _check_free(out)
    lists = {"train": train_classes, "valid": valid_classes, "test": test_classes}
    chosen, ways = table_options.split_of(split, lists), table_options.directions(directed)
    vector, beside = table_options.columns_and_files(vector)
    roles = {"text": text, "numeric": numeric, "category": category, "vector": vector}
    columns = {
        "id": id_column,
        "label": label,
        "kind": kind,
        "weight": weight,
        "relation": relation,
        "label_separator": label_separator,
        "labels": labels,
        "hierarchy": hierarchy if hierarchy is None or len(hierarchy) < 3 else Path(hierarchy),  # a mark, or a table
        **roles,
        "vectors": beside,
        "encoder": encoder,
    }
    ends = {"source": source_column, "target": target_column}
    written = table_options.dialect_of(separator, decimal, encoding, missing, multiline)
    said = (separator, decimal, encoding, *missing, multiline, no_header, no_node_header)
    if source is None and not (nodes and edges):
        raise FewnodeError("give a file, or a table of nodes and one of edges: --nodes nodes.csv --edges edges.csv")
    is_graph = source is not None and source.name.lower().removesuffix(".gz").endswith((".graphml", ".gml"))
    about_columns = any(columns.values()) and not is_graph
    if source is not None and (nodes or edges or any(ends.values()) or any(said) or about_columns):
        raise FewnodeError(f"{source} is one file; --nodes, --edges and what is said about them are for tables")
    if is_graph and memory:
        raise FewnodeError(f"{source}: --memory imports .npz files and tables (.csv, .tsv, .parquet), not this one")
    if source is not None and not is_graph:
        words = ["vocabulary", "min_count", "max_share", "stop_words"]
        refuse_unused(context, ["unknown_ends", *words, *([] if chosen else ["min_nodes"])], f"for {source}")
        from fewnode.datasets.npz import has_split

        if chosen is None and has_split(source):
            refuse_unused(context, ["seed"], f"where {source} has a class split of its own and no --split replaces it")
        data = _import_file(source, out, chosen, seed, min_nodes, ways, weight_scale, name, keep_memory(memory))
    else:
        from fewnode.datasets.encode import Words
        from fewnode.datasets.tables import read_graph, read_tables

        options: dict[str, Any] = {
            **{name: value for name, value in columns.items() if value},
            "weight_scale": weight_scale,
            "unknown_ends": unknown_ends,
            "split": chosen or "50/20/30",
            "seed": seed,
            "min_nodes": min_nodes,
            "words": Words(vocabulary, min_count, max_share, table_options.stop_words_of(stop_words)),
            "name": name or out.name,
            "progress": counting("texts encoded", quiet or as_json),
        }
        if source is not None:
            data = read_graph(source, directed=ways or None, **options)
        else:
            options |= {**ends, "dialect": replace(written, header=not no_node_header)}
            options["edge_dialect"] = replace(written, header=not no_header)
            tables = [table_options.named_files(*given) for given in (("--nodes", nodes), ("--edges", edges))]
            with _scratch(out, keep_memory(memory)) as disk:
                data = read_tables(*tables, directed=ways, disk=disk, **options)
    files = " and ".join(map(str, nodes)) if source is None else source
    has_label = labels is not None or not data.encoding or data.encoding["label"] is not None
    if not has_label and not no_label:
        others = ", ".join(column for column, role in data.info["columns"].items() if role != "id")
        name_it = f"which column holds the class? Name it with --label: {others}; none: --no-label"
        raise FewnodeError(f"{files}: {name_it if others else 'no column holds the class: say --no-label'}")
    if no_label and data.graph.home != out.resolve() and (data.y >= 0).any():
        raise FewnodeError(f"{files}: --no-label, but there are classes in it; leave that option out")
    _keep(data, out, quiet, as_json)


@contextmanager
def _scratch(out: Path, limit: int | None) -> Iterator[Scratch | None]:
    """Room for tables where the dataset will be; if they cannot be read, the folder is not left behind."""
    from fewnode.datasets.scratch import Scratch

    try:
        yield Scratch(out, limit) if limit else None
    except BaseException:
        with suppress(OSError):
            out.rmdir()
        raise


def _import_file(
    source: Path,
    out: Path,
    split: Split | None,
    seed: int,
    min_nodes: int,
    directed: bool | tuple[str, ...],
    weight_scale: str | None,
    name: str | None,
    limit: int | None,
) -> Dataset:
    """A file's own class split stays unless another is asked for. With a limit of memory it is imported in pieces."""
    from fewnode.datasets import import_dataset
    from fewnode.datasets.splits import choose_split

    if limit:
        from fewnode.datasets.stream import import_stream

        if not isinstance(directed, bool) or weight_scale:
            raise FewnodeError("with --memory edges have neither weights nor kinds; --directed is about all")
        if split is not None:
            raise FewnodeError("with --memory the class split is that of the file, or 50/20/30")
        return import_stream(source, out, limit, seed=seed, directed=directed, name=name)
    data = import_dataset(source, seed=seed, directed=directed, name=name, scale=weight_scale)
    if split is None:
        return data
    return replace(data, split=choose_split(data.y, data.class_names, split, seed, min_nodes))


def build(
    name: str = typer.Argument(
        ..., metavar="NAME", help="debian, amazon-clothing, amazon-electronics, dblp or reddit."
    ),
    raw: Path = typer.Option(..., "--raw", help="Directory with the raw files."),
    out: Path = table_options.Out,
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
    _check_free(out)
    _keep(BUILDERS[name](raw), out, quiet, as_json)


def extend(
    source: str = typer.Argument(..., metavar="D", help="A dataset that was imported from tables."),
    nodes: list[str] = typer.Option(
        ...,
        "--nodes",
        metavar="[NAME:]FILE",
        help="Table of new nodes with the columns of the first one. NAME: their kind. Repeatable.",
    ),
    out: Path = table_options.Out,
    edges: list[str] = table_options.Edges,
    id_column: str = typer.Option(None, "--id", help="Column of node ids; default: as in D."),
    label: str = typer.Option(None, "--label", help="Column of classes; default: as in D, if it is there."),
    labels: Path = table_options.Labels,
    source_column: str = table_options.SourceColumn,
    target_column: str = table_options.TargetColumn,
    weight: str = typer.Option(None, "--weight", metavar="COLUMN", help="Of the edges; default: as in D."),
    relation: str = typer.Option(None, "--relation", metavar="COLUMN", help="Of the edges; default: as in D."),
    unknown_ends: str = table_options.UnknownEnds,
    separator: str = table_options.Separator,
    decimal: str = table_options.Decimal,
    encoding: str = table_options.Encoding,
    missing: list[str] = table_options.Missing,
    multiline: bool = table_options.Multiline,
    no_header: bool = table_options.NoHeader,
    no_node_header: bool = table_options.NoNodeHeader,
    vector: list[Path] = typer.Option(
        [], "--vector", metavar="FILE", help="Vectors of the new nodes, where D has such a FILE.npy. Repeatable."
    ),
    encoder: Path = table_options.EncoderFolder,
    alone: bool = typer.Option(False, "--alone", help="A network of the new nodes only, encoded as D is."),
    quiet: bool = Quiet,
    as_json: bool = Json,
) -> None:
    """Add new nodes and their edges to a dataset, encoded as its own were. A model trained on D works on the result.

    Edges may join new nodes with each other and with those of D. They must be of the kinds that D has, and weights are
    brought to the scale of D. The class split stays: a class that D does not have is in no part of it. The decimal
    mark and the words for missing values are those of the import unless given.

    \b
    Example:
      fewnode data extend mydata --nodes new.csv --edges links.csv --out mydata2
      fewnode predict --run run --data mydata2 --support support.csv --all
    """
    from fewnode.datasets import load
    from fewnode.datasets.extend import extend as extend_tables

    _check_free(out)
    written = table_options.dialect_of(separator, decimal, encoding, missing, multiline)
    data = extend_tables(
        load(source),
        table_options.named_files("--nodes", nodes),
        table_options.named_files("--edges", edges) if edges else None,
        id=id_column,
        label=label,
        labels=labels,
        weight=weight,
        relation=relation,
        source=source_column,
        target=target_column,
        unknown_ends=unknown_ends,  # type: ignore[arg-type]  # checked there
        dialect=replace(written, header=not no_node_header),
        edge_dialect=replace(written, header=not no_header),
        alone=alone,
        vectors=vector or None,
        encoder=encoder,
        progress=counting("texts encoded", quiet or as_json),
    )
    _keep(data, out, quiet, as_json, then="predict --run run --data {} --support support.csv --all")


def _check_free(out: Path) -> None:
    """Say before a long reading, not after it, that the result cannot be written."""
    from fewnode.machine.files import need_no_file

    need_no_file(out)
    if (out / "dataset.json").exists():
        raise FewnodeError(f"{out}: there is a dataset already; choose another --out")


def _keep(data: Dataset, out: Path, quiet: bool, as_json: bool, then: str | None = None) -> None:
    from fewnode.datasets.import_report import describe_source, describe_warnings
    from fewnode.datasets.info import describe, statistics
    from fewnode.storage.io import save_dataset

    facts: dict[str, Any] = statistics(data)
    if not as_json:
        note("\n".join(filter(None, [describe_source(data.info, latest=True), describe(facts)])), quiet)
        if warnings := describe_warnings(data.info, latest=True):
            note(warnings, quiet=False)  # what may be wrong is said to everyone
    if data.graph.home != out.resolve():  # what was imported in pieces is there already
        save_dataset(data, out)
    if as_json:
        emit({**facts, "source": data.info, "out": str(out)})
    else:
        usual = "train --data {} --out run" if data.split.train else "predict --data {} --support support.csv --all"
        note(f"written to {out}; next: fewnode {(then or usual).format(out)}", quiet)
