"""`fewnode predict`: what nodes are taken for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fewnode._system.files import write_text
from fewnode.cli.options import options
from fewnode.cli.output import OUT_TABLE, OutTable, Printing, Threads, refuse, spare
from fewnode.cli.source import Blocks, Source, Tables
from fewnode.errors import FewnodeError
from fewnode.options import Options, option

if TYPE_CHECKING:
    from fewnode.dataset import Dataset
    from fewnode.recognition.answers import Answers
    from fewnode.recognition.classes import Given
    from fewnode.recognition.question import Question


class Answer(Options):
    """Which nodes are asked about, and what an answer says."""

    query: Path | None = option("Table `node`: the nodes to classify.")
    everything: bool = option("Classify every node of the network.", False, flag="--all")
    out: OutTable = OUT_TABLE
    closed_set: bool = option("Every node is in one of the classes: give the best.", False)
    threshold: float | None = option('A node whose `member` is below is "none of these"; 0 to 1. Default: 0.5.')
    expected: float | None = option("How many nodes of the network are in the classes, if known.")
    top: int | None = option("Label so many nodes of each class, the likeliest.", ge=1)
    multi_label: bool = option("A node may be in several classes: each has a probability of its own.", False)
    explain: bool = option("Add why: weights β of support nodes, nearest of them.", False)
    transductive: bool = option(
        "Let the query nodes help each other; pays at one or two shots. Default: inductive.", False
    )
    proportions: str | None = option(
        "Known shares of the classes among the nodes asked about that are in any; or a table `class,share`.",
        metavar="CLASS=SHARE,…",
        rare=True,
    )
    with_base: bool = option(
        "A node may also be in one of the dataset's training and validation classes.", False, rare=True
    )
    resume: bool = option("Go on with the blocks that an unfinished run has left.", False, rare=True)


@options(Source, Tables, Answer, Blocks, Threads, Printing)
def predict(source: Source, tables: Tables, asked: Answer, blocks: Blocks, threads: Threads, say: Printing) -> None:
    """Find the nodes of classes that are given by a few nodes, by a sentence, or by both.

    Other nodes are "none of these". No run is needed: with --data, GPN+ answers from what it learned on other networks
    and from the dataset's base classes, if it has some. The first answer takes seconds; it is kept for the next ones.

    \b
    Example:
      printf 'node,class\\nopenvpn,vpn\\ntinc,vpn\\nexim4,mail\\n' > support.csv
      fewnode predict --data debian --support support.csv --all --out p.csv
      printf 'class,description\\nmail,send and filter mail\\nvpn,\\n' > classes.csv
      fewnode predict --data debian --classes classes.csv --all --out p.csv
      fewnode predict --run run --support support.csv --all --out p.csv

    Which nodes to label next: `fewnode suggest`. Nodes that are not in the network yet: `fewnode data extend`. The
    same by HTTP and on a page: `fewnode serve`.
    \f

    The output has one row a node: `node,label,probability`, then P(the node is in it) for each class, and `member`,
    the sum of those: P(it is in any of them). A node whose `member` is below --threshold is "none of these", with
    probability 1 - member; any other has the likeliest class. A node's answer does not depend on which others are
    asked about, unless --transductive or --proportions. A class called like one of these columns is p(NAME).

    One class alone means "more like these": sort by `member`. With --closed-set every node gets a class, and the
    classes' probabilities sum to 1. So it is, and is said, where a method cannot tell what is in no class.

    Where nothing tells how many nodes are in a class, as from a single node without base classes, nodes are only
    ranked: `member` is empty, and the given nodes alone have a label. Say how many there are with --expected, or let
    --top 20 label the 20 likeliest of each class beside the given ones.

    With --proportions mail=0.3,vpn=0.7 the classes have these shares on average over the nodes asked about, each
    counted by its `member`. Give them only if you know them. With --with-base each base class has as many labelled
    nodes as the largest new class.

    With --multi-label each class is judged on its own. `label` has all classes at or above --threshold, joined by "|";
    without one, each class claims the nodes for which its expected F1 is highest. In the support table, name a node in
    every class it is in: it counts as an example against the others.

    --all leaves out nodes of kinds of which none has a label, and says so; --query asks about any node.

    With --explain the table also names the nearest support nodes and, in a sentence, says why: `because`. `words` are
    those that a node or a neighbour of it (in brackets) shares with the description of its class. The weight β of each
    support node in its class goes to a second table, OUT.support.csv.

    \b
    Examples:
      printf 'node\\nstrongswan\\ndovecot-core\\n' > nodes.csv
      fewnode predict --run run --support support.csv --query nodes.csv --explain
      fewnode predict --run run --support support.csv --all --threshold 0.9
      printf 'class,share\\nmail,0.3\\nvpn,0.7\\n' > mix.csv
      fewnode predict --run run --support support.csv --all --proportions mix.csv
      fewnode predict --run run --support support.csv --all --with-base
      printf 'node,class\\ntinc,vpn\\ntinc,server\\nexim4,server\\n' > s.csv
      fewnode predict --data debian --support s.csv --multi-label --all
    """
    from fewnode.recognition.classes import read_proportions
    from fewnode.recognition.population import left_out

    out = asked.out
    if asked.everything == (asked.query is not None):
        raise FewnodeError("give either --query nodes.csv or --all")
    if asked.multi_label and asked.proportions:
        raise FewnodeError("--multi-label judges each class on its own: leave out --proportions")
    beside = out.with_suffix(".support.csv") if out and asked.explain else None
    spare([out, beside], {"--support": tables.support, "--classes": tables.classes, "--query": asked.query})
    in_blocks = asked.everything and (blocks.memory is not None or blocks.several)
    if in_blocks:
        whole = asked.given("transductive", "proportions", "with_base", "expected", "top")
        refuse([*tables.given("classes"), *whole, *say.given("as_json")], "with --all in blocks")
    else:
        unused = [*asked.given("resume"), *blocks.given("backend", "address", "workers")]
        refuse(unused, "without --all in blocks (--memory)")
    threads.use()
    shares = None if asked.proportions is None else read_proportions(asked.proportions)
    blocks.limit()
    model, dataset = source.open(say)
    given = tables.read(dataset, asked.multi_label)
    if asked.everything and (others := left_out(dataset, given.support)):
        say.note(f"left out: {others}")
    if in_blocks:
        answers = _in_blocks(source, asked, blocks, given, dataset, say)
        none = ", several of them or none of these" if asked.multi_label else ", or into none of these"
        found = f"every node classified into {_classes(answers)}{'' if answers.closed_set else none}"
    else:
        answers = _judged(model.question(dataset, given, asked.multi_label, asked.with_base), asked, say)
        answers = answers if shares is None else answers.in_proportion(shares)
        say.note(answers.check)
        say.table(out, answers.to_csv, answers.to_json)
        found = _summary(answers)
    if answers.closed_set and answers.member is None:
        say.note(f"closed set: every node gets one of the classes, since {answers.reason}")
    if asked.transductive and len(answers.classes) == 1:
        say.note("--transductive changes nothing: there is one class alone")
    if answers.why and beside:
        write_text(beside, answers.support_csv())
    say.note(f"{found}: {out}" if out else "", answers.support_table() if answers.why and not say.as_json else "")


def _judged(question: Question, asked: Answer, say: Printing) -> Answers:
    """The answer in memory, after what of the question is not used."""
    import numpy as np

    from fewnode.recognition.classes import read_query, unused_columns
    from fewnode.recognition.population import blank, claimable

    data = question.data
    if asked.query is None:
        rows = np.flatnonzero(claimable(data, question.given.support))
    else:
        rows = np.array(read_query(asked.query, data))
        say.note(unused_columns(asked.query))
    say.note(*question.remarks, blank(data, rows))
    how = asked.model_dump(include={"closed_set", "threshold", "transductive", "explain", "expected"})
    return question.judge(rows, **how, top=asked.top or 0)


def _in_blocks(source: Source, asked: Answer, blocks: Blocks, given: Given, dataset: Dataset, say: Printing) -> Answers:
    """The answer from disk to disk, and that for the support nodes, which tell the classes."""
    from fewnode.model.bulk import Bulk, classify

    if not asked.out or source.run is None:
        raise FewnodeError("--all in blocks needs --run and --out")
    if not dataset.graph.home:
        raise FewnodeError("--all in blocks needs a dataset directory; make one with fewnode data import")
    say.note(*given.remarks)
    blocks.name_unused(say)
    nodes, labels = tuple(given.support.tolist()), tuple(map(str, given.labels))
    rejected = tuple((str(given.names[c]), tuple(rows.tolist())) for c, rows in given.no.items())
    how = asked.model_dump(include={"closed_set", "threshold", "explain", "multi_label"})
    bulk = Bulk(source.run.resolve(), dataset.graph.home, nodes, labels, rejected=rejected, **how)
    with blocks.open(asked.out.parent, say) as workers:
        return classify(bulk, asked.out, asked.resume, workers)


def _summary(answers: Answers) -> str:
    from fewnode.recognition.answers import NONE

    if answers.closed_set:
        return f"{len(answers.nodes):,} nodes classified into {_classes(answers)}"
    none = answers.labels.count(NONE)
    several = f", {sum('|' in label for label in answers.labels):,} of them in several" if answers.multi_label else ""
    way_out = none and len(answers.classes) > 1 and not answers.multi_label
    advice = " (--closed-set gives every node a class)" if way_out else ""
    return f"{len(answers.nodes) - none:,} nodes in {_classes(answers)}{several}, {none:,} in none of these{advice}"


def _classes(answers: Answers) -> str:
    return f"{len(answers.classes)} class{'es' if len(answers.classes) > 1 else ''}"
