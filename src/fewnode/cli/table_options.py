"""Options of commands that are fields of a model: their names, types, defaults and help are the model's."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

from fewnode.errors import FewnodeError

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo


def _unless_standard(out: Path | None) -> Path | None:
    """`-` is standard output, as elsewhere, and not a file of that name."""
    return None if out == Path("-") else out


OutTable = typer.Option(
    None, "--out", help="Where the table goes; default: -, standard output.", callback=_unless_standard
)
Out = typer.Option(..., "--out", help="Directory for the dataset; it must not hold one yet.")
Edges = typer.Option(
    [],
    "--edges",
    metavar="[NAME:]FILE[:SOURCE,TARGET]",
    help="Table of edges. NAME: their kind. SOURCE,TARGET: its own columns of node ids. Repeatable.",
)


def options_of(
    model: type[BaseModel],
    names: Sequence[str] | None = None,
    help: Mapping[str, str] | None = None,  # noqa: A002
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the fields of a model as options; those that were given come as its argument `given`."""
    fields = {name: field for name, field in model.model_fields.items() if names is None or name in names}
    fields = {name: field for name, field in fields.items() if _said(field)["door"] != "python"}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = [each for each in inspect.signature(command, eval_str=True).parameters.values() if each.name != "given"]
        made = [_parameter(name, field, (help or {}).get(name)) for name, field in fields.items()]

        @functools.wraps(command)
        def run(**arguments: Any) -> None:
            given = {name: arguments.pop(name) for name in fields}
            command(
                **arguments, given={name: v for name, v in given.items() if v not in (None, [], fields[name].default)}
            )

        parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (*own, *made)]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        return run

    return decorate


def _said(field: FieldInfo) -> dict[str, Any]:
    return dict(field.json_schema_extra or {})  # type: ignore[arg-type]


def _parameter(name: str, field: FieldInfo, words: str | None) -> inspect.Parameter:
    kind, said = str(field.annotation), _said(field)
    several = "tuple" in kind
    plain = field.annotation if field.annotation in (bool, int, float) else Path if "Path" in kind else str
    option = typer.Option(
        [] if several else field.default,
        said["flag"] or f"--{name.replace('_', '-')}",
        metavar=said["metavar"],
        help=words or field.description,
    )
    annotation: Any = list[str] if several else plain
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=option, annotation=annotation)


class ImportCommand(TyperCommand):
    """A command whose `--directed` may have a value or not.

    A word behind it is the name of a relation, unless it is the file to import.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        tables = any(arg.split("=")[0] in ("--nodes", "--edges") for arg in args)
        given: list[str] = []
        for arg, after in zip(args, [*args[1:], "-"], strict=True):
            bare = arg == "--directed" and (after.startswith("-") or (not tables and Path(after).exists()))
            given.append("--directed=" if bare else arg)
        return super().parse_args(ctx, given)


def named_files(option: str, files: Sequence[str]) -> list[Any]:
    """The files, those of a named kind under its name. A name ends at a colon behind which there is a file.

    Behind a file of edges and a colon two columns may stand, the ends of its edges.
    """
    found: list[Any] = []
    for given in files:
        table = _table(given)
        name, colon, rest = given.partition(":")
        if table is None and colon and name.strip() and (named := _table(rest)) is not None:
            table = {name.strip(): named}
        elif table is None and colon:
            raise FewnodeError(f"{option} {given}: no such file, expected FILE or NAME:FILE, and {rest!r} is no file")
        found.append(Path(given) if table is None else table)
    return found


def _table(given: str) -> Any:
    """A file, or a file and the two columns behind it; None if there is no such file."""
    from fewnode.tables.edges import EdgeTable

    if Path(given).exists():
        return Path(given)
    file, colon, columns = given.rpartition(":")
    if not colon or not Path(file).is_file() or columns.count(",") != 1:
        return None
    source, target = columns.split(",")
    return EdgeTable(Path(file), source.strip(), target.strip())
