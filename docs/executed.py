"""The directive `run`: what a page shows was run when the page was built, and what it printed is what you read.

Commands start with `$`; with the argument `python` the block is a program. All blocks of a page share one directory,
made for it, and its Python blocks share their names. A command that fails stops the build, unless the block says
`:fails:`. `:rows: 8` shows the first lines of each answer. Our own commands run in this process, which spares the
seconds of importing, or in a fork of it if the block says `:apart:`: a limit of memory would stay.
"""

import atexit
import io
import os
import runpy
import shlex
import signal
import subprocess
import sys
import traceback
from contextlib import chdir, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar
from unittest.mock import patch

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).parents[1]
PLACES, NAMES = {}, {}


def python(arguments):
    with patch.object(sys, "argv", arguments):
        runpy.run_path(arguments[0], run_name="__main__")


def fewnode(arguments):
    """The command line in this process: the same entry point, without the seconds that importing takes."""
    from fewnode.cli import main

    with patch.object(sys, "argv", ["fewnode", *arguments]):
        try:
            main()
        except SystemExit as end:
            return int(end.code or 0)
    return 0


def apart(call, arguments):
    """In a fork, which leaves nothing here."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            sys.stdout = sys.stderr = os.fdopen(write, "w", buffering=1)
            code = call(arguments) or 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    os.close(write)
    with os.fdopen(read) as told:
        print(told.read(), end="")
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def shell(command):
    """Whatever bash makes of it. What it leaves in the background ends with the build, at the latest."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    started = subprocess.Popen(
        ["bash", "-c", command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PATH": path},
        start_new_session=True,
    )
    if " & " in command:
        atexit.register(end, started.pid)
    print(started.communicate()[0], end="")
    return started.returncode


def end(group):
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGTERM)


def where(page):
    """The directory of a page, with what a clone of the repository has in it for readers."""
    if page not in PLACES:
        PLACES[page] = TemporaryDirectory(prefix="fewnode-docs-")
        for name in ("examples", "paper", "research"):
            (Path(PLACES[page].name) / name).symlink_to(ROOT / name)
    return PLACES[page].name


def answer(place, call, *arguments):
    """Exit code and whatever was printed, on both streams, as a terminal shows it."""
    out = io.StringIO()
    with chdir(place), redirect_stdout(out), redirect_stderr(out):
        code = call(*arguments)
    return code or 0, out.getvalue().rstrip("\n")


class Run(SphinxDirective):
    has_content, optional_arguments = True, 1
    option_spec: ClassVar = {"rows": int, "fails": directives.flag, "apart": directives.flag}

    def run(self):
        page = self.env.docname
        place = where(page)
        code = "\n".join(self.content)
        if self.arguments == ["python"]:
            _, text = answer(place, exec, compile(code, page, "exec"), NAMES.setdefault(page, {}))
            shown = [(code, "python"), *([(text, "text")] if text else [])]
        else:
            lines = [self.one(place, command) for command in code.replace("\\\n", "\\\0").splitlines() if command]
            shown = [("\n".join(lines), "console")]
        return [nodes.literal_block(t, t, language=kind) for t, kind in shown]

    def one(self, place, command):
        command = command.replace("\0", "\n")
        program, *arguments = shlex.split(command.removeprefix("$ "))
        call = {"fewnode": fewnode, "python": python}.get(program)
        if call is None or set(arguments) & {"|", ">", "&"}:
            code, text = answer(place, shell, command.removeprefix("$ "))
        elif "apart" in self.options:
            code, text = answer(place, apart, call, arguments)
        else:
            code, text = answer(place, call, arguments)
        if (code != 0) != ("fails" in self.options):
            raise self.error(f"{command}: exit code {code}\n{text}")
        rows = text.splitlines()
        if len(rows) > self.options.get("rows", len(rows)):
            rows = [*rows[: self.options["rows"]], "…"]
        return "\n".join([command, *rows])


def setup(app):
    app.add_directive("run", Run)
    return {"version": "1", "parallel_read_safe": True}
