"""What is made when the site is built, into docs/_made: pictures, the import diagram, and the list of commands."""

import inspect
from textwrap import dedent

import typer
from matplotlib import rc_context

import imports
import pictures
from fewnode.cli import app
from fewnode.io import write_text
from fewnode.report.figures import svg
from fewnode.report.page import STYLE


def everything(made):
    with rc_context(STYLE):
        for name, figure in {**pictures.drawn(), "imports": imports.diagram()}.items():
            write_text(made / f"{name}.html", f'<div class="picture">{svg(figure)}</div>')
    write_text(made / "commands.md", commands())


def commands():
    """Every command in Markdown, from the command line itself."""
    found = leaves(typer.main.get_command(app))
    listed = [f"[`{' '.join(path)}`](#{'-'.join(path)})" for path, _ in found]
    return "\n\n".join([" · ".join(listed), *(_command(" ".join(path), command) for path, command in found)])


def leaves(command, path=("fewnode",)):
    """The commands without subcommands, each with the words that call it."""
    children = getattr(command, "commands", None)
    if not children:
        return [(path, command)]
    return [leaf for name, child in children.items() for leaf in leaves(child, (*path, name))]


def _command(name, command):
    params = [param for param in command.params if param.name != "help"]
    takes = [param.metavar for param in params if param.param_type_name == "argument"]
    lines = [f"## {name}", *map(_paragraph, inspect.cleandoc(command.help).split("\n\n"))]
    lines += ["**Usage:** `" + " ".join([name, "[OPTIONS]", *takes]) + "`"]
    return "\n\n".join([*lines, *map(_param, params)])


def _paragraph(text):
    """Prose, or what is laid out by hand: examples and lists."""
    if not text.startswith("\b"):
        return text
    head, *rows = text.removeprefix("\b\n").splitlines()
    if head.startswith("Example"):
        return "\n".join(["```console", *(_prompted(row) for row in dedent("\n".join(rows)).splitlines()), "```"])
    if rows and head.endswith(":") and all(row.startswith("  ") for row in rows):
        return "\n".join([head, "", "```text", dedent("\n".join(rows)), "```"])
    return "\n".join(["```text", head, *rows, "```"])


def _prompted(row):
    return row if row.startswith((" ", "#")) else f"$ {row}"


def _param(param):
    if param.param_type_name == "argument":
        return f"`{param.metavar}`\n: {param.help}"
    word = "" if param.is_flag else f" {param.metavar or param.name.upper()}"
    default = param.default
    said = "" if param.is_flag or default in (None, [], ()) else f" *Default: {getattr(default, 'value', default)}.*"
    return f"`{', '.join(param.opts)}{word}`\n: {param.help}{' *Required.*' if param.required else said}"
