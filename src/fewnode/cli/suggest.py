"""`fewnode suggest`: which nodes to look at next, and when to stop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fewnode.cli.options import options
from fewnode.cli.output import OUT_TABLE, OutTable, Printing, Threads, spare
from fewnode.cli.source import Source, Tables
from fewnode.errors import FewnodeError
from fewnode.options import Options, option


class Asked(Options):
    """Which nodes are chosen, and among which."""

    count: int = option("How many nodes to suggest.", 10, ge=1)
    query: Path | None = option("Table `node`: choose among these; default: all of no known class.")
    to_find: bool = option(
        "Ask so that all members are found; default: about nodes that teach most.", False, flag="--find"
    )
    recall: float | None = option("With --find: say when this share of members is found.")
    wrong: bool = option("Labelled nodes that the rest of their class disagrees with.", False)
    out: OutTable = OUT_TABLE


@options(Source, Tables, Asked, Threads, Printing)
def suggest(source: Source, tables: Tables, asked: Asked, threads: Threads, say: Printing) -> None:
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

    The output has one row a node, the most worthwhile first: its name, the likeliest class and the probability of
    that. `member` is as `fewnode predict` has it, empty where it cannot be told. `covers` is the share of the
    classes' nodes that labelling it would cover. Put the answers into the support table: the right class,
    or a class and `no` in its column `answer`.

    Without `--query`, nodes that have no attributes are left out where every labelled node has some, and so are
    nodes of kinds of which none has a label.
    """
    from fewnode.recognition.classes import read_query, read_support, unused_columns
    from fewnode.review.finding import replayed
    from fewnode.review.wrong import wrong_labels

    spare([asked.out], {"--support": tables.support, "--classes": tables.classes, "--query": asked.query})
    threads.use()
    if asked.recall is not None and not asked.to_find:
        raise FewnodeError("--recall says when enough members are found: give --find")
    if asked.wrong and (asked.to_find or tables.model_fields_set):
        raise FewnodeError("--wrong judges the labels of the dataset: leave out --find, --support and other tables")
    model, dataset = source.open(say)
    among = None if asked.query is None else read_query(asked.query, dataset)
    say.note(unused_columns(asked.query) if asked.query else "")
    about = {"method": model.method, "run": None if source.run is None else str(source.run)}
    if asked.wrong:
        labels = [each._asdict() for each in wrong_labels(model.embedding(dataset), dataset, asked.count, among)]
        _tell(labels, {"wrong": labels, **about}, "labels that may be wrong", asked.out, say)
        return
    given = tables.read(dataset)
    say.note(*given.remarks)
    question = model.question(dataset, given)
    if asked.to_find and tables.support is not None:
        said = read_support(tables.support, dataset, several=True)
        question = replayed(question, [(each.label, each.node, each.yes) for each in said if each.answered])
    rows = [
        {
            "node": each.node,
            "likely": each.label,
            "probability": each.probability,
            "member": each.member,
            "covers": round(each.covers, 6),
            **({"purpose": each.purpose} if asked.to_find else {}),
        }
        for each in question.next(asked.count, "find" if asked.to_find else "learn", among)
    ]
    value: dict[str, Any] = {"suggestions": rows, **about}
    if asked.recall is not None:
        stops = {name: question.stop(name, asked.recall) for name in question.classes}
        say.note(*(f"{name}: {'stop, ' if stop.now else ''}{stop.reason}" for name, stop in stops.items()))
        value["stop"] = {name: stop._asdict() for name, stop in stops.items()}
    _tell(rows, value, "nodes to label next", asked.out, say)


def _tell(
    rows: Sequence[Mapping[str, object]], value: Mapping[str, Any], what: str, out: Path | None, say: Printing
) -> None:
    from fewnode._system.sheets import csv_text

    def cell(value: object) -> str:
        return f"{value:.6f}" if isinstance(value, float) else "" if value is None else str(value)

    say.table(
        out, lambda: csv_text([*map(list, rows[:1]), *(list(map(cell, row.values())) for row in rows)]), lambda: value
    )
    if out:
        say.note(f"{len(rows)} {what}: {out}")
