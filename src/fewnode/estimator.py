"""The user's door: any method by name, fitted on a `Dataset`, with labels of any kind, saved and loaded."""

from __future__ import annotations

import inspect
import platform
import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TypeAlias, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

import fewnode
from fewnode.calibration import (
    TASKS,
    Temperature,
    accuracy_by_shots,
    calibration_tasks,
    fit_known,
    fit_temperature,
)
from fewnode.card import model_card
from fewnode.episodes import Episode, EpisodeSampler
from fewnode.errors import FewnodeError, closest
from fewnode.evaluation import Predictor, Probabilities, predict_tasks
from fewnode.graph import Dataset, Graph, Ints
from fewnode.io import one_line, read_record, write_record
from fewnode.methods import gpn
from fewnode.methods.adapt import Adapt
from fewnode.methods.defaults import options
from fewnode.methods.features import structural_features
from fewnode.methods.gpn import Explanation, Known
from fewnode.methods.plus import GPNPlus
from fewnode.methods.propagation import Propagation
from fewnode.methods.walks import Walks
from fewnode.plugins import is_plugin, is_trusted, load_class, resolved, sign
from fewnode.train import ALONE, QUIET, Journal, Team

Nodes: TypeAlias = Sequence[int] | Ints
Labels: TypeAlias = Sequence[Hashable] | Ints

MODES = ("inductive", "transductive")
TENSOR_TYPES = ("float32", "float64", "int64", "uint8", "bool")

C = TypeVar("C")

METHODS: dict[str, tuple[type, dict[str, Any]]] = {
    name: (method, options(name))
    for method, names in (
        (gpn.GPN, ("gpn", "gpn-naive", "pn")),
        (Adapt, ("maml", "meta-gnn", "gcn", "sgc")),
        (Walks, ("deepwalk", "node2vec")),
        (Propagation, ("propagation",)),
        (GPNPlus, ("gpn-plus",)),
    )
    for name in names
}
"""Nine rows of the paper's table are three classes; `methods/defaults.toml` has the options that tell them apart."""


class Estimator:
    """A few-shot method for N-way K-shot tasks on attributed networks: any of `METHODS`, or `FILE.py:CLASS`.

    `features` makes attributes from the structure (`degree`, `svd` or `walks`); `options` are the method's own.

    >>> y = np.repeat(range(20), 20)  # twenty classes of twenty nodes, which know each other and look alike
    >>> data = Dataset.from_scipy(y[:, None] == y, np.eye(20)[y], y)
    >>> model = Estimator("gpn-plus", way=3, shot=2).fit(data)
    >>> model.predict(data.graph, support=[0, 25], support_y=["mail", "vpn"], query=[3, 30])
    ['mail', 'vpn']
    >>> model.familiar(data.graph, [0, 25], ["mail", "vpn"], [3, 70]).round().tolist()  # 70 is in neither
    [1.0, 0.0]
    """

    def __init__(
        self,
        method: str = "gpn",
        way: int = 5,
        shot: int = 5,
        query: int | None = None,
        seed: int = 0,
        features: str | None = None,
        **options: Any,
    ) -> None:
        self.method, self.features = resolved(method), features
        self.way, self.shot, self.query, self.seed = way, shot, query or shot, seed
        self.options = options
        self.method_: Any = _build(method, seed, options)
        self.trained_: dict[str, Any] = {}
        self.needs_fit = True
        self._featured: tuple[Graph, Graph] | None = None

    def fit(self, data: Dataset, journal: Journal = QUIET, team: Team = ALONE) -> Estimator:
        """Meta-train on `data.split.train`, stop on `data.split.valid`; test classes are not looked at.

        Deviation D14: with fewer than N validation classes, validation tasks have as many ways as there are.
        """
        train = EpisodeSampler(data, "train", self.way, self.shot, self.query, self.seed)
        if len(data.split.valid) < 2:
            raise FewnodeError(f"{len(data.split.valid)} validation classes; two are needed to choose by: split again")
        valid = EpisodeSampler(data, "valid", min(self.way, len(data.split.valid)), self.shot, self.shot)
        start = time.perf_counter()
        graph = self._read(data.graph)
        known = inspect.signature(self.method_.fit).parameters
        more: dict[str, Any] = {}
        if "journal" in known:
            settings = {**self.all_settings(), "data": data.sha256, "threads": torch.get_num_threads()}
            settings |= {"workers": team.size} if team.size > 1 else {}
            more["journal"] = journal.agreeing(settings)
        if "team" in known:
            more["team"] = team
        elif team.size > 1:
            raise FewnodeError(f"{self.method} cannot be trained by several workers; gpn, gpn-naive and pn can")
        self.method_.fit(graph, train, valid, **more)
        if not team.leads:
            return self
        history = getattr(self.method_, "history_", None)
        self.trained_ = {
            "n_features": data.graph.n_features,
            "width": graph.n_features,
            "feature_names": list(data.feature_names) if data.feature_names else None,
            "data": {
                "name": data.name,
                "sha256": data.sha256,
                "nodes": data.graph.n,
                "edges": data.graph.n_edges,
            },
            "classes": {
                part: [data.class_names[c] for c in data.split.part(part)] for part in ("train", "valid", "test")
            },
            "history": asdict(history) if history else None,
            **self._calibrate(graph, train, valid),
            "seconds": time.perf_counter() - start,
            "threads": torch.get_num_threads(),
            "versions": {
                "fewnode": fewnode.__version__,
                "torch": torch.__version__,
                "python": platform.python_version(),
            },
        }
        self.needs_fit = False
        return self

    def _calibrate(self, graph: Graph, train: EpisodeSampler, valid: EpisodeSampler) -> dict[str, Any]:
        """What validation classes say about being sure, and about nodes of none of the classes.

        Both depend on how hard the classes are, and the more of them are asked the better: also training classes, if
        the method is no surer of them than of others.
        """
        method = self.method_
        if not isinstance(method, gpn.Prototypical):
            history = getattr(method, "history_", None)
            validated = {str(self.shot): history.best.accuracy} if history else {}
            return {"temperature": None, "known": None, "validated": validated}
        unseen = calibration_tasks(valid.members, self.way)
        members = valid.members if method.learns_classes else [*train.members, *valid.members]
        method.known = fit_known(method, graph, members, self.way)
        ways = [way for way in sorted({2, self.way, 2 * self.way}) if way <= len(members)]
        tasks = [task for way in ways for task in calibration_tasks(members, way, count=TASKS // len(ways))]
        answers = {mode: method.predict_tasks(graph, tasks, mode == MODES[1]) for mode in MODES}
        # only where z of all nodes is at hand: else every query would be embedded twice
        near = [method.closest(graph, task.support, task.query) for task in tasks] if method.kept else None
        return {
            "temperature": {mode: asdict(fit_temperature(given, tasks, near)) for mode, given in answers.items()},
            "known": asdict(method.known) if method.known else None,
            "validated": accuracy_by_shots(method.predict_tasks(graph, unseen), unseen),
        }

    def predict_proba(
        self, graph: Graph, support: Nodes, support_y: Labels, query: Nodes, transductive: bool = False
    ) -> Probabilities:
        """A probability for each query node (row) and class (column); columns are in the order of `classes`.

        Inductive unless `transductive`: then the query nodes help each other.
        """
        return Recogniser(self, graph, support, support_y).predict_proba(query, transductive)

    def predict_tasks(self, graph: Graph, tasks: Sequence[Episode], transductive: bool = False) -> list[Probabilities]:
        """The probabilities of many tasks at once."""
        method = self._method(graph)
        if transductive and not isinstance(method, gpn.Prototypical):
            raise FewnodeError(f"{self.method} answers each query on its own: it has no transductive mode")
        answers = predict_tasks(method, self._read(graph), tasks, transductive)
        if not self.trained_["temperature"]:
            return answers
        return [
            self._tempered(graph, answer, task.support, task.support_y, task.query, transductive)
            for answer, task in zip(answers, tasks, strict=True)
        ]

    def _tempered(
        self, graph: Graph, answer: Probabilities, support: Ints, support_y: Ints, query: Ints, transductive: bool
    ) -> Probabilities:
        """An answer, as sure as answers of its kind have been right."""
        temperature = Temperature(**self.trained_["temperature"][MODES[transductive]])
        if not temperature.by_nearness:
            return temperature(answer, support_y)
        return temperature(answer, support_y, self.method_.closest(self._read(graph), support, query))

    def familiar(self, graph: Graph, support: Nodes, support_y: Labels, query: Nodes) -> Probabilities:
        """P(a query node is in one of the given classes), calibrated on validation classes; under 0.5 means none."""
        return Recogniser(self, graph, support, support_y).familiar(query)

    def predict(
        self, graph: Graph, support: Nodes, support_y: Labels, query: Nodes, transductive: bool = False
    ) -> list[Hashable]:
        """The most likely class of each query node."""
        names = classes(support_y)
        probability = self.predict_proba(graph, support, support_y, query, transductive)
        return [names[c] for c in probability.argmax(axis=1)]

    def embedding(self, graph: Graph) -> Tensor:
        """z of every node (a row each), for maps and for choosing nodes by."""
        return self.embedded(graph)[0]

    def embedded(self, graph: Graph) -> tuple[Tensor, Tensor]:
        """z and the importance of every node."""
        return self._prototypical(graph).embedding(self._read(graph))

    def has_embedding(self, graph: Graph) -> bool:
        """Whether `embedded` need not compute anything."""
        return self._prototypical(graph).remembers(self._read(graph))

    def remember(self, graph: Graph, z: Tensor, importance: Tensor) -> None:
        """Take these for what `embedded` gives: it gave them before, in another process."""
        self._prototypical(graph).remember(self._read(graph), z, importance)

    def _prototypical(self, graph: Graph) -> gpn.Prototypical:
        method = self._method(graph)
        if not isinstance(method, gpn.Prototypical):
            raise FewnodeError(f"{self.method} has no embedding of nodes")
        return method

    def explain(self, graph: Graph, support: Nodes, support_y: Labels, query: Nodes) -> Explanation:
        """β of each support node, and the support nodes (their places in `support`) nearest to each query node."""
        return Recogniser(self, graph, support, support_y).explain(query)

    def check_features(self, data: Dataset) -> None:
        """Refuse a dataset whose attributes are not those the model was trained on."""
        ours, theirs = self.trained_["feature_names"], data.feature_names
        if data.graph.n_features != self.trained_["n_features"]:
            raise FewnodeError(
                f"{data.name} has {data.graph.n_features} attributes, the model reads {self.trained_['n_features']}"
            )
        if ours and theirs and list(theirs) != ours:
            first = next(i for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b)
            raise FewnodeError(
                f"attribute {first} of {data.name} is {theirs[first]!r}, the model reads {ours[first]!r}"
            )

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments that make an estimator like this one."""
        return {**self.all_settings(), "options": self.options}

    def fresh(self, seed: int) -> Estimator:
        """An unfitted estimator with the same options and another seed."""
        return Estimator(self.method, self.way, self.shot, self.query, seed, self.features, **self.options)

    def _read(self, graph: Graph) -> Graph:
        """The graph as the method is given it: with attributes made from its structure, if `features` says so."""
        if self.features is None:
            return graph
        if self._featured is None or self._featured[0] is not graph:
            self._featured = (graph, structural_features(graph, self.features, self.seed))
        return self._featured[1]

    def _method(self, graph: Graph) -> Predictor:
        if self.needs_fit:
            raise FewnodeError("the model is not fitted yet; call fit(data) first")
        if graph.n_features != self.trained_["n_features"]:
            raise FewnodeError(
                f"the network has {graph.n_features} attributes, the model reads {self.trained_['n_features']}"
            )
        return self.method_  # type: ignore[no-any-return]

    def all_settings(self) -> dict[str, Any]:
        """What defines the model, defaults included."""
        options = {**_class_of(self.method)[1], **self.options}  # all of them: defaults may change, a model may not
        if isinstance(options.get("encoder"), nn.Module):
            options["encoder"] = f"a {type(options['encoder']).__name__}"
        shape = {"way": self.way, "shot": self.shot, "query": self.query, "seed": self.seed, "features": self.features}
        return {"method": self.method, "options": options, **shape}

    def save(self, directory: str | Path) -> None:
        """Write `model.safetensors`, `model.json` and a model card, `README.md`. A model is never overwritten."""
        directory = Path(directory)
        if (directory / "model.json").exists():
            raise FewnodeError(f"{directory}: there is a model already; choose another directory")
        if self.needs_fit:
            raise FewnodeError("the model is not fitted yet; call fit(data) first")
        state = self.method_.state() if hasattr(self.method_, "state") else {}
        meta = {**self.all_settings(), "trained": self.trained_}
        if is_plugin(self.method):
            meta["signature"] = sign(self.method)
        arrays = {name: tensor.detach().cpu().numpy() for name, tensor in state.items()}
        write_record(directory, "model", meta, arrays, {"README.md": model_card(meta)})

    def save_pretrained(self, directory: str | Path, **more: Any) -> str | None:
        """`save`, and on to a model hub with `push_to_hub=True, repo_id="me/name"` (extra `hub`)."""
        config = {"library_name": "fewnode", "method": self.method}  # hubs count downloads of a config.json
        url: str | None = _hub()(self).save_pretrained(directory, config=config, **more)
        return url

    @classmethod
    def from_pretrained(cls, name: str | Path, **more: Any) -> Self:
        """A model by its name on a model hub, or from a directory that `save` wrote (extra `hub`).

        `more` are the hub's own options: `revision`, `cache_dir`, `local_files_only`, `token`.
        """
        try:
            model = _hub().from_pretrained(str(name), load=load_model, **more).model
        except (OSError, ValueError) as error:
            raise FewnodeError(f"{name}: no directory, and not to be had from the hub ({one_line(error)})") from error
        if not isinstance(model, cls):
            raise FewnodeError(f"{name}: a {model.method} model; fewnode.Estimator.from_pretrained reads it")
        return model


class Recogniser:
    """A model and a support set, made ready once: then any nodes can be asked about, over and over."""

    def __init__(self, model: Estimator, graph: Graph, support: Nodes, support_y: Labels) -> None:
        self.model, self.graph = model, graph
        self.classes = classes(support_y)
        self._method = model._method(graph)
        self._read = model._read(graph)
        self._support, self._support_y = _support(graph, support, support_y)

    @cached_property
    def _ready(self) -> gpn.Ready | None:
        if not isinstance(self._method, gpn.Prototypical):
            return None
        return self._method.ready(self._read, self._support, self._support_y)

    def predict_proba(self, query: Nodes, transductive: bool = False) -> Probabilities:
        """As that of `Estimator`."""
        asked = _rows(self.graph, query)
        if transductive or not isinstance(self._method, gpn.Prototypical) or self._ready is None:
            task = Episode(self._support, self._support_y, asked, np.zeros_like(asked))
            return self.model.predict_tasks(self.graph, [task], transductive)[0]
        answer = self._method.answer(self._read, self._ready, asked)
        return self.model._tempered(self.graph, answer, self._support, self._support_y, asked, transductive)

    def familiar(self, query: Nodes) -> Probabilities:
        if not isinstance(self._method, gpn.Prototypical) or self._ready is None:
            raise FewnodeError(f"{self.model.method} has no prototypes: it cannot tell a node of no given class")
        return self._method.familiar_to(self._read, self._ready, _rows(self.graph, query))

    def explain(self, query: Nodes) -> Explanation:
        if not isinstance(self._method, gpn.Prototypical) or self._ready is None:
            raise FewnodeError(f"{self.model.method} has no prototypes to explain its answers by")
        return self._method.explain(self._read, self._ready, _rows(self.graph, query))


class GPN(Estimator):
    """Graph Prototypical Networks, the paper's method: `Estimator("gpn")`.

    >>> y = np.repeat(range(12), 20)
    >>> data = Dataset.from_scipy(y[:, None] == y, np.eye(12)[y], y)
    >>> model = GPN(way=3, shot=2, episodes=20).fit(data)
    >>> model.explain(data.graph, [0, 1, 25], ["mail", "mail", "vpn"], [3]).beta.round(2).tolist()
    [0.5, 0.5, 1.0]
    """

    def __init__(
        self,
        way: int = 5,
        shot: int = 5,
        query: int | None = None,
        seed: int = 0,
        features: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__("gpn", way, shot, query, seed, features, **options)


def load_model(directory: str | Path, encoder: nn.Module | None = None, method: str | None = None) -> Estimator:
    """A model that `save` wrote.

    One that was trained with an `encoder` of your own needs it again. One that was trained elsewhere with a `method`
    of somebody's own needs that named, as file.py:Class. A method that keeps no state comes back with `needs_fit`.

    >>> y = np.repeat(range(12), 20)
    >>> data = Dataset.from_scipy(y[:, None] == y, np.eye(12)[y], y)
    >>> Estimator("propagation", way=3, shot=2, steps=1).fit(data).save("run")
    >>> load_model("run").predict(data.graph, [0, 25], ["mail", "vpn"], [3, 30])
    ['mail', 'vpn']
    """
    directory = Path(directory)
    if not directory.is_dir():
        raise FewnodeError(f"{directory}: no such run; fewnode train --data D --out {directory} makes one")
    if not (directory / "model.json").exists():
        if (directory / "dataset.json").exists():
            raise FewnodeError(
                f"{directory}: a dataset, not a model; fewnode train --data {directory} --out RUN makes one"
            )
        raise FewnodeError(f"{directory}: no model in it; an unfinished training continues with --resume")
    meta, state = read_record(directory, "model")
    try:
        _check_manifest(meta)
        options = dict(meta["options"])
        if encoder is not None:
            options["encoder"] = encoder
        elif str(options.get("encoder")).startswith("a "):
            raise FewnodeError(f"was trained with {options['encoder']} as encoder; pass load_model(…, encoder=…)")
        if method is None and is_plugin(meta["method"]) and not is_trusted(meta["method"], meta.get("signature")):
            raise FewnodeError(f"was trained with {meta['method']}, which is code; name the file to run as --method")
        name = method or meta["method"]
        shape = (meta["way"], meta["shot"], meta["query"], meta["seed"], meta["features"])
        model = GPN(*shape, **options) if name == "gpn" else Estimator(name, *shape, **options)
        for tensor, array in state.items():
            if array.dtype.name not in TENSOR_TYPES:
                raise FewnodeError(f"tensor {tensor!r} is {array.dtype}, expected {', '.join(TENSOR_TYPES)}")
            if not np.isfinite(array).all():
                raise FewnodeError(f"tensor {tensor!r} is not finite")
        tensors = {name: torch.from_numpy(array.copy()) for name, array in state.items()}
        model.trained_ = dict(meta["trained"])
        if hasattr(model.method_, "restore"):
            model.method_.restore(model.trained_["width"], tensors)
            model.needs_fit = False
        if model.trained_["known"]:
            model.method_.known = _constants(Known, model.trained_["known"])
        for mode in MODES if model.trained_["temperature"] else ():
            _constants(Temperature, model.trained_["temperature"][mode])
    except FewnodeError as error:
        raise FewnodeError(f"{directory}: {error}") from None
    except (LookupError, ValueError, TypeError, RuntimeError, AttributeError, OverflowError) as error:
        raise FewnodeError(f"{directory}: not a complete model ({one_line(error)})") from None
    return model


MAX_COUNT = 1 << 24
"""Attributes, ways, shots: what a manifest may claim before anything is made of it."""


def _check_manifest(meta: Mapping[str, Any]) -> None:
    """Refuse a manifest whose checksum is right, because a stranger made it, and whose content is not."""
    trained = meta["trained"]
    counts = {name: meta[name] for name in ("way", "shot", "query")}
    counts |= {name: trained[name] for name in ("n_features", "width")}
    for name, count in counts.items():
        if type(count) is not int or not 0 <= count <= MAX_COUNT:
            raise FewnodeError(f"{name} is {count!r}, expected a whole number up to {MAX_COUNT}")
    if type(meta["seed"]) is not int or not 0 <= meta["seed"] < 1 << 63:
        raise FewnodeError(f"seed is {meta['seed']!r}, expected a whole number from 0")
    kinds = {"method": str, "options": dict, "trained": dict}
    kinds_below = {"data": dict, "classes": dict, "feature_names": list | None, "temperature": dict | None}
    for found, expected in ((meta, kinds), (trained, {**kinds_below, "known": dict | None})):
        for name, kind in expected.items():
            if not isinstance(found[name], kind):
                raise FewnodeError(f"{name} is a {type(found[name]).__name__}, expected {kind}")
    names = trained["feature_names"]
    if names is not None and (len(names) != trained["n_features"] or not all(isinstance(name, str) for name in names)):
        raise FewnodeError(f"{len(names)} names of attributes, expected {trained['n_features']}")


def _constants(kind: type[C], found: Mapping[str, Any]) -> C:
    """A record of finite numbers."""
    if not all(isinstance(value, int | float) and np.isfinite(value) for value in found.values()):
        raise FewnodeError(f"{kind.__name__} is {found}, expected numbers")
    return kind(**found)


def _hub() -> Any:
    try:
        from fewnode.hub import Hub
    except ModuleNotFoundError as error:
        raise FewnodeError(f"model hubs need the package {error.name}: pip install 'fewnode[hub]'") from None
    return Hub


def classes(support_y: Labels) -> list[Hashable]:
    """The distinct labels in the order of the columns of `predict_proba`: sorted, by their text if need be."""
    distinct = list(dict.fromkeys(support_y))
    try:
        return sorted(distinct)
    except TypeError:
        return sorted(distinct, key=str)


def _support(graph: Graph, support: Nodes, support_y: Labels) -> tuple[Ints, Ints]:
    """Support and its labels as 0 … N-1, checked: each node in range and in one class."""
    if len(support) != len(support_y) or len(support) == 0:
        raise FewnodeError(f"{len(support)} support nodes and {len(support_y)} labels; expected one label a node")
    index = {name: i for i, name in enumerate(classes(support_y))}
    given: dict[int, Hashable] = {}
    for node, name in zip(support, support_y, strict=True):
        if given.setdefault(int(node), name) != name:
            raise FewnodeError(f"support node {node} is in two classes, {given[int(node)]!r} and {name!r}")
    return _rows(graph, support), np.array([index[name] for name in support_y], np.int64)


def _rows(graph: Graph, nodes: Nodes) -> Ints:
    array = np.asarray(nodes, dtype=np.int64).reshape(-1)
    if array.size and (array.min() < 0 or array.max() >= graph.n):
        bad = array[(array < 0) | (array >= graph.n)][0]
        raise FewnodeError(f"node {bad} is out of range, expected 0 to {graph.n - 1}")
    return array


def has_option(name: str, option: str) -> bool:
    """Whether a method takes that option."""
    return option in inspect.signature(_class_of(name)[0]).parameters


def _class_of(name: str) -> tuple[type, dict[str, Any]]:
    """The class of a method and the options that make it that method."""
    if is_plugin(name):
        return load_class(name), {}
    if name in METHODS:
        return METHODS[name]
    raise FewnodeError(f"unknown method {name!r}{closest(name, METHODS)}; known are {', '.join(METHODS)}")


def _build(name: str, seed: int, options: Mapping[str, Any]) -> Any:
    method, preset = _class_of(name)
    known = list(inspect.signature(method).parameters)
    for option in options:
        if option not in known or option == "seed":
            raise FewnodeError(
                f"method {name} has no option {option!r}{closest(option, known)}; it has {', '.join(known) or 'none'}"
            )
    return method(**{**preset, **options, **({"seed": seed} if "seed" in known else {})})
