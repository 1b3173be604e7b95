"""Each method's hyper-parameters and the space they are tuned in, from `defaults.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from fewnode.errors import FewnodeError, closest


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, even on the logarithmic scale."""

    low: float
    high: float


def options(method: str) -> dict[str, Any]:
    """The options that a method has unless a user says otherwise."""
    return {name: value for name, value in _defaults()[method].items() if name != "space"}


def space(method: str) -> dict[str, list[Any] | Range]:
    """What may be tried for each option: one of a list, or a number of a range."""
    if method not in _defaults():
        known = ", ".join(_defaults())
        raise FewnodeError(
            f"unknown what to try for method {method!r}{closest(method, _defaults())}; known are {known}"
        )
    found = _defaults()[method]["space"]
    return {name: Range(**values) if isinstance(values, dict) else values for name, values in found.items()}


@cache
def _defaults() -> dict[str, dict[str, Any]]:
    return tomllib.loads(resources.files("fewnode.methods").joinpath("defaults.toml").read_text(encoding="utf-8"))
