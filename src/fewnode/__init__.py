"""Few-shot node classification: learn from a network's well-labelled classes, recognise new ones from a few nodes."""

from __future__ import annotations

from fewnode.errors import FewnodeError, UnusedInput

TYPE_CHECKING = False  # `typing` takes half of the time until an interrupt is quiet (`__main__`)
if TYPE_CHECKING:
    from typing import Any

    from fewnode.dataset import ClassSplit, Dataset
    from fewnode.episodes import Episode, EpisodeSampler, Task
    from fewnode.evaluation import Result, evaluate
    from fewnode.formats.sources import load
    from fewnode.graph import Block, Graph, Relation
    from fewnode.method import Method
    from fewnode.model.estimator import Estimator
    from fewnode.model.model_files import load_model
    from fewnode.model.recognise import recognise
    from fewnode.recognition.answers import Answers
    from fewnode.recognition.classes import Class
    from fewnode.recognition.description import describe
    from fewnode.recognition.question import Question
    from fewnode.scikit import FewNodeClassifier, NodeEmbedding
    from fewnode.service.client import Client
    from fewnode.tables.edges import EdgeTable
    from fewnode.tables.extend import extend
    from fewnode.tables.read import read_tables
    from fewnode.tables.spec import ImportSpec

__version__ = "0.1.0"

_HOMES = {
    "fewnode.scikit": ["FewNodeClassifier", "NodeEmbedding"],
    "fewnode.service.client": ["Client"],
    "fewnode.formats.sources": ["load"],
    "fewnode.tables.edges": ["EdgeTable"],
    "fewnode.tables.extend": ["extend"],
    "fewnode.tables.read": ["read_tables"],
    "fewnode.tables.spec": ["ImportSpec"],
    "fewnode.recognition.classes": ["Class"],
    "fewnode.recognition.description": ["describe"],
    "fewnode.episodes": ["Episode", "EpisodeSampler", "Task"],
    "fewnode.model.estimator": ["Estimator"],
    "fewnode.model.model_files": ["load_model"],
    "fewnode.evaluation": ["Result", "evaluate"],
    "fewnode.method": ["Method"],
    "fewnode.dataset": ["ClassSplit", "Dataset"],
    "fewnode.recognition.answers": ["Answers"],
    "fewnode.model.recognise": ["recognise"],
    "fewnode.recognition.question": ["Question"],
    "fewnode.graph": ["Block", "Graph", "Relation"],
}

__all__ = [
    "Answers",
    "Block",
    "Class",
    "ClassSplit",
    "Client",
    "Dataset",
    "EdgeTable",
    "Episode",
    "EpisodeSampler",
    "Estimator",
    "FewNodeClassifier",
    "FewnodeError",
    "Graph",
    "ImportSpec",
    "Method",
    "NodeEmbedding",
    "Question",
    "Relation",
    "Result",
    "Task",
    "UnusedInput",
    "describe",
    "evaluate",
    "extend",
    "load",
    "load_model",
    "read_tables",
    "recognise",
]


def __getattr__(name: str) -> Any:
    """Import on first use (PEP 562): torch takes a second, and `fewnode --help` does not need it."""
    import importlib

    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(home), name)
    raise AttributeError(f"module 'fewnode' has no attribute {name!r}")
