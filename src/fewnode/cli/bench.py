"""`fewnode bench`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from fewnode.cli.output import Json, Quiet, emit, note, table


def bench(
    size: str = typer.Option("clothing", "--size", help="clothing, electronics, dblp or tiny: counts of the network."),
    network: Path = typer.Option(
        None, "--network", help="A file of edges, two node numbers a line, instead of made-up ones."
    ),
    rounds: int = typer.Option(3, "--rounds", min=1, help="Times that everything is measured; the best counts."),
    plot: Path = typer.Option(None, "--plot", help="Draw the ratios to this file (SVG)."),
    quiet: bool = Quiet,
    as_json: bool = Json,
) -> None:
    """Measure speed and memory beside two other ways to write GPN, on the same network, tasks and machine.

    naive is the authors' formulation: dense attributes, the whole graph in every step. pyg is what one writes with
    PyTorch Geometric: sparse attributes, full batch; it is left out if PyG is not there (pip install 'fewnode[pyg]').
    Their losses, gradients and probabilities must agree with ours to 1e-4, or nothing is measured. One thread each;
    look at the ratios.

    \b
    Example:
      fewnode bench
      fewnode bench --size dblp --plot bench.svg

    Accuracy is another matter: `fewnode evaluate` and `fewnode experiment`.
    """
    import torch

    from fewnode.bench.run import bench as measure

    torch.set_num_threads(1)
    found = measure(size, network, rounds, lambda text: note(text, quiet))
    if plot is not None:
        from fewnode.bench.plot import draw
        from fewnode.files import write_text

        write_text(plot, draw(found))
    if as_json:
        emit(found)
    else:
        typer.echo(table_of(found))


def table_of(found: dict[str, Any]) -> str:
    from fewnode.bench.run import LABELS

    rows = []
    others = list(found["ratio"]["protocol"])
    for what, title in LABELS.items():
        values, ratio, goal = found[what], found["ratio"][what], found["goals"][what]
        form = _megabytes if what == "peak_mb" else _seconds
        guessed = [f"~{form(values[k])}" if f"{what}.{k}" in found["estimated"] else form(values[k]) for k in values]
        times = [f"{ratio[k]:.0f}x" if ratio[k] >= 10 else f"{ratio[k]:.1f}x" for k in others]
        goals = "/".join(f"{goal[k]:.0f}" if k in goal else "-" for k in others)
        rows.append([title, *guessed, *times, goals])
    made = found["provenance"]
    return "\n".join(
        [
            table(["", *others, "fewnode", *(f"/{k}" for k in others), "goals"], rows),
            f"{made['nodes']:,} nodes, {made['edges']:,} edges, {made['attributes']:,} attributes; one thread",
            "~: computed from measured episodes and tasks",
        ]
    )


def _seconds(value: float) -> str:
    return f"{1000 * value:.1f} ms" if value < 1 else f"{value:.1f} s"


def _megabytes(value: float) -> str:
    return f"{value:,.0f} MB"
