"""`fewnode predict`: what nodes are taken for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fewnode.cli.options import MORE
from fewnode.cli.output import Json, Quiet, Threads, emit, note, refuse_unused, set_threads, show, spare_inputs
from fewnode.cli.scale import (
    Address,
    Backend,
    BackendOption,
    Memory,
    Resume,
    Workers,
    keep_memory,
    name_unused,
    working,
)
from fewnode.cli.table_options import OutTable
from fewnode.errors import FewnodeError

if TYPE_CHECKING:
    from fewnode.dataset import Dataset
    from fewnode.model.bulk import Bulk
    from fewnode.model.estimator import Estimator
    from fewnode.recognition.answers import Answers

Transductive = typer.Option(
    False, "--transductive", help="Let the query nodes help each other; pays at one or two shots. Default: inductive."
)
Run = typer.Option(None, "--run", help="The directory that `fewnode train --out` wrote. Not needed with --data.")
Support = typer.Option(
    None, "--support", help="Table `node,class`: a few nodes of each class. A column `answer` may say no: not in it."
)
Classes = typer.Option(None, "--classes", help="Table `class,description`; an empty description: the name speaks.")
OwnMethod = typer.Option(
    None, "--method", help="For a run of a method of your own: FILE.py:CLASS, which is run.", rich_help_panel=MORE
)
OtherData = typer.Option(None, "--data", help="A dataset, without any run; with --run, another one than the run's own.")


def predict(
    context: typer.Context,
    run: Path = Run,
    support: Path = Support,
    classes: Path = Classes,
    query: Path = typer.Option(None, "--query", help="Table `node`: the nodes to classify."),
    everything: bool = typer.Option(False, "--all", help="Classify every node of the network."),
    out: Path = OutTable,
    closed_set: bool = typer.Option(False, "--closed-set", help="Every node is in one of the classes: give the best."),
    threshold: float = typer.Option(
        None, "--threshold", help='A node whose `member` is below is "none of these"; 0 to 1. Default: 0.5.'
    ),
    proportions: str = typer.Option(
        None,
        "--proportions",
        metavar="CLASS=SHARE,…",
        help="Known shares of the classes among the nodes asked about that are in any; or a table `class,share`.",
        rich_help_panel=MORE,
    ),
    with_base: bool = typer.Option(
        False,
        "--with-base",
        help="A node may also be in one of the dataset's training and validation classes.",
        rich_help_panel=MORE,
    ),
    expected: float = typer.Option(
        None, "--expected", help="How many nodes of the network are in the classes, if known."
    ),
    multi_label: bool = typer.Option(
        False, "--multi-label", help="A node may be in several classes: each has a probability of its own."
    ),
    explain: bool = typer.Option(False, "--explain", help="Add why: weights β of support nodes, nearest of them."),
    transductive: bool = Transductive,
    data: str = OtherData,
    method: str = OwnMethod,
    memory: str = Memory,
    resume: bool = Resume,
    backend: Backend = BackendOption,
    address: str = Address,
    workers: int = Workers,
    threads: int = Threads,
    quiet: bool = Quiet,
    as_json: bool = Json,
) -> None:
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
    probability 1 - member; any other has the likeliest class, with the probability of that. A node's answer does not
    depend on which others are asked about, unless --transductive or --proportions. A support node is in the class it
    was given for. A class called like one of these columns has the column p(NAME).

    One class alone means "more like these": sort by `member`. With --closed-set every node gets a class, and the
    classes' probabilities sum to 1. So it is, and is said, where a method cannot tell what is in no class (maml,
    meta-gnn, gcn, sgc, deepwalk, node2vec); `member` is then empty.

    With --proportions mail=0.3,vpn=0.7 the answers are shifted by one factor a class. The classes then have these
    shares on average over the nodes asked about, each counted by its `member`. Give them only if you know them:
    wrong ones do harm.

    With --with-base the classes that the dataset knows from training and validation stand beside the new ones. Each
    has as many labelled nodes as the largest new class; with more it would win too often.

    With --multi-label each class is judged on its own. `label` has all classes at or above --threshold, joined by "|";
    `probability` is that of the likeliest, and `member` that of at least one. Probabilities need not sum to 1. In the
    support table, name a node in every class it is in: it counts as an example against the others.

    --all leaves out nodes of kinds of which none has a label, and says so; --query asks about any node.

    The support table may have a third column, `answer`. Where it says no, the node is not in that class, and nodes
    like it become less likely in it.

    With --explain the table also names the nearest support nodes, and the `words` that a node or a neighbour of it
    (in brackets) shares with the description of its class. `because` says in a sentence what it shares with the
    examples, how it is linked to one, and which examples and counter-examples are like it. The weight β of each
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
    import numpy as np

    from fewnode.recognition.classes import Given, read_proportions, read_query, unused_columns
    from fewnode.recognition.population import blank, claimable, left_out

    if everything == (query is not None):
        raise FewnodeError("give either --query nodes.csv or --all")
    beside = out.with_suffix(".support.csv") if out and explain else None
    spare_inputs([out, beside], {"--support": support, "--classes": classes, "--query": query})
    set_threads(threads)
    shares = None if proportions is None else read_proportions(proportions)
    limit = keep_memory(memory)
    in_blocks = everything and (limit is not None or backend is Backend.ray or workers > 1)
    if not in_blocks:
        refuse_unused(context, ["resume", "backend", "address", "workers"], "without --all in blocks (--memory)")
    model, dataset = open_model(run, data, method, quiet)
    if multi_label and (with_base or proportions):
        raise FewnodeError("--multi-label judges each class on its own: leave out --with-base and --proportions")
    given = Given.read(dataset, support, classes, multi_label)
    if with_base:
        given = given.beside_base(dataset, model.seed)
    tell(given.remarks, quiet)
    if everything and (others := left_out(dataset, given.support)):
        note(f"left out: {others}", quiet)
    mode: dict[str, Any] = {"closed_set": closed_set, "threshold": threshold}
    if in_blocks:
        if not out or transductive or as_json or classes or proportions or with_base or run is None:
            raise FewnodeError(
                "--all in blocks needs --run and --out, and leaves out --classes, --transductive, --proportions, "
                "--with-base, --json"
            )
        if not dataset.graph.home:
            raise FewnodeError("--all in blocks needs a dataset directory; make one with fewnode data import")
        name_unused(backend, address, quiet)
        there = (backend, address, workers)
        from fewnode.model.bulk import Bulk

        bulk = Bulk(
            run.resolve(),
            dataset.graph.home,
            tuple(given.support.tolist()),
            tuple(map(str, given.labels)),
            explain,
            rejected=tuple((str(given.names[c]), tuple(nodes.tolist())) for c, nodes in given.no.items()),
            multi_label=multi_label,
            **mode,
        )
        _classify_all(bulk, out, resume, quiet, there, limit)
        return
    everyone = np.flatnonzero(claimable(dataset, given.support))
    asked = everyone if query is None else np.array(read_query(query, dataset))
    tell([unused_columns(query) if query else "", blank(dataset, asked)], quiet)
    question = model.question(dataset, given, multi_label)
    tell(question.remarks[len(given.remarks) :], quiet)
    answer = question.judge(asked, **mode, transductive=transductive, explain=explain, expected=expected)
    if shares is not None:
        answer = answer.in_proportion(shares)
    _warn(answer, transductive, quiet or as_json)
    note(answer.check, quiet or as_json or not answer.check)
    if out:
        answer.write(out)
        note(f"{_summary(answer)}: {out}", quiet or as_json)
    if as_json:
        emit(answer.to_json())
    elif not out:
        show(answer.to_csv())
    if explain and not as_json and not quiet:
        note(answer.support_table(), quiet)


def _warn(answer: Answers, transductive: bool, quiet: bool) -> None:
    """What the answer is not, although it could be taken for it."""
    if answer.closed_set and answer.member is None:
        note(f"closed set: every node gets one of the classes, since {answer.reason}", quiet)
    if transductive and len(answer.classes) == 1:
        note("--transductive changes nothing: there is one class alone", quiet)


def _summary(answer: Answers) -> str:
    from fewnode.recognition.answers import NONE

    if answer.closed_set:
        return f"{len(answer.nodes):,} nodes classified into {_classes(answer)}"
    none = answer.labels.count(NONE)
    if answer.multi_label:
        several = int(((answer.probabilities >= answer.threshold).sum(axis=1) > 1).sum())
        found = f"{len(answer.nodes) - none:,} nodes in {_classes(answer)}, {several:,} of them in several"
        return f"{found}, {none:,} in none of these"
    way_out = " (--closed-set gives every node a class)" if none and len(answer.classes) > 1 else ""
    return f"{len(answer.nodes) - none:,} nodes in {_classes(answer)}, {none:,} in none of these{way_out}"


def _classes(answer: Answers) -> str:
    return f"{len(answer.classes)} class{'es' if len(answer.classes) > 1 else ''}"


def _classify_all(
    bulk: Bulk, out: Path, resume: bool, quiet: bool, there: tuple[Backend, str | None, int], limit: int | None
) -> None:
    from fewnode._system.files import write_text
    from fewnode.model.bulk import classify

    with working(*there, limit, out.parent, quiet) as pool:
        answer = classify(bulk, out, resume, pool)
    _warn(answer, False, quiet)
    if answer.why:
        write_text(out.with_suffix(".support.csv"), answer.support_csv())
        note(answer.support_table(), quiet)
    none = "" if answer.closed_set else ", or into none of these"
    none = ", several of them or none of these" if answer.multi_label else none
    note(f"every node classified into {_classes(answer)}{none}: {out}", quiet)


def tell(remarks: Sequence[str], quiet: bool) -> None:
    """What was given and not used, a line each."""
    for remark in filter(None, remarks):
        note(remark, quiet)


def open_model(run: Path | None, data: str | None, method: str | None, quiet: bool) -> tuple[Estimator, Dataset]:
    """The model of a run and its dataset; without a run, GPN+ for the dataset."""
    if run is not None:
        return open_run(run, data, method, quiet)
    if data is None:
        raise FewnodeError("give --data D, or --run RUN of a training")
    if method is not None:
        raise FewnodeError("--method belongs to a run; without one, gpn-plus answers")
    from fewnode.formats.sources import load
    from fewnode.model.recognise import is_kept, untrained

    dataset = load(data)
    if not is_kept(dataset):
        note(f"{dataset.name}: {dataset.graph}; reading it once, which is kept for the next time", quiet)
    model = untrained(dataset)
    return model, dataset


def open_run(run: Path, data: str | None, method: str | None, quiet: bool) -> tuple[Estimator, Dataset]:
    """The model of a run, and the dataset it remembers or another one with the same attributes."""
    from fewnode.model.model_files import load_model, recall

    model = load_model(run, method=method)
    dataset = _dataset_of(model, run, data)
    if model.needs_fit:
        note(f"{Path(model.method).name} keeps no state: it is fitted again", quiet)
        model.fit(dataset)
    else:
        recall(model, dataset)
    return model, dataset


def _dataset_of(model: Estimator, run: Path, data: str | None) -> Dataset:
    from fewnode.formats.sources import load

    remembered = model.trained_["data"]
    if data is None and "path" not in remembered:
        raise FewnodeError(f"{run}: the model does not know where its dataset is; pass --data")
    if data is None and Path(remembered["path"]).is_absolute() and not Path(remembered["path"]).exists():
        raise FewnodeError(f"{run}: its dataset is no longer at {remembered['path']}; say where it is now with --data")
    dataset = load(data or remembered["path"])
    if data is None and dataset.sha256 != remembered["sha256"]:
        raise FewnodeError(
            f"{remembered['path']} has changed since {run} was trained; pass --data to use it all the same"
        )
    model.check_features(dataset)
    return dataset
