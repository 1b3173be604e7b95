"""How far a training is: a bar on a terminal, plain lines anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fewnode.errors import visible

if TYPE_CHECKING:
    from fewnode.train import History, OnStep


def _say(text: str) -> None:
    print(visible(text), file=sys.stderr)


@contextmanager
def training_bar(
    episodes: int, say: Callable[[str], None] = _say, title: str = "training", plain: bool = False
) -> Iterator[OnStep]:
    """What shows each step of a training, as it suits the place; `plain` lines go to `say`, ten of them at most."""
    if plain or not sys.stderr.isatty():
        every = max(1, episodes // 10)

        def tell(step: int, loss: float, history: History) -> None:
            if step == history.done and (step % every == 0 or history.stopped):  # after a validation
                say(f"{history.part or title}  {step}/{episodes}  {_status(loss, history)}")

        yield tell
        return
    from rich.console import Console
    from rich.progress import Progress, TextColumn

    columns = (*Progress.get_default_columns(), TextColumn("{task.completed}/{task.total}  {task.fields[status]}"))
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bars: dict[str, Any] = {}

        def draw(step: int, loss: float, history: History) -> None:
            if history.part not in bars:
                bars[history.part] = progress.add_task(history.part or title, total=episodes, status="")
            end = step if history.stopped else episodes
            progress.update(bars[history.part], completed=step, total=end, status=_status(loss, history))

        yield draw


def _status(loss: float, history: History) -> str:
    last = f"valid {100 * history.points[-1].accuracy:.1f} %" if history.points else "valid –"
    return f"loss {loss:.3f}  {last}"
