"""`fewnode bench`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from fewnode.cli.output import Json, Quiet, emit, note, table
from fewnode.errors import FewnodeError


def bench(
    method: str = typer.Option(
        None, "--method", help="gpn-plus or gpn; default: gpn-plus, or gpn where --size or --network is given."
    ),
    nodes: int = typer.Option(100_000, "--nodes", min=600, help="For gpn-plus: nodes of the network, five edges each."),
    attributes: int = typer.Option(64, "--attributes", min=2, help="For gpn-plus: dense ones; from 1000 on, words."),
    size: str = typer.Option(None, "--size", help="For gpn: clothing (default), electronics, dblp or tiny."),
    network: Path = typer.Option(
        None, "--network", help="For gpn: a file of edges, two node numbers a line, instead of made-up ones."
    ),
    rounds: int = typer.Option(3, "--rounds", min=1, help="For gpn: times everything is measured; the best counts."),
    plot: Path = typer.Option(None, "--plot", help="Draw the ratios to this file (SVG)."),
    quiet: bool = Quiet,
    as_json: bool = Json,
) -> None:
    """Measure speed and memory beside other ways to write the same method, on the same network, tasks and machine.

    \b
    gpn-plus  plain: the same method with SciPy and NumPy, whole matrices, one
              view after the other. logistic: what one would do instead, tf-idf,
              truncated SVD, two propagations and logistic regression.
    gpn       naive: the authors' formulation, dense attributes, the whole graph
              in every step. pyg: PyTorch Geometric, sparse attributes, full
              batch; left out without PyG (pip install 'fewnode[pyg]').

    Probabilities (of gpn losses and gradients, too) must agree with ours to 1e-4, or nothing is measured; logistic
    regression is another method. One thread each; look at the ratios.

    \b
    Example:
      fewnode bench
      fewnode bench --nodes 20000 --attributes 8000
      fewnode bench --method gpn --size dblp --plot bench.svg

    Accuracy is another matter: `fewnode evaluate` and `fewnode experiment`.
    """
    import torch

    from fewnode.bench.plus import bench_plus
    from fewnode.bench.run import bench as measure

    chosen = method or ("gpn" if size or network else "gpn-plus")
    if chosen not in ("gpn", "gpn-plus"):
        raise FewnodeError(f"--method {chosen}: expected gpn-plus or gpn")
    if chosen == "gpn-plus" and (size or network):
        raise FewnodeError("--size and --network are for --method gpn; gpn-plus has --nodes and --attributes")
    torch.set_num_threads(1)

    def say(text: str) -> None:
        note(text, quiet)

    own = chosen == "gpn"
    found = measure(size or "clothing", network, rounds, say) if own else bench_plus(nodes, attributes, say)
    if plot is not None:
        from fewnode.bench.plot import draw
        from fewnode.machine.files import write_text

        write_text(plot, draw(found))
    if as_json:
        emit(found)
    else:
        typer.echo(table_of(found))


def table_of(found: dict[str, Any]) -> str:
    rows = []
    others = list(found["ratio"]["peak_mb"])
    for what, title in found["labels"].items():
        values, ratio, goal = found[what], found["ratio"][what], found["goals"][what]
        form = _megabytes if what == "peak_mb" else _seconds
        guess = found.get("estimated", ())
        guessed = [f"~{form(values[k])}" if f"{what}.{k}" in guess else form(values[k]) for k in values]
        times = [f"{ratio[k]:.0f}x" if ratio[k] >= 10 else f"{ratio[k]:.1f}x" for k in others]
        goals = "/".join(f"{goal[k]:.0f}" if k in goal else "-" for k in others)
        rows.append([title, *guessed, *times, goals])
    made = found["provenance"]
    lines = [
        table(["", *others, "fewnode", *(f"/{k}" for k in others), "goals"], rows),
        f"{made['nodes']:,} nodes, {made['edges']:,} edges, {made['attributes']:,} attributes; one thread",
    ]
    return "\n".join([*lines, "~: computed from measured episodes and tasks"] if found.get("estimated") else lines)


def _seconds(value: float) -> str:
    return f"{1000 * value:.1f} ms" if value < 1 else f"{value:.1f} s"


def _megabytes(value: float) -> str:
    return f"{value:,.0f} MB"
