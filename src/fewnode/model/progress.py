"""How far a training is: a bar in a notebook, a bar on a terminal, plain lines anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from html import escape
from typing import TYPE_CHECKING, Any

from fewnode.errors import visible

if TYPE_CHECKING:
    from fewnode.train import History, OnStep

Say = Callable[[str], None]


def _say(text: str) -> None:
    print(visible(text), file=sys.stderr)


def training_bar(
    episodes: int, say: Say = _say, title: str = "training", plain: bool = False
) -> AbstractContextManager[OnStep]:
    """What shows each step of a training, as it suits the place; `plain` lines go to `say`."""
    if plain or not (_in_notebook() or sys.stderr.isatty()):
        return _plain_lines(episodes, say, title)
    return _notebook_bar(episodes, title) if _in_notebook() else _terminal_bar(episodes, title)


def _in_notebook() -> bool:
    """Whether a Jupyter kernel runs this."""
    shell = sys.modules.get("IPython")
    return shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell"


@contextmanager
def _notebook_bar(episodes: int, title: str) -> Iterator[OnStep]:
    """One HTML element a part, changed in place. rich would need `ipywidgets` for it."""
    from IPython.display import HTML, display

    shown: dict[str, Any] = {}

    def draw(step: int, loss: float, history: History) -> None:
        end, name = step if history.stopped else episodes, escape(history.part or title)
        bar = HTML(f"{name} <progress value='{step}' max='{end}'></progress> {step}/{end} {_status(loss, history)}")
        if history.part in shown:
            shown[history.part].update(bar)
        else:
            shown[history.part] = display(bar, display_id=True)

    yield draw


@contextmanager
def _terminal_bar(episodes: int, title: str) -> Iterator[OnStep]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        TextColumn("{task.completed}/{task.total}  {task.fields[status]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bars: dict[str, Any] = {}

        def draw(step: int, loss: float, history: History) -> None:
            if history.part not in bars:
                bars[history.part] = progress.add_task(history.part or title, total=episodes, status="")
            end = step if history.stopped else episodes
            progress.update(bars[history.part], completed=step, total=end, status=_status(loss, history))

        yield draw


@contextmanager
def _plain_lines(episodes: int, say: Say, title: str) -> Iterator[OnStep]:
    """Ten lines at most, each after a validation."""
    every = max(1, episodes // 10)

    def draw(step: int, loss: float, history: History) -> None:
        if step == history.done and (step % every == 0 or history.stopped):
            say(f"{history.part or title}  {step}/{episodes}  {_status(loss, history)}")

    yield draw


def _status(loss: float, history: History) -> str:
    last = f"valid {100 * history.points[-1].accuracy:.1f} %" if history.points else "valid –"
    return f"loss {loss:.3f}  {last}"
