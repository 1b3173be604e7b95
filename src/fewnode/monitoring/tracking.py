"""Who else is told of a training: Python's `logging`, a bar, TensorBoard, MLflow."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, Self

from torch import Tensor, nn

from fewnode.adam import Adam
from fewnode.errors import FewnodeError, visible
from fewnode.machine.files import one_line
from fewnode.monitoring.progress import training_progress
from fewnode.train import History, Journal

LOG = logging.getLogger("fewnode")

Listener = Callable[[str, int, float, History], None]
"""Told the part of the training, the episode, its loss, and what is behind."""


@dataclass(frozen=True)
class Observed(Journal):
    """A journal, and others who are told what it is told."""

    journal: Journal
    listeners: tuple[Listener, ...]
    part: str = ""

    def report(self, episode: int, loss: float, history: History) -> None:
        self.journal.report(episode, loss, history)
        for listener in self.listeners:
            listener(self.part, episode, loss, history)

    def resume(self, model: nn.Module, optimizer: Adam) -> tuple[History, dict[str, Tensor]]:
        return self.journal.resume(model, optimizer)

    def save(self, model: nn.Module, optimizer: Adam, history: History, best: Mapping[str, Tensor]) -> None:
        self.journal.save(model, optimizer, history, best)

    def within(self, part: str) -> Self:
        return replace(self, journal=self.journal.within(part), part=part)

    def agreeing(self, settings: Mapping[str, Any]) -> Self:
        return replace(self, journal=self.journal.agreeing(settings))


class Run(Protocol):
    """One training in somebody's tracking system."""

    def settings(self, values: Mapping[str, object]) -> None: ...

    def number(self, name: str, value: float, step: int) -> None: ...

    def close(self, failed: bool) -> None: ...


class TensorBoardRun:
    """Event files in a folder: `tensorboard --logdir FOLDER` shows them."""

    def __init__(self, folder: str | Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ModuleNotFoundError:
            raise FewnodeError("tensorboard is not installed: pip install 'fewnode[tensorboard]'") from None
        self.writer: Any = SummaryWriter(str(folder))

    def settings(self, values: Mapping[str, object]) -> None:
        rows = "\n".join(f"| {name} | {value} |" for name, value in values.items())
        self.writer.add_text("settings", f"| setting | value |\n|---|---|\n{rows}")

    def number(self, name: str, value: float, step: int) -> None:
        self.writer.add_scalar(name, value, step)

    def close(self, failed: bool) -> None:
        self.writer.close()


class MLflowRun:
    """A run of the experiment `fewnode` in an MLflow store: a folder, or the address of a server."""

    def __init__(self, store: str | Path) -> None:
        try:
            from mlflow import MlflowClient
            from mlflow.exceptions import MlflowException
        except ModuleNotFoundError:
            raise FewnodeError("mlflow is not installed: pip install 'fewnode[mlflow]'") from None
        address = str(store) if "://" in str(store) else f"sqlite:///{_made(Path(store)) / 'mlflow.db'}"
        try:
            self.client: Any = MlflowClient(address)
            found = self.client.get_experiment_by_name("fewnode")
            number = found.experiment_id if found else self.client.create_experiment("fewnode")
            self.run = self.client.create_run(number).info.run_id
        except (MlflowException, OSError) as error:
            raise FewnodeError(f"{store}: not an MLflow store that can be written ({one_line(error)})") from None

    def settings(self, values: Mapping[str, object]) -> None:
        for name, value in values.items():
            self.client.log_param(self.run, name, value)

    def number(self, name: str, value: float, step: int) -> None:
        self.client.log_metric(self.run, name, value, step=step)

    def close(self, failed: bool) -> None:
        self.client.set_terminated(self.run, "FAILED" if failed else "FINISHED")


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()


@contextmanager
def tracked(
    journal: Journal,
    settings: Mapping[str, object],
    episodes: int,
    verbose: bool = False,
    tensorboard: str | Path | None = None,
    mlflow: str | Path | None = None,
) -> Iterator[tuple[Journal, Callable[[Mapping[str, Any]], None]]]:
    """A journal for a training, and what to call with its record at the end. Losses and accuracies go to all."""
    runs: list[Run] = []
    if tensorboard is not None:
        runs.append(TensorBoardRun(tensorboard))
    if mlflow is not None:
        runs.append(MLflowRun(mlflow))
    failed = True
    with ExitStack() as open_things:
        listeners: list[Listener] = [_logged]
        if verbose:
            listeners.append(open_things.enter_context(training_progress(episodes, _say)))
        for run in runs:
            run.settings(settings)
            listeners.append(_scalars(run))
        LOG.info("fitting %s", ", ".join(f"{name}={value}" for name, value in settings.items()))

        def finish(record: Mapping[str, Any]) -> None:
            for run in runs:
                run.number("seconds", record["seconds"], 0)
                for shots, accuracy in record["validated"].items():
                    run.number("validated accuracy by shots", accuracy, int(shots))
            LOG.info("fitted in %.1f s", record["seconds"])
            if verbose:
                _say(f"fitted in {record['seconds']:.1f} s")

        try:
            yield Observed(journal, tuple(listeners)), finish
            failed = False
        finally:
            for run in runs:
                run.close(failed)


def _logged(part: str, episode: int, loss: float, history: History) -> None:
    if episode == history.done:
        best = history.points[-1]
        LOG.debug(
            "%s episode %d: loss %.4f, validation accuracy %.4f", part or "training", episode, loss, best.accuracy
        )


def _scalars(run: Run) -> Listener:
    def tell(part: str, episode: int, loss: float, history: History) -> None:
        """An episode is told once; when its validation is done, again, with the accuracy."""
        prefix = f"{part} " if part else ""
        if episode == history.done:
            run.number(f"{prefix}validation accuracy", history.points[-1].accuracy, episode)
        else:
            run.number(f"{prefix}loss", loss, episode)

    return tell


def _say(text: str) -> None:
    print(visible(text), file=sys.stderr)
