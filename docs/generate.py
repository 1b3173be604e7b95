"""What is made when the site is built, into docs/_made: pictures, the map of the source, and what there is to call."""

import ast
import inspect
import json
import os
import sys
from contextlib import chdir
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from textwrap import dedent
from unittest.mock import patch

import typer
from matplotlib import rc_context

import fewnode
import imports
import layout
import pictures
from fewnode._system.files import write_text
from fewnode.cli import app
from fewnode.experiment.figures import STYLE, svg
from fewnode.service.access import Rules
from fewnode.service.http import Service


def everything(made):
    with rc_context(STYLE):
        for name, figure in {**pictures.drawn(), "imports": imports.diagram()}.items():
            write_text(made / f"{name}.html", f'<div class="picture">{svg(figure)}</div>')
    write_text(made / "commands.md", commands())
    write_text(made / "http.md", http())
    write_text(made / "python.md", python())
    write_text(made / "parts.md", parts())
    write_text(made / "way.md", way())
    write_text(made / "beside.md", beside())


def python():
    """Every public name, by the alphabet: functions, classes with what their docstrings explain, errors."""
    lines = ["```{eval-rst}", ".. currentmodule:: fewnode", ""]
    for name in sorted(fewnode.__all__, key=str.lower):
        value = getattr(fewnode, name)
        if not inspect.isclass(value):
            lines += [f".. autofunction:: {name}", ""]
        elif issubclass(value, Exception | Warning):
            lines += [f".. autoexception:: {name}", ""]
        else:
            members = ", ".join(name for name, member in vars(value).items() if _is_explained(name, member))
            lines += [f".. autoclass:: {name}", *([f"   :members: {members}"] if members else []), ""]
    return "\n".join([*lines, "```", ""])


def _is_explained(name, member):
    """Whether it is for users, has a docstring, and is ours: scikit-learn gives its estimators some."""
    inner = (getattr(member, name, None) for name in ("fget", "func", "__func__"))  # properties, class methods
    function = inspect.unwrap(next(filter(None, inner), member))
    ours = getattr(function, "__module__", "").startswith("fewnode")
    return not name.startswith("_") and inspect.isfunction(function) and ours and bool(function.__doc__)


def parts():
    """What each part of the house is for, how long it is, and its files, as tests/budget.toml has them."""
    stated = layout.stated()
    homes = layout.homes(stated, layout.sources())
    rows = ["| part | what | lines | files |", "|---|---|---|---|"]
    for part, facts in stated["parts"].items():
        lines = layout.count_lines(layout.SOURCE / name for name in homes[part])
        places = ", ".join(f"`{name}`" for name in facts["files"] if not name.startswith("__"))
        rows.append(f"| **{part}** | {facts.get('what', '')} | {lines:,} | {places} |")
    return "\n".join([*rows, ""])


FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
OTHERS = {
    "easyfsl 1.5.0": (50, 5502, 94, 11, 61, 4.3),
    "relbench 3.0.2": (19, 4984, 196, 11, 33, 8.1),
    "httpx 0.28.1": (23, 8828, 248, 9, 87, 9.2),
}
"""As `shape` measures them, from their wheels on PyPI."""


def beside():
    """What a reader has before them, here and in packages that read well."""
    names = ("files", "lines", "median file", "median function", "classes", "modules that a file imports")
    rows = [f"| | {' | '.join(names)} |", "|---|" + "---|" * len(names)]
    for name, figures in {"fewnode": shape(layout.SOURCE), **OTHERS}.items():
        rows.append(f"| {name} | {' | '.join(f'{figure:,}' for figure in figures)} |")
    return "\n".join([*rows, ""])


def shape(root):
    """Files that are not empty, their lines, the medians, classes, and how many modules a file imports on average."""
    texts = [text for path in root.rglob("*.py") if (text := path.read_text()).strip()]
    trees = [[*ast.walk(ast.parse(text))] for text in texts]
    functions = [x.end_lineno - x.lineno + 1 for tree in trees for x in tree if isinstance(x, FUNCTION)]
    imported = [
        {x.module for x in tree if isinstance(x, ast.ImportFrom)}
        | {alias.name for x in tree if isinstance(x, ast.Import) for alias in x.names}
        for tree in trees
    ]
    lines = [len(text.splitlines()) for text in texts]
    classes = sum(isinstance(x, ast.ClassDef) for tree in trees for x in tree)
    modules = round(sum(map(len, imported)) / len(texts), 1)
    return len(texts), sum(lines), round(median(lines)), round(median(functions)), classes, modules


STEPS = {
    "data import": "data import --nodes nodes.csv --edges edges.csv --text words --no-label --out d --quiet",
    "predict": "predict --data d --support support.csv --all --out predictions.csv --quiet",
}


def way():
    """Which files run for a table of nodes and for an answer, part by part, in the order in which each runs first."""
    homes = layout.homes(layout.stated(), layout.sources())
    part = {name: part for part, names in homes.items() for name in names}
    ran = {}
    with TemporaryDirectory() as place, chdir(place), patch.dict(os.environ, XDG_CACHE_HOME=place):
        ring = [(f"n{i}", ("mail", "vpn")[i % 2] + f" tool{'abc'[i % 3]}") for i in range(60)]
        Path("nodes.csv").write_text("id,words\n" + "".join(f"{name},{words}\n" for name, words in ring))
        Path("edges.csv").write_text("from,to\n" + "".join(f"n{i},n{(i + 2) % 60}\n" for i in range(60)))
        Path("support.csv").write_text("node,class\nn0,mail\nn2,mail\nn1,vpn\n")
        for step, command in STEPS.items():
            ran[step] = traced(command.split())
    rows = [f"| part | {' | '.join(f'`{step}`' for step in STEPS)} |", "|---|" + "---|" * len(STEPS)]
    for name in homes:
        cells = [", ".join(f"`{file}`" for file in files if part[file] == name) for files in ran.values()]
        if any(cells):
            rows.append(f"| **{name}** | {' | '.join(cells)} |")
    return "\n".join([*rows, ""])


def traced(arguments):
    """Files of the package of which a function is called, in the order of their first calls."""
    files, functions = {}, 1  # a class body is called, too, but is no function (CO_OPTIMIZED)

    def note(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_flags & functions and (path := Path(code.co_filename)).is_relative_to(SOURCE):
            files.setdefault(path.relative_to(SOURCE).as_posix())

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        app(arguments, standalone_mode=False)
    finally:
        sys.setprofile(before)
    return list(files)


SOURCE = Path(fewnode.__file__).parent


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
    lines = [f"## {name}", *map(_paragraph, inspect.cleandoc(command.help.replace("\f\n", "")).split("\n\n"))]
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


def http():
    """Every route in Markdown, from the OpenAPI document that the service gives at /openapi.json."""
    document = Service(Rules("", 0, frozenset())).app.app.openapi()
    bodies = document["components"]["schemas"]
    calls = [(path, verb, call) for path, verbs in document["paths"].items() for verb, call in verbs.items()]
    return "\n\n".join(_route(f"{verb.upper()} {path}", call, bodies) for path, verb, call in calls)


def _route(name, call, bodies):
    lines = [f"## {name}", f"{call['summary']}."]
    for given in call.get("parameters", []):
        schema = given["schema"]
        default = f" *Default: {json.dumps(schema['default'])}.*" if schema.get("default") not in (None, "") else ""
        lines.append(f"`{given['name']}` ({given['in']}): {_kind(schema)}.{default}")
    if "requestBody" in call:
        body = call["requestBody"]["content"]["application/json"]["schema"]
        body = bodies[_kind(body)] if "$ref" in body else body
        lines.append(f"**Body.** {body['description']}")
        lines += [f"`{field}`\n: {_kind(schema)}{_said(schema)}" for field, schema in body["properties"].items()]
        if "example" in body:
            lines.append(f"```json\n{json.dumps(body['example'], ensure_ascii=False)}\n```")
    return "\n\n".join(lines)


def _said(schema):
    default = f" *Default: {json.dumps(schema['default'])}.*" if "default" in schema else ""
    return f". {schema.get('description', '')}{default}".replace(". .", ".")


def _kind(schema):
    """A type in words."""
    if "anyOf" in schema:
        return " or ".join(_kind(one) for one in schema["anyOf"] if one.get("type") != "null")
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]
    kind = schema.get("type", "anything")
    if kind == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"names, each with a {_kind(schema['additionalProperties'])}"
    low, high = schema.get("minimum"), schema.get("maximum")
    return kind if low is None or high is None else f"{kind} from {low:g} to {high:,.0f}"
