"""Hyper-parameters by validation classes: each trial trains on the training classes; no test class is ever looked at.

The first trial is the method with its defaults, so that what is found is never worse than they are. The search is
optuna's, where that is installed (`pip install 'fewnode[tune]'`), and random otherwise.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import time
import tomllib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from fewnode.dataset import Dataset
from fewnode.episodes import EpisodeSampler
from fewnode.errors import FewnodeError
from fewnode.estimator import Estimator
from fewnode.evaluation import score
from fewnode.machine.files import one_line, read_text, write_text
from fewnode.methods.defaults import Range, options, space
from fewnode.train import Diverged

MAX_BYTES = 1 << 24
POOL_SEED = 1
"""Trials are compared on validation tasks that early stopping, which draws with seed 0, has not seen."""

Space = dict[str, list[Any] | Range]


@dataclass(frozen=True)
class Trial:
    """One training: its options and the accuracy on validation tasks, or why there is none."""

    options: dict[str, Any]
    accuracy: float | None
    seconds: float
    failed: str | None = None


@dataclass(frozen=True)
class Tuned:
    """What a search found: the options that validated best, and every trial."""

    method: str
    options: dict[str, Any]
    accuracy: float
    search: str
    seed: int
    way: int
    shot: int
    query: int
    tasks: int
    data: dict[str, str]
    trials: tuple[Trial, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def write(self, path: Path) -> None:
        """As TOML, whole or not at all."""
        found = self.to_json()
        tables = {"options": found.pop("options"), "data": found.pop("data")}
        trials = found.pop("trials")
        lines = [*_pairs(found)]
        for name, table in tables.items():
            lines += ["", f"[{name}]", *_pairs(table)]
        for trial in trials:
            lines += ["", "[[trials]]", *_pairs(trial)]
        write_text(path, "\n".join(lines) + "\n")


def tune(
    method: str,
    data: Dataset,
    way: int = 5,
    shot: int = 5,
    query: int | None = None,
    trials: int = 20,
    seed: int = 0,
    tasks: int = 100,
    report: Callable[[list[Trial], Trial | None], None] = lambda done, best: None,
    **fixed: Any,
) -> Tuned:
    """Search the method's space for the options with the best mean accuracy on validation tasks.

    `fixed` options are not searched, such as `episodes=100`. `report` is told the trials so far and the best of them.
    """
    if trials < 1 or tasks < 1:
        raise FewnodeError(f"at least one trial and one task are needed, not {trials} and {tasks}")
    wanted = {name: values for name, values in space(method).items() if name not in fixed}
    pool = EpisodeSampler(data, "valid", min(way, len(data.split.valid)), shot, seed=POOL_SEED).take(tasks)
    usual = options(method)
    search = _search(wanted, seed)
    done: list[Trial] = []
    best: Trial | None = None
    for number in range(trials):
        chosen = search.ask() if number else {name: usual[name] for name in wanted}
        model = Estimator(method, way, shot, query, seed, **{**fixed, **chosen})
        trial = _try(model, data, chosen, lambda model: score(model, data.graph, pool)["accuracy"].mean())
        if number:
            search.tell(trial.accuracy)
        done.append(trial)
        if trial.accuracy is not None and (best is None or best.accuracy is None or trial.accuracy > best.accuracy):
            best = trial
        report(done, best)
    if best is None or best.accuracy is None:
        raise FewnodeError(f"every trial failed; the first: {done[0].failed}")
    return Tuned(
        method=method,
        options={**fixed, **best.options},
        accuracy=best.accuracy,
        search=search.name,
        seed=seed,
        way=way,
        shot=shot,
        query=query or shot,
        tasks=tasks,
        data={"name": data.name, "sha256": data.sha256},
        trials=tuple(done),
    )


def _try(model: Estimator, data: Dataset, chosen: dict[str, Any], accuracy: Callable[[Estimator], float]) -> Trial:
    start = time.perf_counter()
    try:
        found = float(accuracy(model.fit(data)))
    except Diverged as error:
        return Trial(chosen, None, time.perf_counter() - start, str(error))
    return Trial(chosen, found, time.perf_counter() - start)


def read_options(path: Path) -> tuple[str, dict[str, Any]]:
    """The method and the options of a file that `Tuned.write` wrote."""
    try:
        found = tomllib.loads(read_text(path, MAX_BYTES))
        return str(found["method"]), dict(found["options"])
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise FewnodeError(f"{path}: not what fewnode tune writes ({one_line(error)})") from None


# --- two ways to search -------------------------------------------------------------------------------------------


class Search(Protocol):
    name: str

    def ask(self) -> dict[str, Any]: ...

    def tell(self, accuracy: float | None) -> None:
        """How the last options did; None if they failed."""


def _search(wanted: Space, seed: int) -> Search:
    return Optuna(wanted, seed) if importlib.util.find_spec("optuna") else Random(wanted, seed)


class Random:
    """Every option drawn by itself, as a function of the seed alone."""

    name = "random"

    def __init__(self, wanted: Space, seed: int) -> None:
        self.wanted, self.rng = wanted, np.random.default_rng(seed)

    def ask(self) -> dict[str, Any]:
        return {name: _pick(values, self.rng.random()) for name, values in self.wanted.items()}

    def tell(self, accuracy: float | None) -> None:
        pass


class Optuna:
    """Tree-structured Parzen estimator (Bergstra et al., 2011): tries more where trials went well."""

    name = "optuna"

    def __init__(self, wanted: Space, seed: int) -> None:
        optuna: Any = importlib.import_module("optuna")  # an extra
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.wanted, self.failed = wanted, optuna.trial.TrialState.FAIL
        self.study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))

    def ask(self) -> dict[str, Any]:
        self.trial = self.study.ask()
        return {name: self._suggest(name, values) for name, values in self.wanted.items()}

    def _suggest(self, name: str, values: list[Any] | Range) -> Any:
        if isinstance(values, Range):
            return self.trial.suggest_float(name, values.low, values.high, log=True)
        return values[self.trial.suggest_categorical(name, range(len(values)))]

    def tell(self, accuracy: float | None) -> None:
        if accuracy is None:
            self.study.tell(self.trial, state=self.failed)
        else:
            self.study.tell(self.trial, accuracy)


def _pick(values: list[Any] | Range, share: float) -> Any:
    return values.at(share) if isinstance(values, Range) else values[int(share * len(values))]


# --- TOML ---------------------------------------------------------------------------------------------------------


def _pairs(table: dict[str, Any]) -> list[str]:
    return [f"{name} = {_toml(value)}" for name, value in table.items() if value is not None]


def _toml(value: Any) -> str:
    """Strings, numbers, truth values, lists and tables of them."""
    if isinstance(value, dict):
        return "{ " + ", ".join(_pairs(value)) + " }" if value else "{}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
