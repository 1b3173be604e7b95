"""Methods by name: the rows of the paper's table and ours, and whatever else has two functions."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from fewnode.errors import FewnodeError, closest
from fewnode.methods.adapt import Adapt
from fewnode.methods.defaults import options
from fewnode.methods.gpn import GPN
from fewnode.methods.linear import Logistic
from fewnode.methods.plugins import is_plugin, load_plugin
from fewnode.methods.plus import GPNPlus
from fewnode.methods.propagation import Propagation
from fewnode.methods.walks import Walks

METHODS: dict[str, tuple[type, dict[str, Any]]] = {
    name: (method, options(name))
    for method, names in (
        (GPN, ("gpn", "gpn-authors", "gpn-naive", "pn")),
        (Adapt, ("maml", "meta-gnn", "gcn", "sgc")),
        (Walks, ("deepwalk", "node2vec")),
        (Propagation, ("propagation", "nearest-mean")),
        (Logistic, ("logistic",)),
        (GPNPlus, ("gpn-plus",)),
    )
    for name in names
}
"""Nine rows of the paper's table, and GPN by its authors' code, are three classes; the options that tell them apart are
in `methods/defaults.toml`."""


def has_option(method: str | type, option: str) -> bool:
    """Whether a method takes that option."""
    return option in inspect.signature(class_of(method)[0]).parameters


def class_of(method: str | type) -> tuple[type, dict[str, Any]]:
    """The class of a method and the options that make it that method."""
    if isinstance(method, str) and method in METHODS:
        return METHODS[method]
    if isinstance(method, str) and is_plugin(method):
        method = load_plugin(method)[0]
    if isinstance(method, str):
        raise FewnodeError(f"unknown method {method!r}{closest(method, METHODS)}; known are {', '.join(METHODS)}")
    if not isinstance(method, type):
        raise FewnodeError(f"method is a {type(method).__name__}, expected a name, a class or FILE.py:CLASS")
    if missing := [name for name in ("fit", "predict_proba") if not callable(getattr(method, name, None))]:
        raise FewnodeError(f"class {method.__name__!r} has no {missing[0]}(); a method needs fit and predict_proba")
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
