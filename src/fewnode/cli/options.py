"""Options of commands that are fields of a model: their names, types, defaults and help are the model's."""

from __future__ import annotations

import functools
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from fewnode.options import Options

MORE = "More"
"""The part of a command's help (`rich_help_panel`) that has the options few people need."""
LAST = ("threads", "quiet", "as_json")
"""Arguments of every command: their options stand behind those of the model."""


def options_of(
    model: type[Options],
    names: Sequence[str] | None = None,
    help: Mapping[str, str] | None = None,  # noqa: A002
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the fields of a model as options; those that were given come as its argument `given`.

    `names`: only these fields. `help`: other words for some of them.
    """
    fields = {name: field for name, field in model.model_fields.items() if names is None or name in names}
    fields = {name: field for name, field in fields.items() if _said(field)["door"] != "python"}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = [each for each in inspect.signature(command, eval_str=True).parameters.values() if each.name != "given"]
        made = [_parameter(name, model.flag(name), field, (help or {}).get(name)) for name, field in fields.items()]

        @functools.wraps(command)
        def run(**arguments: Any) -> None:
            values = {name: arguments.pop(name) for name in fields}
            given = {name: v for name, v in values.items() if not (v is None or v is False or v == [])}  # 0 was said
            command(**arguments, given=given)

        first = [each for each in own if each.name not in LAST]
        last = [each for each in own if each.name in LAST]
        parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (*first, *made, *last)]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        return run

    return decorate


def _said(field: FieldInfo) -> dict[str, Any]:
    return dict(field.json_schema_extra or {})  # type: ignore[arg-type]


def _parameter(name: str, flag: str, field: FieldInfo, words: str | None) -> inspect.Parameter:
    """An option without a value of its own, so that what is said and equals the default counts as said."""
    kind, said = str(field.annotation), _said(field)
    several = "tuple" in kind or "list" in kind
    types = (("int", int), ("float", float), ("Path", Path))
    plain = bool if field.annotation is bool else next((t for text, t in types if text in kind), str)
    default = field.default if not several and plain is not bool else None
    option = typer.Option(
        [] if several else False if plain is bool else None,
        flag,
        metavar=said["metavar"],
        help=f"{words or field.description}{'' if default is None else f' [default: {default}]'}",
        rich_help_panel=MORE if said["rare"] else None,
        show_default=False,
    )
    annotation: Any = list[str] if several else plain
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=option, annotation=annotation)


class Command(TyperCommand):
    """A command whose help is a screen: common options are explained, rare ones named, and `--more` explains them.

    What stands behind a form feed in its docstring is shown by `--more` alone.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if "--more" in args and any(map(self._is_rare, self.params)):
            ctx.meta[MORE], self.help = True, (self.help or "").replace("\f\n", "")
            typer.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)

    @staticmethod
    def _is_rare(option: Any) -> bool:
        return getattr(option, "rich_help_panel", None) == MORE

    def format_options(self, ctx: Any, formatter: Any) -> None:
        records: Any = [(option, option.get_help_record(ctx)) for option in self.get_params(ctx)]
        records = [(option, record) for option, record in records if record]
        parts = {
            "Arguments": [record for option, record in records if option.param_type_name == "argument"],
            "Options": [r for option, r in records if option.param_type_name == "option" and not self._is_rare(option)],
            MORE: [record for option, record in records if self._is_rare(option)],
        }
        for title, part in parts.items():
            if part and (title != MORE or ctx.meta.get(MORE)):
                with formatter.section(title):
                    formatter.write_dl(part)
            elif part:
                names = ", ".join(name.replace(" ", "\N{NO-BREAK SPACE}") for name, _ in part)
                layout = {"initial_indent": "  ", "subsequent_indent": "  ", "break_on_hyphens": False}
                with formatter.section(f"More (explained by `{ctx.command_path} --more`)"):
                    formatter.write(textwrap.fill(names, formatter.width, **layout) + "\n")  # type: ignore[arg-type]
