"""`fewnode train`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fewnode.cli.options import MORE, options_of
from fewnode.cli.output import Json, Quiet, Threads, emit, following, note, set_threads, starting
from fewnode.cli.scale import (
    Address,
    Backend,
    BackendOption,
    Memory,
    Workers,
    keep_memory,
    name_unused,
    working,
)
from fewnode.errors import FewnodeError
from fewnode.options import MethodOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fewnode.dataset import Dataset
    from fewnode.model.estimator import Estimator

MAX_TUNED_BYTES = 1 << 24
VIEWS = "views"
"""The folder of a run that has its views while they are made on the disk."""
METHODS = (
    *("gpn-plus", "propagation", "gpn", "gpn-authors", "gpn-naive", "pn", "meta-gnn", "maml", "gcn", "sgc"),
    *("deepwalk", "node2vec", "nearest-mean", "logistic"),
)


@options_of(MethodOptions)
def train(
    data: str = typer.Option(
        ..., "--data", help="A built-in name, a dataset directory, or a file that `data import` reads."
    ),
    out: Path = typer.Option(..., "--out", help="Directory for the model; it must not hold a run yet."),
    method: str = typer.Option(
        "gpn-plus",
        "--method",
        help="One of the list above, default gpn-plus, or FILE.py:CLASS.",
        autocompletion=starting(*METHODS),
    ),
    way: int = typer.Option(None, "--way", help="N: classes in a training task; default 5, or all if there are fewer."),
    shot: int = typer.Option(5, "--shot", help="K: support nodes a class; as many as you will have, if you know."),
    query: int = typer.Option(None, "--query", help="M: query nodes a class; default: as many as --shot."),
    seed: int = typer.Option(0, "--seed", min=0, help="Of weights, tasks and dropout."),
    resume: bool = typer.Option(False, "--resume", help="Continue the run in --out, or start it if there is none."),
    features: str = typer.Option(
        None,
        "--features",
        help="For networks without attributes: degree, svd or walks.",
        autocompletion=starting("degree", "svd", "walks"),
        rich_help_panel=MORE,
    ),
    tuned: Path = typer.Option(None, "--tuned", help="Options that `fewnode tune --out` found."),
    option: list[str] = typer.Option(
        [], "--option", metavar="NAME=VALUE", help="Any other option of the method; repeatable.", rich_help_panel=MORE
    ),
    memory: str = Memory,
    backend: Backend = BackendOption,
    address: str = Address,
    workers: int = Workers,
    threads: int = Threads,
    quiet: bool = Quiet,
    as_json: bool = Json,
    *,
    given: Mapping[str, Any],
) -> None:
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
    from fewnode.embedding.practice import unused_kinds
    from fewnode.formats.sources import load
    from fewnode.methods.table import has_option
    from fewnode.model.estimator import Estimator

    own = MethodOptions.of(given, door=MethodOptions.flag).model_dump(exclude_unset=True)
    if "episodes" in own and not has_option(method, "episodes"):
        note(f"{method} does not train by episodes: --episodes is ignored", quiet)
        del own["episodes"]
    own = {**(_tuned(tuned, method) if tuned else {}), **method_options(option), **own}
    model = Estimator(method, 5 if way is None else way, shot, query, seed, features, **own)
    _check_free(out, resume)  # before the network is read, which may take a while
    set_threads(threads)
    limit = keep_memory(memory)
    dataset = load(data)
    if way is None:
        model.way = max(2, min(5, len(dataset.split.train)))
    heading = f"{dataset.name}: {dataset.graph}"
    if len(dataset.split.valid) < model.way:
        heading += f"\n{len(dataset.split.valid)} validation classes: that many ways in validation, not {model.way}"
    name_unused(backend, address, quiet)
    _say_memory(model, dataset, limit, backend, quiet)
    tiled = _tiled(model, dataset, out, limit, (backend, address, workers), quiet)
    with tiled, following(getattr(model.method_, "episodes", 0), quiet, heading) as on_step:
        fit = partial(model.fit, dataset, on_step=on_step, checkpoints=out)
        trained = _train(model, fit, dataset, data, out, resume)
    if trained:
        _say_trained(model, out, quiet, as_json)
        for what in unused_kinds(model.method_, dataset.graph):
            note(f"not used: {what}", quiet)
    else:
        note(f"{out} is finished already", quiet or as_json)
        if as_json:
            emit({"run": str(out), "method": model.method, "finished_before": True})


def _train(
    model: Estimator, fit: Callable[[], Estimator], dataset: Dataset, data: str, out: Path, resume: bool
) -> bool:
    """Train and save; False if somebody else has done so by now."""
    from fewnode._system.files import exclusive
    from fewnode.methods.plus import GPNPlus
    from fewnode.model.model_files import keep

    with exclusive(out):
        _check_free(out, resume)  # again: another training may have been at it until now
        finished = (out / "model.json").exists()
        if finished:
            _need_the_same(out, model, dataset)
        else:
            fit()
            model.trained_["data"]["path"] = _remembered(data)
            model.save(out)
            keep(model, dataset)
        if isinstance(model.method_, GPNPlus):
            model.method_.room.clear()
        _clear_checkpoints(out)
    return not finished


def _need_the_same(out: Path, model: Estimator, dataset: Dataset) -> None:
    """A finished run is what was asked for only if it was trained in that way, on that network."""
    from fewnode.formats.checkpoint import need_same_settings
    from fewnode.model.model_files import read_model

    meta = read_model(out)[0]
    asked = {**model.all_settings(), "data": dataset.sha256}
    before = {**{name: meta.get(name) for name in asked}, "data": meta["trained"]["data"]["sha256"]}
    need_same_settings(out, before, asked)


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


def _clear_checkpoints(out: Path) -> None:
    """A finished run has no use for them; a kill may have kept the last one from clearing them away."""
    for checkpoint in _checkpoints(out):
        checkpoint.unlink()
        with suppress(OSError):
            checkpoint.parent.rmdir()  # that of a part is empty now


def _say_memory(model: Estimator, dataset: Dataset, limit: int | None, backend: Backend, quiet: bool) -> None:
    """Where the whole network is in memory, or in one process, although somebody asked for less."""
    from fewnode.methods.plus import GPNPlus

    name, plus = Path(model.method).name, isinstance(model.method_, GPNPlus)
    if backend is Backend.ray and not plus:
        raise FewnodeError(f"{name} is trained by one process: leave out --backend; gpn-plus works on a cluster")
    if limit is not None and not plus:
        note(f"{name} holds the whole network in memory: --memory is kept by gpn-plus alone", quiet)
    elif limit is not None and (dataset.graph.home is None or model.features is not None):
        kept = "a dataset directory (fewnode data import) with its own attributes"
        note(f"--memory is kept for {kept}: all is in memory", quiet)


@contextmanager
def _tiled(
    model: Estimator,
    dataset: Dataset,
    out: Path,
    limit: int | None,
    there: tuple[Backend, str | None, int],
    quiet: bool,
) -> Iterator[None]:
    """GPN+ from disk to disk, in tiles that this process or a cluster makes."""
    from fewnode.embedding.room import IN_MEMORY, Room
    from fewnode.methods.plus import GPNPlus

    backend = there[0]
    if not isinstance(model.method_, GPNPlus) or (limit is None and backend is Backend.local and there[2] == 1):
        yield
        return
    if dataset.graph.home is None and backend is Backend.ray:
        raise FewnodeError("workers need a dataset directory that all of them see; make one with fewnode data import")
    folder, settings = out / VIEWS, model.all_settings()
    with working(*there, limit, out, quiet) as workers:
        if model.features is None:
            model.method_.room = Room.of(dataset.graph, folder, settings, workers)
        yield
    model.method_.room = IN_MEMORY


def _say_trained(model: Estimator, out: Path, quiet: bool, as_json: bool) -> None:
    history = getattr(model.method_, "history_", None)
    seconds = model.trained_["seconds"]
    learned: dict[str, Any] = {}
    if history is not None:
        best = history.best
        learned = {"best": asdict(best), "episodes": history.done, "stopped_early": history.stopped}
    if as_json:
        emit({"run": str(out), "method": model.method, **learned, "seconds": {"train": seconds}})
        return
    if history is not None:
        typer.echo(f"best validation accuracy {100 * best.accuracy:.1f} % at episode {best.episode} of {history.done}")
    note(f"saved to {out} after {seconds:.1f} s; next: fewnode evaluate --run {out}", quiet)


def _remembered(data: str) -> str:
    return str(Path(data).resolve()) if Path(data).exists() else data


def read_tuned(path: Path) -> tuple[str, dict[str, Any]]:
    """The method and the options of a file that `fewnode tune --out` wrote."""
    from fewnode._system.files import one_line, read_text

    try:
        found = json.loads(read_text(path, MAX_TUNED_BYTES))
        return str(found["method"]), dict(found["options"])
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise FewnodeError(f"{path}: not what fewnode tune writes ({one_line(error)})") from None


def _tuned(path: Path, method: str) -> dict[str, Any]:
    name, options = read_tuned(path)
    if name != method:
        raise FewnodeError(f"{path}: found for {name}, not for {method}; pass --method {name}")
    return options


def method_options(given: list[str]) -> dict[str, Any]:
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
