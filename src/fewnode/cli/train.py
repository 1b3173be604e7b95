"""`fewnode train`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fewnode.cli.options import options
from fewnode.cli.output import Printing, Threads
from fewnode.cli.source import Blocks
from fewnode.errors import FewnodeError
from fewnode.methods.table import METHODS, has_option
from fewnode.options import Options, option

if TYPE_CHECKING:
    from fewnode.dataset import Dataset
    from fewnode.model.estimator import Estimator
    from fewnode.train import OnStep

MAX_TUNED_BYTES = 1 << 24
VIEWS = "views"
"""The folder of a run that has its views while they are made on the disk."""


class Training(Options):
    """What is trained, on what, and where it goes."""

    data: str = option("A built-in name, a dataset directory, or a file that `data import` reads.", ...)
    out: Path = option("Directory for the model; it must not hold a run yet.", ...)
    method: str = option("One of the list above, or FILE.py:CLASS.", "gpn-plus", words=[*METHODS])
    way: int | None = option("N: classes in a training task; default 5, or all if there are fewer.")
    shot: int = option("K: support nodes a class; as many as you will have, if you know.", 5)
    query: int | None = option("M: query nodes a class; default: as many as --shot.")
    seed: int = option("Of weights, tasks and dropout.", 0, ge=0)
    resume: bool = option("Continue the run in --out, or start it if there is none.", False)
    episodes: int | None = option("Training tasks at most; default 300 for most.", ge=1)
    tuned: Path | None = option("Options that `fewnode tune --out` found.")
    others: list[str] = option(
        "Any option of the method, as eps=1, dropout=0.5, hidden=[32,16] or device=cuda. Repeatable.",
        [],
        flag="--option",
        metavar="NAME=VALUE",
    )
    features: str | None = option(
        "For networks without attributes: degree, svd or walks.", rare=True, words=["degree", "svd", "walks"]
    )


@options(Training, Blocks, Threads, Printing)
def train(training: Training, blocks: Blocks, threads: Threads, say: Printing) -> None:
    """Meta-train a method on the training classes of a network and save the model.

    Training stops early when the validation classes say so, and the best weights are kept. With --resume a killed
    training continues with the same bits. A model is trained once: new classes are named when it is asked.

    \b
    Methods:
      gpn-plus            the default: views of a node, mixed by what classes show
      propagation         attributes spread over the graph, nearest class mean
      gpn, gpn-naive, pn  the paper's; without valuator; without graph, too
      gpn-authors         GPN as its authors' public code has it
      meta-gnn, maml      adapt to a task, and learn to; with and without graph
      gcn, sgc            adapt to a task, from a classifier of other classes
      deepwalk, node2vec  structure alone
      nearest-mean, logistic  see no base class: fewnode evaluate --protocol
      FILE.py:CLASS       your own, as in examples/my_method.py and research/

    \b
    Example:
      fewnode train --data debian --out run
      fewnode train --data mydata --method gpn --shot 3 --out run2
      fewnode evaluate --run run
      fewnode predict --run run --support support.csv --all --out p.csv
    """
    from fewnode.formats.sources import load
    from fewnode.method import HasHistory
    from fewnode.methods.plus import GPNPlus
    from fewnode.model.estimator import Estimator

    own, out = method_options(training.others), training.out
    if training.tuned is not None:
        own = {**tuned_options(training.tuned, training.method), **own}
    if training.episodes is not None and has_option(training.method, "episodes"):
        own["episodes"] = training.episodes
    elif training.episodes is not None:
        say.note(f"{training.method} does not train by episodes: --episodes is ignored")
    shape = (training.way, training.shot, training.query, training.seed)
    model = Estimator(training.method, *shape, training.features, **own)
    _check_free(out, training.resume)  # before the network is read, which may take a while
    threads.use()
    blocks.limit()
    dataset = load(training.data)
    if training.way is None and dataset.split.train:
        model.way = max(2, min(model.way, len(dataset.split.train)))
    heading = f"{dataset.name}: {dataset.graph}"
    if len(dataset.split.valid) < model.way:
        heading += f"\n{len(dataset.split.valid)} validation classes: that many ways in validation, not {model.way}"
    with _tiles(model, dataset, out, blocks, say), say.following(model.method_, heading) as on_step:
        trained = _train(model, dataset, training, on_step)
    about: dict[str, Any] = {"run": str(out), "method": model.method}
    best = ""
    if not trained:
        say.result({**about, "finished_before": True}, "")
        say.note(f"{out} is finished already")
        return
    seconds = model.trained_["seconds"]
    if isinstance(model.method_, HasHistory) and (history := model.method_.history_):
        about |= {"best": asdict(history.best), "episodes": history.done, "stopped_early": history.stopped}
        accuracy = f"{100 * history.best.accuracy:.1f} %"
        best = f"best validation accuracy {accuracy} at episode {history.best.episode} of {history.done}"
    say.result({**about, "seconds": {"train": seconds}}, best)
    say.note(f"saved to {out} after {seconds:.1f} s; next: fewnode evaluate --run {out}")
    if isinstance(model.method_, GPNPlus):
        say.note(*(f"not used: {kind}" for kind in model.method_.unused_kinds(dataset.graph)))


def _train(model: Estimator, dataset: Dataset, training: Training, on_step: OnStep) -> bool:
    """Train and save; False if that was done before, as it is asked for now."""
    from fewnode._system.files import exclusive
    from fewnode.formats.checkpoint import need_same_settings
    from fewnode.methods.plus import GPNPlus
    from fewnode.model.model_files import keep, read_model

    out = training.out
    with exclusive(out):
        _check_free(out, training.resume)  # again: another training may have been at it until now
        finished = (out / "model.json").exists()
        if finished:
            meta, settings = read_model(out)[0], model.all_settings()
            before = {**{name: meta.get(name) for name in settings}, "data": meta["trained"]["data"]["sha256"]}
            need_same_settings(out, before, {**settings, "data": dataset.sha256})
        else:
            model.fit(dataset, on_step=on_step, checkpoints=out)
            path = Path(training.data)
            model.trained_["data"]["path"] = str(path.resolve()) if path.exists() else training.data
            model.save(out)
            keep(model, dataset)
        if isinstance(model.method_, GPNPlus):
            model.method_.room.clear()
        for checkpoint in _checkpoints(out):  # a kill may have kept a finished training from clearing its last one
            checkpoint.unlink()
            with suppress(OSError):
                checkpoint.parent.rmdir()  # that of a part is empty now
    return not finished


def _check_free(out: Path, resume: bool) -> None:
    if resume or not out.is_dir():
        return
    if (out / "model.json").exists():
        raise FewnodeError(f"{out}: there is a run already (fewnode evaluate --run {out}); choose another --out")
    if _checkpoints(out) or (out / VIEWS).exists():
        raise FewnodeError(f"{out}: there is an unfinished run; continue it with --resume or choose another --out")


def _checkpoints(out: Path) -> list[Path]:
    """Of the training and of its parts, which have a directory each."""
    from fewnode.formats.checkpoint import CHECKPOINT

    return [*out.glob(CHECKPOINT), *out.glob(f"*/{CHECKPOINT}")]


@contextmanager
def _tiles(model: Estimator, dataset: Dataset, out: Path, blocks: Blocks, say: Printing) -> Iterator[None]:
    """GPN+ from disk to disk, in tiles that this process or a cluster makes, if that is asked for."""
    from fewnode.embedding.room import Room
    from fewnode.methods.plus import GPNPlus

    name, home, plus = Path(model.method).name, dataset.graph.home, isinstance(model.method_, GPNPlus)
    if blocks.backend == "ray" and not plus:
        raise FewnodeError(f"{name} is trained by one process: leave out --backend; gpn-plus works on a cluster")
    if blocks.backend == "ray" and home is None:
        raise FewnodeError("workers need a dataset directory that all of them see; make one with fewnode data import")
    blocks.name_unused(say)
    if blocks.memory and not (plus and home and model.features is None):
        kept = "by gpn-plus, for a dataset directory (fewnode data import) with its own attributes"
        say.note(f"--memory is kept {kept}: here all is in memory")
    if not plus or not (blocks.memory or blocks.several):
        yield
        return
    with blocks.open(out, say) as workers:
        if model.features is None:
            model.method_.room = Room.of(dataset.graph, out / VIEWS, model.all_settings(), workers)
        yield


def tuned_options(path: Path, method: str) -> dict[str, Any]:
    """The options of a file that `fewnode tune --out` wrote for that method."""
    from fewnode._system.files import one_line, read_text

    try:
        found = json.loads(read_text(path, MAX_TUNED_BYTES))
        name, options = str(found["method"]), dict(found["options"])
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise FewnodeError(f"{path}: not what fewnode tune writes ({one_line(error)})") from None
    if name != method:
        raise FewnodeError(f"{path}: found for {name}, not for {method}; pass --method {name}")
    return options


def method_options(given: Sequence[str]) -> dict[str, Any]:
    """NAME=VALUE pairs; a value is a JSON value or, failing that, text."""
    options: dict[str, Any] = {}
    for pair in given:
        name, equals, value = pair.partition("=")
        if not equals:
            raise FewnodeError(f"--option {pair!r}: expected NAME=VALUE")
        try:
            options[name.replace("-", "_")] = json.loads(value)
        except ValueError:
            options[name.replace("-", "_")] = value
    return options
