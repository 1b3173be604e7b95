"""The user's door: any method by name, fitted on a `Dataset`, with labels of any kind, saved and loaded."""

from __future__ import annotations

import inspect
import platform
import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

import fewnode
from fewnode.card import model_card
from fewnode.dataset import Dataset
from fewnode.episodes import Described, Task
from fewnode.errors import FewnodeError
from fewnode.files import one_line
from fewnode.fitting import base_tasks, calibrate
from fewnode.graph import Attributes, Graph
from fewnode.io import write_record
from fewnode.manifest import check_model, check_options
from fewnode.method import Probabilities
from fewnode.methods.table import METHODS, build_method
from fewnode.model_files import checked_tensors, naming, read_model
from fewnode.nodes import (
    Labels,
    Network,
    Nodes,
    PyGData,
    as_graph,
    as_labelled,
    as_network,
    classes,
)
from fewnode.plugins import Plugin, is_plugin, name_of, read, read_class, recall
from fewnode.recogniser import NO_BIAS, NO_DESCRIPTIONS, NONE, FittedMethod, Recogniser, task_rows
from fewnode.recognition.calibration import MODES, Temperature
from fewnode.recognition.membership import MembershipModel
from fewnode.recognition.prototypes import Explanation, Prototypical
from fewnode.represent.features import structural_features
from fewnode.team import ALONE, Team
from fewnode.train import QUIET, Journal


class Estimator:
    """A few-shot method for N-way K-shot tasks on attributed networks.

    `method` is one of `METHODS`, or a method of your own: its class, or `FILE.py:CLASS`. `features` makes attributes
    from the structure (`degree`, `svd` or `walks`); `options` are the method's own.

    A graph is given as a `Graph`, a `Dataset` or a PyG `Data`, which is converted anew at every call. Nodes are given
    as row numbers, as names (if the graph is a `Dataset` that has them) or as a boolean mask with a value a node.

    >>> import numpy as np
    >>> y = np.repeat(range(20), 20)  # twenty classes of twenty nodes, which know each other and look alike
    >>> data = Dataset.from_scipy(y[:, None] == y, np.eye(20)[y], y)
    >>> model = Estimator("gpn-plus", way=3, shot=2).fit(data)
    >>> model.predict(data, support=[0, 25], support_y=["mail", "vpn"], query=[3, 30])
    ['mail', 'vpn']
    >>> model.predict_proba(data, [0, 25], ["mail", "vpn"], query=data.y == 1).argmax(axis=1).tolist()
    [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
    >>> model.member(data, [0, 25], ["mail", "vpn"], [3, 70]).round().tolist()  # 70 is in neither
    [1.0, 0.0]
    """

    def __init__(
        self,
        method: str | type | Plugin = "gpn-plus",
        way: int = 5,
        shot: int = 5,
        query: int | None = None,
        seed: int = 0,
        features: str | None = None,
        **options: Any,
    ) -> None:
        # a file is read once: what is saved, signed and made again with another seed are the bytes that ran
        self._made_by = read(method) if isinstance(method, str) and is_plugin(method) else method
        self.method, self.features = name_of(self._made_by), features
        self.way, self.shot, self.query, self.seed = way, shot, shot if query is None else query, seed
        self.options = options
        self.method_: Any = build_method(self._made_by, seed, options)
        self.trained_: dict[str, Any] = {}
        self.needs_fit, self.reads_descriptions = True, getattr(self.method_, "reads_descriptions", False)
        self._featured: tuple[Graph, Graph] | None = None

    def fit(self, data: Dataset | PyGData, journal: Journal = QUIET, team: Team = ALONE) -> Estimator:
        """Meta-train on `data.split.train`, stop on `data.split.valid`; test classes are not looked at.

        Deviation D14: with fewer than N validation classes, validation tasks have as many ways as there are.
        """
        data = as_labelled(data)
        needed = getattr(self.method_, "needs_base", True)
        train, valid = base_tasks(data, self.way, self.shot, self.query, self.seed, needed)
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
            self.check_team()
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
            **calibrate(self.method_, data, graph, train, valid, self.way, self.shot),
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

    def check_team(self) -> None:
        """Refuse a method that trains in one process."""
        if "team" not in inspect.signature(self.method_.fit).parameters:
            raise FewnodeError(f"{self.method} cannot be trained by several workers; gpn, gpn-naive and pn can")

    def predict_proba(
        self, graph: Network, support: Nodes, support_y: Labels, query: Nodes, transductive: bool = False
    ) -> Probabilities:
        """A probability for each query node (row) and class (column); columns are in the order of `classes`.

        Nodes are row numbers, names (then `graph` is a `Dataset`) or a boolean mask. Among several classes a row sums
        to 1: that the node is in one of them is taken for granted, and `member` says how likely it is. One class alone
        means "more like these": its column is `member`, to rank nodes by. Inductive unless `transductive`: then the
        query nodes help each other.
        """
        return self.recogniser(graph, support, support_y).predict_proba(query, transductive)

    def predict_tasks(self, graph: Network, tasks: Sequence[Task], transductive: bool = False) -> list[Probabilities]:
        """The probabilities of many tasks at once."""
        network = as_network(graph)
        graph, tasks = as_graph(network), [task_rows(network, task) for task in tasks]
        return self._fitted(graph).predict_tasks(self._read(graph), tasks, transductive)

    def recogniser(
        self,
        graph: Network,
        support: Nodes,
        support_y: Labels,
        described: Mapping[Hashable, Attributes] = NO_DESCRIPTIONS,
        bias: Mapping[Hashable, float] = NO_BIAS,
        several: bool = False,
    ) -> Recogniser:
        """The model and a support set, read once: then any nodes can be asked about, over and over.

        `described`: for some classes a row of attributes that stands for them, as `fewnode.describe` makes it.
        `bias` is added to the log-probability of some classes. `several`: a support node may be in several
        classes, for `fewnode.multi_label`.
        """
        network = as_network(graph)
        plain = as_graph(network)
        more = (described, bias, several)
        return Recogniser(self._fitted(plain), network, self._read(plain), support, support_y, *more)

    def member(self, graph: Network, support: Nodes, support_y: Labels, query: Nodes) -> Probabilities:
        """P(a query node is in one of the given classes); under 0.5 means none of these.

        What share of the network they have is estimated over all of its nodes, whatever is asked about.
        """
        return self.recogniser(graph, support, support_y).member(query)

    def familiar(
        self, graph: Network, support: Nodes, support_y: Labels, query: Nodes, described: Described | None = None
    ) -> Probabilities:
        """The same, if every second node were in one of them: for tests with as many members as strangers."""
        said = {} if described is None else {c: described.x[[i]] for i, c in enumerate(described.y.tolist())}
        return self.recogniser(graph, support, support_y, said).familiar(query)

    def predict(
        self, graph: Network, support: Nodes, support_y: Labels, query: Nodes, transductive: bool = False
    ) -> list[Hashable]:
        """The most likely class of each query node; with one class alone, that or `none of these`."""
        names = classes(support_y)
        probability = self.predict_proba(graph, support, support_y, query, transductive)
        if len(names) == 1:
            return [names[0] if p >= 0.5 else NONE for p in probability[:, 0]]
        return [names[c] for c in probability.argmax(axis=1)]

    def embedding(self, graph: Network) -> Tensor:
        """z of every node (a row each), for maps and for choosing nodes by."""
        return self.embedded(graph)[0]

    def embedded(self, graph: Network) -> tuple[Tensor, Tensor]:
        """z and the importance of every node."""
        graph = as_graph(graph)
        return self._prototypical(graph).embedding(self._read(graph))

    def has_embedding(self, graph: Graph) -> bool:
        """Whether `embedded` need not compute anything."""
        return self._prototypical(graph).remembers(self._read(graph))

    def remember(self, graph: Graph, z: Tensor, importance: Tensor) -> None:
        """Take these for what `embedded` gives: it gave them before, in another process."""
        self._prototypical(graph).remember(self._read(graph), z, importance)

    def _prototypical(self, graph: Graph) -> Prototypical:
        method = self._fitted(graph).method
        if not isinstance(method, Prototypical):
            raise FewnodeError(f"{self.method} has no embedding of nodes")
        return method

    def explain(self, graph: Network, support: Nodes, support_y: Labels, query: Nodes) -> Explanation:
        """β of each support node, and the support nodes (their places in `support`) nearest to each query node."""
        return self.recogniser(graph, support, support_y).explain(query)

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
        return {**self.all_settings(), "method": self._made_by, "options": self.options}

    def fresh(self, seed: int) -> Estimator:
        """An unfitted estimator with the same options and another seed."""
        return Estimator(self._made_by, self.way, self.shot, self.query, seed, self.features, **self.options)

    def _read(self, graph: Graph) -> Graph:
        """The graph as the method is given it: with attributes made from its structure, if `features` says so."""
        if self.features is None:
            return graph
        if self._featured is None or self._featured[0] is not graph:
            made = structural_features(graph, self.features, self.seed)
            if self.trained_ and made.n_features != self.trained_["width"]:
                raise FewnodeError(
                    f"{self.features} makes {made.n_features} attributes here, the model reads {self.trained_['width']}"
                )
            self._featured = (graph, made)
        return self._featured[1]

    def _fitted(self, graph: Graph) -> FittedMethod:
        """The method as it answers, for a network of the right width."""
        if self.needs_fit:
            raise FewnodeError("the model is not fitted yet; call fit(data) first")
        if graph.n_features != self.trained_["n_features"]:
            raise FewnodeError(
                f"the network has {graph.n_features} attributes, the model reads {self.trained_['n_features']}"
            )
        constants = self.trained_["temperature"] or {}
        temperatures = {mode: Temperature(**numbers) for mode, numbers in constants.items()}
        return FittedMethod(self.method, self.method_, temperatures)

    def all_settings(self) -> dict[str, Any]:
        """What defines the model, defaults included."""
        preset = METHODS[self.method][1] if self.method in METHODS else {}
        options = {**preset, **self.options}  # all of them: defaults may change, a model may not
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
        if isinstance(self._made_by, type):
            meta["plugin"] = read_class(self._made_by).signed()
        if isinstance(self._made_by, Plugin):
            meta["plugin"] = self._made_by.signed()
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


class GPN(Estimator):
    """Graph Prototypical Networks, the paper's method: `Estimator("gpn")`.

    >>> import numpy as np
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

    >>> import numpy as np
    >>> y = np.repeat(range(12), 20)
    >>> data = Dataset.from_scipy(y[:, None] == y, np.eye(12)[y], y)
    >>> Estimator("propagation", way=3, shot=2, steps=1).fit(data).save("run")
    >>> load_model("run").predict(data.graph, [0, 25], ["mail", "vpn"], [3, 30])
    ['mail', 'vpn']
    """
    directory = Path(directory)
    meta, state = read_model(directory)
    with naming(directory):
        check_model(meta)
        options = dict(meta["options"])
        if encoder is not None:
            options["encoder"] = encoder
        elif str(options.get("encoder")).startswith("a "):
            raise FewnodeError(f"was trained with {options['encoder']} as encoder; pass load_model(…, encoder=…)")
        source: str | Plugin | None = method or meta["method"]
        if method is None and is_plugin(meta["method"]):
            source = recall(meta["method"], meta.get("plugin"))
        if source is None:
            raise FewnodeError(f"was trained with {meta['method']}, which is code; name the file to run as --method")
        if isinstance(source, str) and source in METHODS:
            check_options(METHODS[source][0], meta["options"])
        shape = (meta["way"], meta["shot"], meta["query"], meta["seed"], meta["features"])
        model = GPN(*shape, **options) if source == "gpn" else Estimator(source, *shape, **options)
        tensors = checked_tensors(state)
        model.trained_ = dict(meta["trained"])
        if hasattr(model.method_, "restore"):
            model.method_.restore(model.trained_["width"], tensors)
            model.needs_fit = False
        if model.trained_["membership"]:
            model.method_.membership = MembershipModel(**model.trained_["membership"])
        for mode in MODES if model.trained_["temperature"] else ():
            Temperature(**model.trained_["temperature"][mode])
    return model


def _hub() -> Any:
    try:
        from fewnode.hub import Hub
    except ModuleNotFoundError as error:
        raise FewnodeError(f"model hubs need the package {error.name}: pip install 'fewnode[hub]'") from None
    return Hub
