"""The user's door: any method by name, fitted on a `Dataset`, with labels of any kind, saved and loaded."""

from __future__ import annotations

import inspect
from collections.abc import Hashable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from torch import Tensor

from fewnode.classes.definitions import Class
from fewnode.dataset import Dataset
from fewnode.display import facts_html
from fewnode.episodes import Described, Task
from fewnode.errors import FewnodeError, warn_unused
from fewnode.graph import Attributes, Graph
from fewnode.method import Probabilities
from fewnode.methods.plugins import is_plugin, load_plugin, name_of
from fewnode.methods.table import METHODS, build_method, class_of
from fewnode.model.fitted_method import FittedMethod
from fewnode.model.fitting import TaskShape, fit_method, short_facts
from fewnode.model.model_files import checked_tensors, naming, read_model
from fewnode.model.progress import training_bar
from fewnode.model.recogniser import NO_DESCRIPTIONS, NO_REJECTED, NONE, Recogniser, task_rows
from fewnode.nodes import Labels, Network, Nodes, PyGData, as_graph, as_labelled, as_network, classes, label_list
from fewnode.recognition.calibration import MODES, Temperature
from fewnode.recognition.membership import MembershipModel
from fewnode.recognition.prototypes import Explanation, Prototypical
from fewnode.represent.features import structural_features
from fewnode.storage.checkpoint import Checkpoints
from fewnode.storage.io import write_record
from fewnode.storage.manifest import ModelManifest, check_manifest, check_options
from fewnode.train import History, Journal, OnStep
from fewnode.vectors import Embedding

if TYPE_CHECKING:
    from fewnode.predict.question import Question

OWN_PARTS = ("encoder", "valuator")
"""Options that may be code of a user's own, which no file can hold."""


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

    classes_: list[Hashable]
    """Of the last support set, in the order of the columns of `predict_proba`; not there before the first."""

    def __init__(
        self,
        method: str | type = "gpn-plus",
        way: int = 5,
        shot: int = 5,
        query: int | None = None,
        seed: int = 0,
        features: str | None = None,
        **options: Any,
    ) -> None:
        # a file is read once: what another seed is trained with is what ran
        self._made_by = load_plugin(method)[0] if isinstance(method, str) and is_plugin(method) else method
        self.method_: Any = build_method(self._made_by, seed, options)
        self.method = name_of(self._made_by) if isinstance(self._made_by, type) else self._made_by
        self.features = features
        self.way, self.shot, self.seed, self.options, self._asked = way, shot, seed, options, query
        self.query = getattr(self.method_, "queries", None) or shot if query is None else query
        self.trained_: dict[str, Any] = {}
        self.needs_fit, self.reads_descriptions = True, getattr(self.method_, "reads_descriptions", False)
        self._featured: tuple[Graph, Graph] | None = None

    def fit(
        self,
        data: Dataset | PyGData,
        *,
        on_step: OnStep | None = None,
        checkpoints: str | Path | None = None,
        verbose: bool = False,
    ) -> Estimator:
        """Meta-train on `data.split.train`, stop on `data.split.valid`; test classes are not looked at.

        `on_step(step, loss, history)` is called once a step; what it raises ends the training. GPN+ and propagation
        have no steps. `checkpoints` is a directory that a training with the same settings continues from. `verbose`
        shows how far it is. Deviation D14: with fewer than N validation classes, validation tasks have as many ways as
        there are.
        """
        data = as_labelled(data)
        with training_bar(getattr(self.method_, "episodes", 0)) if verbose else nullcontext() as draw:

            def follow(step: int, loss: float, history: History) -> None:
                for listener in filter(None, (draw, on_step)):
                    listener(step, loss, history)

            journal = Journal(on_step=follow)
            if checkpoints is not None:
                agreed = {**self.all_settings(), "data": data.sha256, "threads": torch.get_num_threads()}
                journal = Checkpoints(Path(checkpoints), agreed, on_step=follow)
            shape = TaskShape(self.way, self.shot, self.query, self.seed)
            self.trained_ = fit_method(self.method_, data, self._read(data.graph), shape, journal)
        self.needs_fit = False
        return self

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
        several: bool = False,
        rejected: Mapping[Hashable, Nodes] = NO_REJECTED,
    ) -> Recogniser:
        """The model and a support set, read once: then any nodes can be asked about, over and over.

        `described`: for some classes a row of attributes that stands for them, as `fewnode.describe` makes it.
        `several`: a support node may be in several classes, for `fewnode.predict.multi_label`. `rejected`: for some
        classes, nodes that are not in them.
        """
        network, more = as_network(graph), (described, several, rejected)
        plain = as_graph(network)
        found = Recogniser(self._fitted(plain), network, self._read(plain), support, support_y, *more)
        self.classes_ = found.classes
        return found

    def ask(self, data: Network, classes: Mapping[str, Nodes | str | Class], **how: bool) -> Question:
        """The classes, prepared once for this network: `judge` nodes, say `why`, what to ask `next`, what to `trust`.

        A class is a sentence, a list of nodes, or a `fewnode.Class`. `multi_label`: a node may be in several of them.
        `with_base`: the base classes of the dataset stand beside them. What of it is not used is named by a warning.
        """
        from fewnode.predict import question  # which is made of estimators

        asked, remarks = question.ask(self, data, classes, **how)
        if remarks:
            warn_unused(remarks, stacklevel=3)
        return asked

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

    def score(self, graph: Network, support: Nodes, support_y: Labels, query: Nodes, query_y: Labels) -> float:
        """The share of the query nodes whose class is predicted right."""
        answers, labels = self.predict(graph, support, support_y, query), label_list(query_y)
        if len(answers) != len(labels):
            raise FewnodeError(f"{len(answers)} query nodes and {len(labels)} labels; expected one label a node")
        return sum(answer == label for answer, label in zip(answers, labels, strict=True)) / max(1, len(labels))

    @property
    def n_features_in_(self) -> int:
        """How many attributes a node has, once the model is fitted."""
        if self.needs_fit:
            raise AttributeError("the model is not fitted yet, so n_features_in_ is not known")
        return int(self.trained_["n_features"])

    def __sklearn_is_fitted__(self) -> bool:
        return not self.needs_fit

    def embedding(self, graph: Network) -> Tensor:
        """z of every node (a row each), for maps, for choosing nodes by, and for any other classifier."""
        graph = as_graph(graph)
        z = self._prototypical(graph).embedding(self._read(graph))[0]
        return z.clone() if z.is_inference() else z  # autograd takes no tensor of inference mode

    def embedded(self, graph: Network) -> Embedding:
        """z and the importance of every node, and what the network looks like from there."""
        graph = as_graph(graph)
        return self._prototypical(graph).embedded(self._read(graph))

    def has_embedding(self, graph: Graph) -> bool:
        """Whether `embedded` need not compute anything."""
        return self._prototypical(graph).remembers(self._read(graph))

    def remember(self, graph: Graph, embedding: Embedding) -> None:
        """Take this for what `embedded` gives: it gave it before, in another process."""
        self._prototypical(graph).remember(self._read(graph), embedding)

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
        """The arguments that make an estimator like this one, in another process, too."""
        return {**self.all_settings(), "options": self.options}

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
        preset = METHODS.get(self.method, {})
        options = {**preset, **self.options}  # all of them: defaults may change, a model may not
        for part in OWN_PARTS:
            if not isinstance(options.get(part, ""), str | bool):
                options[part] = {"class": getattr(options[part], "__name__", type(options[part]).__name__)}
        shape = {"way": self.way, "shot": self.shot, "query": self.query, "seed": self.seed, "features": self.features}
        return {"method": self.method, "options": options, **shape}

    def save(self, directory: str | Path) -> None:
        """Write `model.safetensors` and `model.json`. A model is never overwritten."""
        directory = Path(directory)
        if (directory / "model.json").exists():
            raise FewnodeError(f"{directory}: there is a model already; choose another directory")
        if self.needs_fit:
            raise FewnodeError("the model is not fitted yet; call fit(data) first")
        state = self.method_.state() if hasattr(self.method_, "state") else {}
        arrays = {name: np.asarray(array) for name, array in state.items()}
        write_record(directory, "model", {**self.all_settings(), "trained": self.trained_}, arrays)

    # --- scikit-learn's way with parameters: its `BaseEstimator` knows no options by any name ---

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments that make an unfitted estimator like this one."""
        given = {"method": self._made_by, "query": self._asked}
        return {**{name: given.get(name, getattr(self, name)) for name in self._defaults()}, **self.options}

    def set_params(self, **changes: Any) -> Self:
        """Make it anew with some arguments changed. It has to be fitted again."""
        if changes:
            type(self).__init__(self, **{**self.get_params(), **changes})
        return self

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False), input_tags=InputTags())

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        """The named arguments of the constructor, and what they are unless told otherwise."""
        known = inspect.signature(cls).parameters.values()
        return {each.name: each.default for each in known if each.kind is not each.VAR_KEYWORD}

    def __repr__(self) -> str:
        defaults = self._defaults()
        changed = {name: v for name, v in self.get_params().items() if name not in defaults or v != defaults[name]}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in changed.items())})"

    def _repr_html_(self) -> str:
        return facts_html(repr(self), short_facts(self.trained_))


def load_model(
    directory: str | Path, encoder: Any = None, method: str | type | None = None, valuator: Any = None
) -> Estimator:
    """A model that `save` wrote.

    One that was trained with an `encoder` or a `valuator` of your own needs it again, and so does one that was trained
    with a `method` of your own: its class, or file.py:Class. A method that keeps no state comes back with `needs_fit`.

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
        check_manifest(ModelManifest, meta)
        options = dict(meta["options"])
        for part, again in zip(OWN_PARTS, (encoder, valuator), strict=True):
            if isinstance(options.get(part), dict):
                own = options.pop(part).get("class")
                if again is None:
                    raise FewnodeError(f"was trained with its own {part}, {own}; pass load_model(…, {part}=…)")
        source = method or meta["method"]
        if method is None and source not in METHODS:
            raise FewnodeError(f"was trained with {source}, which is code; name it: --method FILE.py:CLASS")
        if isinstance(source, str) and source in METHODS:
            check_options(class_of(source)[0], options)
        options |= {part: own for part, own in zip(OWN_PARTS, (encoder, valuator), strict=True) if own is not None}
        shape = (meta["way"], meta["shot"], meta["query"], meta["seed"], meta["features"])
        model = Estimator(source, *shape, **options)
        model.trained_ = dict(meta["trained"])
        if hasattr(model.method_, "restore"):
            model.method_.restore(model.trained_["width"], checked_tensors(state))
            model.needs_fit = False
        if model.trained_["membership"]:
            model.method_.membership = MembershipModel(**model.trained_["membership"])
        for mode in MODES if model.trained_["temperature"] else ():
            Temperature(**model.trained_["temperature"][mode])
    return model
