"""How far a training is: a bar in a notebook, a bar on a terminal, plain lines anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from html import escape
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from fewnode.train import History

    Report: TypeAlias = Callable[[str, int, float, History], None]
"""Told the part of the training, the episode, its loss, and what is behind."""


def training_progress(episodes: int, say: Callable[[str], None]) -> AbstractContextManager[Report]:
    """What shows each step of a training, as it suits the place; plain lines go to `say`."""
    if in_notebook():
        return notebook_bar(episodes)
    return terminal_bar(episodes) if sys.stderr.isatty() else plain_lines(episodes, say)


def in_notebook() -> bool:
    """Whether a Jupyter kernel runs this."""
    shell = sys.modules.get("IPython")
    return shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell"


@contextmanager
def notebook_bar(episodes: int) -> Iterator[Report]:
    """One HTML element a part, changed in place. rich would need `ipywidgets` for it."""
    from IPython.display import HTML, display

    shown: dict[str, Any] = {}

    def draw(part: str, episode: int, loss: float, history: History) -> None:
        end = episode if history.stopped else episodes
        name = escape(part or "training")
        bar = HTML(
            f"{name} <progress value='{episode}' max='{end}'></progress> {episode}/{end} {status(loss, history)}"
        )
        if part in shown:
            shown[part].update(bar)
        else:
            shown[part] = display(bar, display_id=True)

    yield draw


@contextmanager
def terminal_bar(episodes: int) -> Iterator[Report]:
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

        def draw(part: str, episode: int, loss: float, history: History) -> None:
            if part not in bars:
                bars[part] = progress.add_task(part or "training", total=episodes, status="")
            progress.update(bars[part], completed=episode, status=status(loss, history))
            if history.stopped:
                progress.update(bars[part], total=episode)

        yield draw


@contextmanager
def plain_lines(episodes: int, say: Callable[[str], None]) -> Iterator[Report]:
    """Ten lines at most, each after a validation."""
    every = max(1, episodes // 10)
    said: set[tuple[str, int]] = set()

    def draw(part: str, episode: int, loss: float, history: History) -> None:
        if episode == history.done and (episode % every == 0 or history.stopped) and (part, episode) not in said:
            said.add((part, episode))
            say(f"{part or 'training'}  {episode}/{episodes}  {status(loss, history)}")

    yield draw


def status(loss: float, history: History) -> str:
    last = f"valid {100 * history.points[-1].accuracy:.1f} %" if history.points else "valid –"
    return f"loss {loss:.3f}  {last}"
