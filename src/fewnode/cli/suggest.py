"""`fewnode suggest`: which nodes to look at next, and when to stop."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from fewnode.cli.output import Json, OutTable, Quiet, Threads, emit, note, set_threads, show, spare_inputs
from fewnode.cli.predict import Classes, OtherData, OwnMethod, Run, Support, open_model, tell
from fewnode.errors import FewnodeError

if TYPE_CHECKING:
    from fewnode.dataset import Dataset
    from fewnode.model.estimator import Estimator


def suggest(
    run: Path = Run,
    support: Path = Support,
    classes: Path = Classes,
    count: int = typer.Option(10, "--count", min=1, help="How many nodes to suggest."),
    query: Path = typer.Option(
        None, "--query", help="Table `node`: choose among these; default: all of no known class."
    ),
    rejected: Path = typer.Option(None, "--rejected", help="Table `node`: looked at, and in none of the classes."),
    to_find: bool = typer.Option(
        False, "--find", help="Ask so that all members are found; default: about nodes that teach most."
    ),
    recall: float = typer.Option(None, "--recall", help="With --find: say when this share of members is found."),
    wrong: bool = typer.Option(False, "--wrong", help="Labelled nodes that the rest of their class disagrees with."),
    out: Path = OutTable,
    data: str = OtherData,
    method: str = OwnMethod,
    threads: int = Threads,
    quiet: bool = Quiet,
    as_json: bool = Json,
) -> None:
    """Say which nodes to label next: those that stand for many nodes of the classes and are like no labelled one.

    With --find the nodes are those of which it is in doubt whether they are in a class. Their answers decide about
    many others. So few questions find most of its members. `likely` is then the class it is asked about, each class in
    turn, and `covers` is 0. One question of four is a check (`purpose`), drawn to tell how many members there are.
    Put the answers into the column `answer` and ask again. With --recall 0.8 it says when 80 % of the members are
    found: by the rows that have an answer, in their order, whose node was asked about.

    With --wrong the nodes are those whose label in the dataset is likeliest to be wrong, each with the likelier class
    and why. It takes no support table.

    \b
    Example:
      printf 'node,class\\nopenvpn,vpn\\npostfix,mail\\n' > support.csv
      fewnode suggest --data debian --support support.csv --count 10
      fewnode suggest --run run --support support.csv --count 10
      printf 'node,class,answer\\ntinc,vpn,yes\\ncurl,vpn,no\\n' > answers.csv
      fewnode suggest --data debian --support answers.csv --find --recall 0.8
      fewnode suggest --data debian --wrong --count 20
      fewnode predict --run run --support support.csv --all --out p.csv

    It chooses by the embedding, so the run must be of gpn-plus, propagation, gpn, gpn-naive or pn.
    \f

    The output has one row a node, the most worthwhile first. It has its name, the likeliest class and the
    probability of that. `member` is that of being in any class, as `fewnode predict` has it (empty where it cannot
    be told). The last is the share of the classes' nodes that labelling it would cover. Put the right class of each
    into the support table and predict, or ask again. Nodes that turned out to be in none of the classes go into a
    table of their own (`--rejected`): what is like them is not asked about again. Or the support table has a third
    column, `answer`, that says yes or no for that class.

    Without `--query`, nodes that have no attributes are left out where every labelled node has some, and so are
    nodes of kinds of which none has a label.
    """
    import numpy as np

    from fewnode._system.files import write_text
    from fewnode._system.sheets import csv_text
    from fewnode.recognition.classes import Given, read_answers, read_query, read_rejected, unused_columns
    from fewnode.review.finding import replayed

    inputs = {"--support": support, "--classes": classes, "--query": query, "--rejected": rejected}
    spare_inputs([out], inputs)
    set_threads(threads)
    if recall is not None and not to_find:
        raise FewnodeError("--recall says when enough members are found: give --find")
    if wrong and (to_find or support or classes or rejected):
        raise FewnodeError("--wrong judges the labels of the dataset: leave out --find, --support and other tables")
    model, dataset = open_model(run, data, method, quiet)
    if wrong:
        _suspect(model, dataset, count, None if query is None else read_query(query, dataset), (out, quiet, as_json))
        return
    given = Given.read(dataset, support, classes)
    among = None if query is None else read_query(query, dataset)
    none = [] if rejected is None else read_rejected(rejected, dataset, given.support.tolist())
    tell([*given.remarks, *(unused_columns(table) for table in (query, rejected) if table)], quiet)
    if none:
        no = {name: np.union1d(given.no.get(c, none), none) for c, name in enumerate(given.names)}
        given = given.without(no, dataset)
    question = model.question(dataset, given)
    if to_find and support is not None:
        question = replayed(question, read_answers(support, dataset))
    found = question.next(count, "find" if to_find else "learn", among)
    enough = {name: question.stop(name, recall) for name in question.classes} if recall is not None else {}
    for name, each in enough.items():
        note(f"{name}: {'stop, ' if each.now else ''}{each.reason}", quiet or as_json)
    rows = [
        {
            "node": each.node,
            "likely": each.label,
            "probability": each.probability,
            "member": each.member,
            "covers": round(each.covers, 6),
            **({"purpose": each.purpose} if to_find else {}),
        }
        for each in found
    ]
    if as_json:
        told = {"stop": {name: each._asdict() for name, each in enough.items()}} if enough else {}
        emit({"suggestions": rows, **told, "method": model.method, "run": None if run is None else str(run)})
    text = csv_text([list(rows[0]), *([_cell(value) for value in row.values()] for row in rows)])
    if out:
        write_text(out, text)
        note(f"{len(rows)} nodes to label next: {out}", quiet or as_json)
    elif not as_json:
        show(text)


def _suspect(
    model: Estimator, data: Dataset, count: int, among: Sequence[int] | None, how: tuple[Path | None, bool, bool]
) -> None:
    """Labels of the dataset that may be wrong."""
    from fewnode._system.files import write_text
    from fewnode._system.sheets import csv_text
    from fewnode.review.wrong import wrong_labels

    out, quiet, as_json = how
    found = [each._asdict() for each in wrong_labels(model.embedding(data), data, count, among)]
    text = csv_text([list(found[0]), *([_cell(value) for value in row.values()] for row in found)])
    if as_json:
        emit({"wrong": found, "method": model.method})
    if out:
        write_text(out, text)
        note(f"{len(found)} labels that may be wrong: {out}", quiet or as_json)
    elif not as_json:
        show(text)


def _cell(value: object) -> str:
    return f"{value:.6f}" if isinstance(value, float) else "" if value is None else str(value)
