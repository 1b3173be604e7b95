"""Methods by name: the rows of the paper's table and ours, and whatever else has two functions."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Mapping
from importlib import import_module, resources
from pathlib import Path
from typing import Any

from fewnode.errors import FewnodeError, closest
from fewnode.methods.plugins import is_plugin, load_plugin

NEEDS_TORCH = "needs torch: pip install 'fewnode[torch]'"
DEFAULTS: dict[str, dict[str, Any]] = tomllib.loads(
    resources.files("fewnode.methods").joinpath("defaults.toml").read_text(encoding="utf-8")
)
"""How each method is written, its options, and the space that they are tuned in."""
METHODS = {name: {k: v for k, v in own.items() if k not in ("space", "written")} for name, own in DEFAULTS.items()}
"""The rows of the paper's table, and ours, with the options that tell those of one class apart (`defaults.toml`)."""
HOMES = {
    **dict.fromkeys(("maml", "meta-gnn", "gcn", "sgc"), "adapt.Adapt"),
    **dict.fromkeys(("deepwalk", "node2vec"), "walks.Walks"),
    **dict.fromkeys(("propagation", "nearest-mean"), "propagation.Propagation"),
    "logistic": "linear.Logistic",
    "gpn-plus": "plus.GPNPlus",
}
"""Where their classes are, if not where GPN is. Each is imported when it is asked for: some need torch."""


def written(label: str) -> str:
    """A method as people write it; a file of somebody's own by its name."""
    known = DEFAULTS.get(label, {}).get("written", label)
    return Path(label).name if is_plugin(label) else str(known)


def has_option(method: str | type, option: str) -> bool:
    """Whether a method takes that option."""
    return option in inspect.signature(class_of(method)[0]).parameters


def class_of(method: str | type) -> tuple[type, dict[str, Any]]:
    """The class of a method and the options that make it that method."""
    if isinstance(method, str) and method in METHODS:
        home, _, name = HOMES.get(method, "gpn.GPN").partition(".")
        try:
            return getattr(import_module(f"fewnode.methods.{home}"), name), METHODS[method]
        except ModuleNotFoundError as error:
            raise FewnodeError(f"{method} {NEEDS_TORCH}") from error
    if isinstance(method, str) and is_plugin(method):
        method = load_plugin(method)[0]
    if isinstance(method, str):
        raise FewnodeError(f"unknown method {method!r}{closest(method, METHODS)}; known are {', '.join(METHODS)}")
    if not isinstance(method, type):
        raise FewnodeError(f"method is a {type(method).__name__}, expected a name, a class or FILE.py:CLASS")
    has = {name for name in ("fit", "predict_proba", "embed") if callable(getattr(method, name, None))}
    if "fit" not in has or len(has) < 2:
        missing = "fit" if "fit" not in has else "predict_proba"
        raise FewnodeError(f"class {method.__name__!r} has no {missing}(); it needs fit, and predict_proba or embed")
    return method, {}


def build_method(name: str | type, seed: int, given: Mapping[str, Any]) -> Any:
    """The method with the options given; one that it does not have is refused by name."""
    if name == "gpn" and given.get("formulation") == "authors":
        name = "gpn-authors"  # with all that belongs to it
    method, preset = class_of(name)
    known, shown = list(inspect.signature(method).parameters), getattr(name, "__name__", name)
    for option in given:
        if option not in known or option == "seed":
            raise FewnodeError(
                f"method {shown} has no option {option!r}{closest(option, known)}; it has {', '.join(known) or 'none'}"
            )
    return method(**{**preset, **given, **({"seed": seed} if "seed" in known else {})})
