"""How methods are written and drawn: the same in every table and on every page."""

from __future__ import annotations

from pathlib import Path

METHODS = {
    "deepwalk": "DeepWalk",
    "node2vec": "node2vec",
    "gcn": "GCN",
    "sgc": "SGC",
    "pn": "PN",
    "maml": "MAML",
    "meta-gnn": "Meta-GNN",
    "gpn": "GPN",
    "gpn-authors": "GPN (authors' code)",
    "gpn-naive": "GPN-naive",
    "propagation": "Propagation",
    "nearest-mean": "Nearest mean",
    "logistic": "Logistic",
    "gpn-plus": "GPN+",
}
METRICS = {"accuracy": "accuracy", "macro_f1": "macro-F1", "weighted_f1": "weighted F1"}

BLUE, WARM, GREY = "#3b82c9", "#d9673f", "#8a929c"
"""One colour for the paper's method, one for ours, and grey for what they are measured against."""


def written(label: str) -> str:
    """A method as people write it; a file of somebody's own by its name."""
    return METHODS.get(label, Path(label).name if ".py:" in label else label)


def colour(label: str) -> str:
    """What the method is drawn in."""
    return {"gpn": BLUE, "gpn-plus": WARM}.get(label, GREY)
