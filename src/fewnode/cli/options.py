"""Commands whose options are fields of models: their names, types, defaults and help are the model's."""

from __future__ import annotations

import functools
import inspect
import keyword
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

from fewnode.errors import FewnodeError, worded

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from fewnode.options import Options

MORE = "More"
"""The part of a command's help (`rich_help_panel`) that has the options few people need."""


def options(*models: type[Options]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the fields of these models as options. It is called with a value of each model."""
    parameters = [
        {name: _parameter(model.flag(name), field) for name, field in model.model_fields.items() if _is_option(field)}
        for model in models
    ]
    every = [parameter for own in parameters for parameter in own.values()]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def run(**values: Any) -> None:
            given = {key: v for key, v in values.items() if v is not None and v is not False and v != []}  # 0 was said
            own = [{name: given[p.name] for name, p in of.items() if p.name in given} for of in parameters]
            try:
                command(*(model.of(said, door=model.flag) for model, said in zip(models, own, strict=True)))
            except FewnodeError as error:
                raise error.worded(functools.partial(_flag, models)) from error

        run.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in every}
        return run

    return decorate


def with_flags(text: str, *models: type[Options]) -> str:
    """A text of the library with arguments as the command line calls them."""
    return worded(text, functools.partial(_flag, models))


def _flag(models: Sequence[type[Options]], name: str) -> str:
    known = (model for model in models if name in model.model_fields and _is_option(model.model_fields[name]))
    return next((model.flag(name) for model in known), f"`{name}`")


def _said(field: FieldInfo) -> dict[str, Any]:
    return dict(field.json_schema_extra or {})  # type: ignore[arg-type]


def _is_option(field: FieldInfo) -> bool:
    return bool(_said(field)["door"] != "python")


def _parameter(flag: str, field: FieldInfo) -> inspect.Parameter:
    """An option without a value of its own, so that what is said and equals the default counts as said."""
    kind, said = str(field.annotation), _said(field)
    several = "tuple" in kind or "list" in kind
    types = (("int", int), ("float", float), ("Path", Path))
    plain = bool if field.annotation is bool else next((t for text, t in types if text in kind), str)
    default = field.get_default() if not several and plain is not bool and not field.is_required() else None
    words = said["words"]
    how: dict[str, Any] = {
        "metavar": said["metavar"],
        "help": f"{field.description}{'' if default is None else f' [default: {default}]'}",
        "envvar": said["env"],
        "autocompletion": (lambda incomplete: [w for w in words if w.startswith(incomplete)]) if words else None,
        "rich_help_panel": MORE if said["rare"] else None,
        "show_default": False,
    }
    nothing: Any = ... if field.is_required() else [] if several else False if plain is bool else None
    made = typer.Argument if said["door"] == "argument" else typer.Option
    flags = () if said["door"] == "argument" else (said["flag"] or flag).split()
    name = flag.rpartition("--")[2].replace("-", "_")
    return inspect.Parameter(
        f"{name}_" if keyword.iskeyword(name) else name,
        inspect.Parameter.KEYWORD_ONLY,
        default=made(nothing, *flags, **how),
        annotation=list[plain] if several else plain,  # type: ignore[valid-type]
    )


class Command(TyperCommand):
    """A command whose help is a screen: common options are explained, rare ones named, and `--more` explains them.

    What stands behind a form feed in its docstring is shown by `--more` alone.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if "--more" in args and any(map(_is_rare, self.params)):
            ctx.meta[MORE], self.help = True, (self.help or "").replace("\f\n", "")
            typer.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        parts: dict[str, list[Any]] = {"Arguments": [], "Options": [], MORE: []}
        for option in self.get_params(ctx):
            if record := option.get_help_record(ctx):
                kind = "Arguments" if option.param_type_name == "argument" else "Options"
                parts[MORE if _is_rare(option) else kind].append(record)
        for title, records in parts.items():
            if records and (title != MORE or ctx.meta.get(MORE)):
                with formatter.section(title):
                    formatter.write_dl(records)
            elif records:
                names = ", ".join(name.replace(" ", "\N{NO-BREAK SPACE}") for name, _ in records)
                layout = {"initial_indent": "  ", "subsequent_indent": "  ", "break_on_hyphens": False}
                with formatter.section(f"More (explained by `{ctx.command_path} --more`)"):
                    formatter.write(textwrap.fill(names, formatter.width, **layout) + "\n")  # type: ignore[arg-type]


def _is_rare(option: Any) -> bool:
    return getattr(option, "rich_help_panel", None) == MORE
