"""Hyper-parameters by validation classes: each trial trains on the training classes; no test class is ever looked at.

The search is a tree-structured Parzen estimator (Bergstra et al., 2011) by optuna, the extra `tune`. The first trial is
the method with its defaults, so what is found is never worse than they are.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from fewnode.dataset import Dataset
from fewnode.episodes import EpisodeSampler
from fewnode.errors import FewnodeError, closest
from fewnode.evaluation import score
from fewnode.methods.table import DEFAULTS, METHODS
from fewnode.model.estimator import Estimator
from fewnode.train import Diverged

POOL_SEED = 1
"""Trials are compared on validation tasks that early stopping, which draws with seed 0, has not seen."""


def tune(
    method: str,
    data: Dataset,
    shape: tuple[int, int, int | None] = (5, 5, None),
    trials: int = 20,
    seed: int = 0,
    tasks: int = 100,
    say: Callable[[str], None] = lambda text: None,
    **fixed: Any,
) -> dict[str, Any]:
    """Search the method's space for the options with the best mean accuracy on validation tasks of N-way K-shot.

    `shape` is N, K and M. `fixed` options are not searched, such as `episodes=100`. `say` is told of each trial.
    """
    try:
        optuna: Any = importlib.import_module("optuna")
    except ModuleNotFoundError:
        raise FewnodeError("a search needs optuna: pip install 'fewnode[tune]'") from None
    if trials < 1 or tasks < 1:
        raise FewnodeError(f"at least one trial and one task are needed, not {trials} and {tasks}")
    if method not in DEFAULTS:
        raise FewnodeError(f"unknown method {method!r}{closest(method, DEFAULTS)}; known are {', '.join(DEFAULTS)}")
    way, shot, query = shape
    searched = {name: values for name, values in DEFAULTS[method]["space"].items() if name not in fixed}
    pool = EpisodeSampler(data, "valid", min(way, len(data.split.valid)), shot, seed=POOL_SEED).take(tasks)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    done: list[dict[str, Any]] = []
    for number in range(trials):
        trial = study.ask() if number else None
        chosen = {name: _chosen(trial, name, v) if trial else METHODS[method][name] for name, v in searched.items()}
        done.append({"options": chosen, "accuracy": None, "failed": None})
        try:
            model = Estimator(method, way, shot, query, seed, **{**fixed, **chosen}).fit(data)
            done[-1]["accuracy"] = float(score(model, data.graph, pool)["accuracy"].mean())
        except Diverged as error:
            done[-1]["failed"] = str(error)
        if trial:
            study.tell(trial, done[-1]["accuracy"], optuna.trial.TrialState.FAIL if done[-1]["failed"] else None)
        say(f"trial {number + 1}/{trials}  {shown(done[-1])}")
    best = max(done, key=lambda trial: -1.0 if trial["failed"] else trial["accuracy"])
    if best["failed"]:
        raise FewnodeError(f"every trial failed; the first: {best['failed']}")
    about = {"method": method, "seed": seed, "way": way, "shot": shot, "query": query or shot, "tasks": tasks}
    about |= {"data": {"name": data.name, "sha256": data.sha256}, "trials": done}
    return {**about, "options": {**fixed, **best["options"]}, "accuracy": best["accuracy"]}


def shown(trial: dict[str, Any]) -> str:
    """A trial in words."""
    return "diverged" if trial["accuracy"] is None else f"validation accuracy {100 * trial['accuracy']:.1f} %"


def _chosen(trial: Any, name: str, values: list[Any] | dict[str, float]) -> Any:
    """One of a list, or a number of a range, even on the logarithmic scale."""
    if isinstance(values, dict):
        return trial.suggest_float(name, **values, log=True)
    return values[trial.suggest_categorical(name, range(len(values)))]
