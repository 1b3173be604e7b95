"""The user's door: any method by name, fitted on a `Dataset`, with labels of any kind, saved and loaded."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from fewnode._system.kept import Kept, threads
from fewnode.dataset import Dataset
from fewnode.episodes import Described, Task
from fewnode.errors import FewnodeError, warn_unused
from fewnode.evidence import Evidence
from fewnode.formats.directory import write_record
from fewnode.graph import Graph
from fewnode.method import Describes, Embeds, HasQueries, Stepwise, Stored, ask_method, head_of
from fewnode.methods.features import structural_features
from fewnode.methods.plugins import is_plugin, load_plugin, name_of
from fewnode.methods.table import METHODS, build_method
from fewnode.model.fitting import TaskShape, fit_method, recorded_head
from fewnode.model.progress import training_bar
from fewnode.nodes import (
    Labels,
    Network,
    Nodes,
    PyGData,
    as_dataset,
    as_graph,
    as_labelled,
    as_network,
    label_list,
)
from fewnode.nodes import classes as in_order
from fewnode.recognition.answers import NONE
from fewnode.recognition.classes import Class, Given, task_rows
from fewnode.recognition.mixing import MIXED_NODES
from fewnode.recognition.question import Question
from fewnode.recognition.space import Explanation, Head, Space
from fewnode.vectors import Embedding, Probabilities

if TYPE_CHECKING:
    from fewnode.train import History, OnStep

OWN_PARTS = ("encoder", "valuator")
"""Options that may be code of a user's own, which no file can hold."""
WAY = 5
"""Of tasks to train on, unless told otherwise: as in the paper, or as many as there are training classes."""
GRAPHS = 3
"""Networks of which a model keeps z in memory."""
DEFAULTS = {"method": "gpn-plus", "way": None, "shot": 5, "query": None, "seed": 0, "features": None}
"""Of the constructor's named arguments."""


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
        way: int | None = None,
        shot: int = 5,
        query: int | None = None,
        seed: int = 0,
        features: str | None = None,
        **options: Any,
    ) -> None:
        # a file is read once: what another seed is trained with is what ran
        made_by = load_plugin(method)[0] if isinstance(method, str) and is_plugin(method) else method
        named = {"method": made_by, "way": way, "shot": shot, "query": query, "seed": seed, "features": features}
        self._given = {**named, **options}
        self.method_: Any = build_method(made_by, seed, options)
        self.method = name_of(made_by) if isinstance(made_by, type) else made_by
        self.shot, self.seed, self.features, self.options = shot, seed, features, options
        self.way = WAY if way is None else way
        own = self.method_.queries if isinstance(self.method_, HasQueries) else None
        self.query = own or shot if query is None else query
        self.trained_: dict[str, Any] = {}
        self.needs_fit = True
        self._kept = Kept(GRAPHS)

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
        from fewnode.formats.checkpoint import Checkpoints  # which brings the compiled engine
        from fewnode.train import Journal

        data = as_labelled(data)
        episodes = self.method_.episodes if isinstance(self.method_, Stepwise) else 0
        with training_bar(episodes) if verbose else nullcontext() as draw:

            def follow(step: int, loss: float, history: History) -> None:
                for listener in filter(None, (draw, on_step)):
                    listener(step, loss, history)

            journal = Journal(on_step=follow)
            if checkpoints is not None:
                agreed = {**self.all_settings(), "data": data.sha256, "threads": threads()}
                journal = Checkpoints(Path(checkpoints), agreed, on_step=follow)
            if self._given["way"] is None:
                self.way = max(2, min(WAY, len(data.split.train))) if data.split.train else WAY
            shape, self._kept = TaskShape(self.way, self.shot, self.query, self.seed), Kept(GRAPHS)
            self.trained_, space = fit_method(self.method_, data, self._read(data.graph), shape, journal)
        self.needs_fit = False
        if space is not None:
            self._kept(data.graph.fingerprint, lambda: space)
        return self

    def predict_proba(
        self, graph: Network, support: Nodes, support_y: Labels, query: Nodes, transductive: bool = False
    ) -> NDArray[np.floating[Any]]:
        """A probability for each query node (row) and class (column); columns are in the order of `classes`.

        Nodes are row numbers, names (then `graph` is a `Dataset`) or a boolean mask. Among several classes a row sums
        to 1: that the node is in one of them is taken for granted, and `member` says how likely it is. One class alone
        means "more like these": its column is `member`, to rank nodes by. Inductive unless `transductive`: then the
        query nodes help each other.
        """
        question = self._support_question(graph, support, support_y)
        rows = question.rows(query)
        return question.member(rows)[:, None] if len(question.classes) == 1 else question.among(rows, transductive)

    def ask(
        self,
        data: Network,
        classes: Mapping[str, Nodes | str | Class],
        *,
        multi_label: bool = False,
        with_base: bool = False,
    ) -> Question:
        """The classes, prepared once for this network: `judge` nodes, say `why`, what to ask `next`, what to `trust`.

        A class is a sentence, a list of nodes, or a `fewnode.Class`. `multi_label`: a node may be in several of them.
        `with_base`: the base classes of the dataset stand beside them. What of it is not used is named by a warning.
        """
        network = as_dataset(data)
        question = self.question(network, Given.of(network, classes, multi_label), multi_label, with_base)
        if remarks := question.remarks:
            warn_unused(remarks, stacklevel=3)
        return question

    def question(self, data: Dataset, given: Given, multi_label: bool = False, with_base: bool = False) -> Question:
        """Classes that are read already, prepared for this network; nothing is said of what is not used."""
        if multi_label and with_base:
            raise FewnodeError("several classes a node: each is judged on its own; leave out the base classes")
        given = given.beside_base(data, self.seed) if with_base else given
        space = self.space(data.graph) if isinstance(self.method_, Embeds) else None

        def predict(task: Task, transductive: bool) -> Probabilities:
            return self.predict_tasks(data.graph, [task], transductive)[0]

        self._check(data.graph)
        return Question(self.method, data, given, space, predict, multi_label)

    def _support_question(
        self, graph: Network, support: Nodes, support_y: Labels, described: Described | None = None
    ) -> Question:
        """The question of a support set whose labels may be of any kind."""
        network = as_network(graph)
        said = {} if described is None else {c: described.x[[i]] for i, c in enumerate(described.y.tolist())}
        question = self.question(as_dataset(network), Given.of_support(network, support, support_y, said))
        self.classes_ = list(question.given.names)
        return question

    def predict_tasks(self, graph: Network, tasks: Sequence[Task], transductive: bool = False) -> list[Probabilities]:
        """The probabilities of many tasks at once."""
        network = as_network(graph)
        plain, asked = as_graph(network), [task_rows(network, task) for task in tasks]
        self._check(plain)
        if isinstance(self.method_, Embeds):
            space = self.space(plain)
            if any(task.described is not None for task in asked) and not space.reads_descriptions:
                raise FewnodeError(f"{self.method} cannot read descriptions of classes; gpn-plus can")
            if transductive or not space.head.adapts or plain.n > MIXED_NODES:
                return space.predict_tasks(asked, transductive)
            evidence, data = space.kept("evidence", lambda: Evidence.of(plain)), as_dataset(network)
            return [self._task_question(data, task, space, evidence).among(task.query) for task in asked]
        if transductive:
            raise FewnodeError(f"{self.method} answers each query on its own: it has no transductive mode")
        return ask_method(self.method_, self._read(plain), asked, self.method)

    def _task_question(self, data: Dataset, task: Task, space: Space, evidence: Evidence) -> Question:
        """The question of one of many tasks: nothing is kept of it."""
        alone = replace(space, kept=Kept())
        alone.kept("evidence", lambda: evidence)
        given = Given(tuple(range(task.n_way)), task.support, task.support_y, task.described)
        return Question(self.method, data, given, alone)

    def space(self, graph: Network, embedding: Embedding | None = None) -> Space:
        """The nodes of a network as the model sees them; `embedding`: what it gave before, in another process."""
        plain, method = as_graph(graph), self.method_
        self._check(plain)
        if not isinstance(method, Embeds):
            raise FewnodeError(f"{self.method} has no embedding of nodes; use gpn-plus")

        def made() -> Space:
            z = method.embed(self._read(plain)) if embedding is None else embedding
            return Space(
                z,
                recorded_head(head_of(method), self.trained_),
                method.unlinked if isinstance(method, Describes) else None,
            )

        return self._kept(plain.fingerprint, made)

    @property
    def head(self) -> Head | None:
        """How z becomes answers, calibrated; None for a method without an embedding."""
        return recorded_head(head_of(self.method_), self.trained_) if isinstance(self.method_, Embeds) else None

    def has_space(self, graph: Network) -> bool:
        """Whether `space` need not compute anything."""
        return as_graph(graph).fingerprint in self._kept

    def member(self, graph: Network, support: Nodes, support_y: Labels, query: Nodes) -> NDArray[np.float64]:
        """P(a query node is in one of the given classes); under 0.5 means none of these.

        What share of the network they have is estimated over all of its nodes, whatever is asked about.
        """
        question = self._support_question(graph, support, support_y)
        return question.member(question.rows(query))

    def familiar(
        self, graph: Network, support: Nodes, support_y: Labels, query: Nodes, described: Described | None = None
    ) -> NDArray[np.float64]:
        """P(a query node is in one of the classes), if every second node were: for tests with as many strangers."""
        question = self._support_question(graph, support, support_y, described)
        return question.member(question.rows(query), 0.5)

    def predict(
        self, graph: Network, support: Nodes, support_y: Labels, query: Nodes, transductive: bool = False
    ) -> list[Hashable]:
        """The most likely class of each query node; with one class alone, that or `none of these`."""
        names = in_order(support_y)
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

    def embedding(self, graph: Network) -> NDArray[np.float32]:
        """z of every node (a row each), for maps, for choosing nodes by, and for any other classifier."""
        return self.space(graph).embedding.z

    def explain(self, graph: Network, support: Nodes, support_y: Labels, query: Nodes) -> Explanation:
        """β of each support node, and the support nodes (their places in `support`) nearest to each query node."""
        question = self._support_question(graph, support, support_y)
        return question.explain(question.rows(query))

    def check_features(self, data: Dataset) -> None:
        """Refuse a dataset whose attributes are not those the model was trained on."""
        self._need_width(data.graph)
        ours, theirs = self.trained_["feature_names"], data.feature_names
        if ours and theirs and list(theirs) != ours:
            first = next(i for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b)
            raise FewnodeError(
                f"attribute {first} of {data.name} is {theirs[first]!r}, the model reads {ours[first]!r}"
            )

    def fresh(self, seed: int) -> Estimator:
        """An unfitted estimator with the same options and another seed."""
        return Estimator(**{**self._given, "way": self.way, "query": self.query, "seed": seed})

    def _read(self, graph: Graph) -> Graph:
        """The graph as the method is given it: with attributes made from its structure, if `features` says so."""
        if self.features is None:
            return graph
        features, key = self.features, ("features", graph.fingerprint)
        made = self._kept(key, lambda: structural_features(graph, features, self.seed))
        if self.trained_ and made.n_features != self.trained_["width"]:
            raise FewnodeError(
                f"{self.features} makes {made.n_features} attributes here, the model reads {self.trained_['width']}"
            )
        return made

    def _check(self, graph: Graph) -> None:
        """Refuse to answer before a fit, and a network of another width."""
        if self.needs_fit:
            raise FewnodeError("the model is not fitted yet; call fit(data) first")
        self._need_width(graph)

    def _need_width(self, graph: Graph) -> None:
        if graph.n_features != self.trained_["n_features"]:
            raise FewnodeError(
                f"the network has {graph.n_features} attributes, the model reads {self.trained_['n_features']}"
            )

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
        state = self.method_.state() if isinstance(self.method_, Stored) else {}
        arrays = {name: np.asarray(array) for name, array in state.items()}
        write_record(directory, "model", {**self.all_settings(), "trained": self.trained_}, arrays)

    # --- scikit-learn's way with parameters: its `BaseEstimator` knows no options by any name ---

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments that make an unfitted estimator like this one."""
        return dict(self._given)

    def set_params(self, **changes: Any) -> Self:
        """Make it anew with some arguments changed. It has to be fitted again."""
        if changes:
            type(self).__init__(self, **{**self._given, **changes})
        return self

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False), input_tags=InputTags())

    def __repr__(self) -> str:
        changed = {name: v for name, v in self._given.items() if name not in DEFAULTS or v != DEFAULTS[name]}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in changed.items())})"
