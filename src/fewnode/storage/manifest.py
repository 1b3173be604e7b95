"""What the manifests of models and datasets may hold: the type and the range of each field.

A stranger can compute checksums too. So each field is checked, before anything is made of it, by the tables below.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from fewnode.errors import FewnodeError

MAX_COUNT = 1 << 24
"""Attributes, ways, shots, classes."""
MAX_CONSTANT = 1e12
"""Of a calibration: a larger one was fitted to rounding errors."""
"""On a log-probability."""

Check: TypeAlias = Callable[[Any, str], None]
"""Refuses a value that is not as it should be, and says at which place of the file it is."""


# --- what a value can be ------------------------------------------------------------------------------------------


def _rule(words: str, holds: Callable[[Any], bool]) -> Check:
    def check(value: Any, place: str) -> None:
        if not holds(value):
            shown = repr(value) if not isinstance(value, list | dict) else f"a {type(value).__name__}"
            raise FewnodeError(f"{place} is {shown[:80]}, expected {words}")

    return check


def whole(low: int = 0, high: int = MAX_COUNT) -> Check:
    return _rule(f"a whole number from {low} to {high}", lambda value: type(value) is int and low <= value <= high)


def number(low: float, high: float) -> Check:
    """NaN is in no range."""
    return _rule(
        f"a number from {low:g} to {high:g}", lambda value: type(value) in (int, float) and low <= value <= high
    )


def matching(words: str, pattern: str) -> Check:
    return _rule(words, lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None)


def one_of(*known: str) -> Check:
    return _rule(f"one of {', '.join(known)}", lambda value: isinstance(value, str) and value in known)


def either(*checks: Check) -> Check:
    """As the first one says, unless another one agrees."""

    def check(value: Any, place: str) -> None:
        for other in checks[1:]:
            try:
                return other(value, place)
            except FewnodeError:
                pass
        return checks[0](value, place)

    return check


def listed(each: Check, most: int = MAX_COUNT) -> Check:
    is_list = _rule(f"a list of up to {most}", lambda value: isinstance(value, list) and len(value) <= most)

    def check(value: Any, place: str) -> None:
        is_list(value, place)
        for i, part in enumerate(value):
            each(part, f"{place}[{i}]")

    return check


def table(each: Check) -> Check:
    """Values of one kind, by names of any kind."""

    def check(value: Any, place: str) -> None:
        IS_TABLE(value, place)
        for name, part in value.items():
            each(part, f"{place}.{name[:40]}")

    return check


def record(fields: Mapping[str, Check], more: bool = False) -> Check:
    """These fields, and others only if `more`. One whose name ends in `?` may be missing."""
    checks = {name.removesuffix("?"): check for name, check in fields.items()}
    needed = [name for name in fields if not name.endswith("?")]

    def check(value: Any, place: str) -> None:
        IS_TABLE(value, place)
        if missing := [name for name in needed if name not in value]:
            raise FewnodeError(f"{place} has no {missing[0]!r}")
        for name, part in value.items():
            if name in checks:
                checks[name](part, f"{place} {name}" if place.endswith(":") else f"{place}.{name}")
            elif not more:
                raise FewnodeError(f"{place} has a field {name[:40]!r} that is not known")

    return check


IS_TABLE = _rule("a table", lambda value: isinstance(value, dict))
NOTHING = _rule("null", lambda value: value is None)
FLAG = _rule("true or false", lambda value: isinstance(value, bool))
TEXT = matching("text", r"[^\0]*")
DIGEST = matching("a SHA-256", r"[0-9a-f]{64}")
CONSTANT = number(-MAX_CONSTANT, MAX_CONSTANT)
CONSTANTS = table(CONSTANT)
NAMES = listed(TEXT)


def maybe(check: Check) -> Check:
    return either(check, NOTHING)


# --- a model ------------------------------------------------------------------------------------------------------

_LARGE = whole(high=1 << 53)
_POINT = record({"episode": _LARGE, "loss": number(-1e300, 1e300), "accuracy": number(0, 1)})
_TRAINED = {
    "n_features": whole(),
    "width": whole(),
    "feature_names": maybe(NAMES),
    "data": record({"name": TEXT, "sha256": DIGEST, "nodes": _LARGE, "edges": _LARGE, "path?": TEXT}),
    "classes": record({"train": NAMES, "valid": NAMES, "test": NAMES}),
    "history": maybe(record({"points": listed(_POINT), "stopped": FLAG, "engine": TEXT, "part": TEXT})),
    "temperature": maybe(record({"inductive": CONSTANTS, "transductive": CONSTANTS})),
    "membership": maybe(CONSTANTS),
    "worth": number(0, 1),
    "validated": table(number(0, 1)),
    "seconds": number(0, 1e12),
    "threads": whole(1),
    "versions": table(TEXT),
}
_MODEL = {
    "format": TEXT,
    "sha256": table(DIGEST),
    "method": matching("the name of a method", r"[^\0]{1,4096}"),
    "options": IS_TABLE,
    "way": whole(),
    "shot": whole(),
    "query": whole(),
    "seed": whole(high=(1 << 63) - 1),
    "features": maybe(one_of("degree", "svd", "walks")),
    "trained": record(_TRAINED),
}


def check_model(meta: Mapping[str, Any]) -> None:
    """Refuse a model's manifest whose checksum is right, because a stranger made it, and whose content is not."""
    record(_MODEL)(meta, "model.json:")
    trained = meta["trained"]
    width, names = trained["n_features"], trained["feature_names"]
    if names is not None and len(names) != width:
        raise FewnodeError(f"{len(names)} names of attributes, expected {width}")
    if meta["features"] is None and trained["width"] != width:
        raise FewnodeError(f"the method reads {trained['width']} attributes, expected {width}")


# --- the options of a method --------------------------------------------------------------------------------------

_KINDS = {
    "bool": FLAG,
    "int": whole(-(1 << 31), 1 << 31),
    "float": CONSTANT,
    "str": matching("a word", r"[^\0-\x1f]{0,200}"),
    "None": NOTHING,
    "Sequence[int]": listed(whole(1, 1 << 20), 64),
}
_RANGES = {
    "rank": whole(1, 1 << 16),
    "views": one_of("all", "attributes", "structure"),
    "workers": maybe(whole(1, 1024)),
    "c": number(1e-9, 1e9),
    "device": matching("cpu or cuda", r"cpu|cuda(:\d+)?|mps"),
}
"""Of options whose range no method checks itself."""


def check_options(method: type, options: Mapping[str, Any]) -> None:
    """Refuse options of a file that are not of the types that a method of ours declares."""
    for name, parameter in inspect.signature(method).parameters.items():
        kinds = [_KINDS[kind] for kind in str(parameter.annotation).split(" | ") if kind in _KINDS]
        if name in options and kinds:
            _RANGES.get(name, either(*kinds))(options[name], f"options.{name}")


# --- a dataset ----------------------------------------------------------------------------------------------------

_IDS = listed(whole(high=1 << 20))
_ENCODING = {"id?": maybe(TEXT), "label?": maybe(TEXT), "directed?": FLAG}
"""The rest is checked by `Encoding`, when new rows are to be encoded."""
_BLOCK = {"kind": one_of("words", "numbers", "vector"), "start": whole(), "stop": whole(), "name": TEXT}
_DATASET = {
    "format": TEXT,
    "sha256": table(DIGEST),
    "name": TEXT,
    "x_shape": listed(whole(high=1 << 40), 2),
    "blocks?": listed(record(_BLOCK), 10_000),
    "class_names": NAMES,
    "split": record({"train": _IDS, "valid": _IDS, "test": _IDS}),
    "info": record({"extended?": listed(IS_TABLE)}, more=True),
    "encoding": maybe(record(_ENCODING, more=True)),
    "relations?": listed(record({"name": TEXT, "directed": FLAG, "alone": FLAG}), 1000),
    "kind_names?": listed(TEXT, 1000),
}


def check_dataset(meta: Mapping[str, Any]) -> None:
    """The same for a dataset."""
    record(_DATASET)(meta, "dataset.json:")
