"""What a caller may say, as one model: the fields are keyword arguments in Python and options of a command."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fewnode.errors import FewnodeError, closest


def option(
    description: str,
    default: Any = None,
    flag: str | None = None,
    metavar: str | None = None,
    door: Literal["both", "python", "argument"] = "both",
    rare: bool = False,
    ge: float | None = None,
    le: float | None = None,
    words: Sequence[str] = (),
    env: str | None = None,
) -> Any:
    """A field and its help. `flag` (or `-f --flag`) and `metavar`: what the command line calls it, and its value.

    `door` python: only code can give it; argument: a command has it without a flag. `rare`: `--help` names it, and
    `--more` explains it. `ge`, `le`: the least value and the largest. `words`: what Tab completes. `env`: a variable
    of the environment that has it, too. A default of `...`: it must be given.
    """
    said: Any = {"flag": flag, "metavar": metavar, "door": door, "rare": rare, "words": list(words), "env": env}
    return Field(default, description=description, json_schema_extra=said, ge=ge, le=le)


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
        what = what.replace("greater than or equal to", "at least")
        told = what if fault["type"] == "value_error" else f"found {fault['input']!r:.60}, expected {what}"
        field = str(fault["loc"][0]) if fault["loc"] else ""
        raise FewnodeError(" ".join((f"{door(field)}: {told}" if field else told).split()))

    @classmethod
    def flag(cls, field: str) -> str:
        """What the command line calls a field."""
        extra: Any = cls.model_fields[field].json_schema_extra
        return str(extra["flag"] or f"--{field.replace('_', '-')}").split()[-1]

    def given(self, *fields: str) -> list[str]:
        """The fields that were given, as the command line calls them."""
        return [self.flag(field) for field in fields if field in self.model_fields_set]


class Asked(Options):
    """What an evaluation asks of a method: the keyword arguments of `fewnode.evaluate`, options of its command."""

    way: int | None = option("N; default: as trained, or all test classes if there are fewer.", ge=1)
    shot: int | None = option("K; default: as trained; of all classes 5.", ge=0)
    query: int | None = option("M a class; default: as many as --shot; of all classes every other node.", ge=1)
    tasks: int | None = option("Tasks; default 50 as in the paper, 500 for less chance.", ge=1)
    seed: int = option("Of the tasks; independent of the training's seed.", 0, flag="--pool-seed", rare=True, ge=0)
    classes: Literal["test", "all"] = option("Test classes, or all of them.", "test", door="python")
    transductive: bool = option("The queries of a task help each other.", False)
    open_set: bool = option("Also tell nodes that are in none of the classes.", False)
    queries: Literal["balanced", "long-tail"] = option("Spread over the classes: balanced, or long-tail.", "balanced")
    several: bool = option(
        "Nodes may be in several classes: F1, average precision, precision@k.", False, "--multi-label"
    )
    precision_at: int = option("k of precision@k, with several classes a node.", 10, rare=True, ge=1)
    per_class: bool = option("Also precision and recall of each class, and which was taken for which.", False)
    described: Mapping[str, str] | None = option("Sentences about classes, beside their names.", door="python")
    options: Mapping[str, Any] = option("Of a method that is given by name.", {}, door="python")

    def refuse_unused(self, has_pool: bool = False) -> None:
        """Refuse what was given and means nothing beside what else was given."""
        never = {
            "for several classes a node, each judged on its own": self.several
            and ("transductive", "open_set", "described", "per_class", "queries"),
            "where all classes are asked about": self.classes == "all" and ("way", "open_set", "described", "queries"),
            "with tasks of one class a node": not self.several and ("precision_at",),
            "with a fitted method": self.classes == "test" and ("options",),
            "with a pool, which has its own tasks": has_pool and ("seed", "queries", "described", "several"),
        }
        for why, fields in never.items():
            named = [f"`{name}`" for name in fields or () if name in self.model_fields_set and getattr(self, name)]
            if named:
                raise FewnodeError(f"some of what was asked is not used {why}", remedy=f"leave out {', '.join(named)}")
