"""What a caller may say, as one model: the fields are keyword arguments in Python and options of a command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fewnode.errors import FewnodeError, closest


def option(
    description: str,
    default: Any = None,
    flag: str | None = None,
    metavar: str | None = None,
    door: str = "both",
    rare: bool = False,
) -> Any:
    """A field and its help. `flag` and `metavar`: what the command line calls it, and its value.

    `door` python: only code can give it. `rare`: `--help` names it, and `--more` explains it.
    """
    said: Any = {"flag": flag, "metavar": metavar, "door": door, "rare": rare}
    return Field(default, description=description, json_schema_extra=said)


class Options(BaseModel):
    """Fields made by `option`; what is not among them is refused.

    >>> class Shape(Options):
    ...     shot: int = option("K.", 5)
    >>> Shape.of({"shot": 3}).shot
    3
    """

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True, hide_input_in_errors=True)

    @classmethod
    def of(cls, given: Mapping[str, Any], door: Callable[[str], str] = str) -> Self:
        """The model of what was given, or a sentence about the first thing that is wrong; `door` words a field."""
        if unknown := [name for name in given if name not in cls.model_fields]:
            raise FewnodeError(f"there is no option {unknown[0]!r}{closest(unknown[0], cls.model_fields)}")
        try:
            return cls(**given)
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
        what = fault["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
        told = what if fault["type"] == "value_error" else f"found {fault['input']!r:.60}, expected {what}"
        field = str(fault["loc"][0]) if fault["loc"] else ""
        raise FewnodeError(" ".join((f"{door(field)}: {told}" if field else told).split()))

    @classmethod
    def flag(cls, field: str) -> str:
        """What the command line calls a field."""
        extra: Any = cls.model_fields[field].json_schema_extra
        return extra["flag"] or f"--{field.replace('_', '-')}"
