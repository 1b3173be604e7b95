"""What the service answers: one model for each, for its routes, its OpenAPI document and its client."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

Place = tuple[float, float]
"""On the map."""


class Told(BaseModel):
    """An answer of the service."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True, serialize_by_alias=True)


class Versioned(Told):
    """An answer that is of one version of the classes, answers and nodes."""

    version: str


class Listed(Told):
    """A node and a class (`class`): the one that it is asked about, that claims it, or that the dataset knows."""

    node: str
    label: Annotated[str | None, Field(alias="class")]


class Refusal(Told):
    """What was wrong, in a sentence, and what to do."""

    error: str
    hint: str


class Version(Versioned):
    """The version, whether a dataset is being read, and how the map is laid out."""

    reloading: bool
    layout: str | None


class Example(Told):
    """A node that is in a class, and its weight β in the prototype; None where it has none."""

    node: str
    beta: float | None = None
    position: Place | None = None


class ClassNow(Told):
    """A class as it is registered. Without a description nodes alone stand for it; of an empty one the name speaks."""

    name: str
    description: str | None = None
    description_beta: float | None = None
    support: list[Example] = []
    rejected: list[str] = []
    """Nodes that somebody said are not in it."""
    position: Place | None = None
    remarks: list[str] = []
    """What of it was not understood, not believed or not used, a sentence each."""
    answers: int = 0
    version: str | None = None


class Classes(Versioned):
    classes: list[ClassNow]


class Changed(Versioned):
    """Whether there is something to undo, or to make again."""

    undo: bool
    redo: bool


class Kept(Changed):
    """A change that is kept; `what` was undone or made again, in a sentence."""

    what: str | None = None
    classes: list[ClassNow] | None = None


class Entry(Told):
    """A change in a sentence, who made it and when."""

    number: int
    when: str
    by: str | None
    what: str
    undone: bool


class Journal(Changed):
    total: int
    entries: list[Entry]


class Reloaded(Told):
    """What became of the last reload."""

    running: bool
    at: str | None = None
    error: str | None = None
    gone: list[str] = []
    """Nodes of classes and answers, and ends of edges, that the dataset does not have; the first of them."""
    gone_total: int = 0


class Prediction(Listed):
    """What a node is taken for, and the probability of each of the answer's classes."""

    probability: float
    probabilities: list[float]
    member: float | None
    """The probability of being in any of the classes; None where the model cannot tell."""


class Answer(Versioned):
    """Predictions, and the version that they were made with."""

    classes: list[str] = []
    closed_set: bool = False
    note: str | None = None
    """What of being in none of them cannot be told, and why."""
    results: list[Prediction] = []
    counts: dict[str, int] = {}
    """How many nodes of the network are taken for each class, if all were asked about."""
    missing: dict[str, list[str]] = {}
    """Of nodes whose rows were given: the columns that they do not have."""
    unknown: dict[str, dict[str, Any]] = {}
    """Cells with a category that the dataset does not have; they count as missing."""
    unused: list[str] = []
    """Columns that the import left out, and that are left out here as well."""


class Group(Told):
    """Nodes that are nearly the same as the one that is shown."""

    count: int
    nodes: list[str]


class Claim(Listed):
    """A node that a class claims, and what is known of it."""

    probability: float
    member: float | None
    degree: int
    known: str | None
    attached: str | None
    verdict: str | None
    by: str | None
    when: str | None
    attributes: dict[str, Any] = {}
    group: Group | None = None


class ClaimPage(Versioned):
    total: int
    rows: list[Claim]
    groups: int | None = None


class Estimate(Told):
    """A number with its interval, and of how many that were counted."""

    value: float
    low: float
    high: float
    n: int | None = None


class CurvePoint(Told):
    threshold: float
    claimed: int
    precision: float | None
    recall: float | None


class Known(Told):
    """Precision and recall by the labels of the data; a share of fewer than ten nodes is None."""

    precision: Estimate | None
    recall: Estimate | None
    compared_with: str


class ClassTrust(Told):
    """What to trust of a class, by the answers that were asked for (`asked`), with 90 % intervals; None: not known yet.

    `enough`: whether 80 % of the members are found; `reason`: why it is worth going on, or not.
    """

    claimed: int
    members: Estimate | None
    precision: Estimate | None
    recall: Estimate | None
    asked: int
    enough: bool
    reason: str
    curve: list[CurvePoint]
    known: Known | None
    """None if the data has no name for the class."""


class Trust(Versioned):
    classes: dict[str, ClassTrust]
    none: int
    """Nodes that no class claims."""
    note: str | None = None
    """What the answer says beside its rows."""


class Question(Listed):
    """A node to ask somebody about: to `find` members, or as a `check` that tells how many there are."""

    probability: float
    purpose: str
    why: str
    known: str | None = None


class Questions(Versioned):
    questions: list[Question]


class Why(Versioned, Listed, extra="allow"):
    """What speaks for a node in a class, and what against it."""

    sentence: str
    probability: float


class FoundNode(Listed):
    """A node that was searched for, by what it `matched`."""

    degree: int
    matched: str | None = None
    words: list[str] = []
    similarity: float | None = None


class Found(Told):
    total: int
    offset: int
    nodes: list[FoundNode]


class Word(Told):
    word: str
    weight: float


class EdgeWith(Told):
    """An edge with a neighbour: its kind, whether it leads `to` it, comes `from` it or goes `both` ways, its weight."""

    kind: str
    way: str | None
    weight: float | None


class Neighbour(Listed):
    edges: list[EdgeWith] = []
    position: Place | None = None


class NodeDetails(Listed):
    """A node, its most telling attributes, and up to thirty neighbours: rare ones first, hubs last."""

    degree: int
    words: list[Word]
    neighbours: list[Neighbour]
    links: list[tuple[int, int]]
    """Which of these neighbours are neighbours of each other."""
    neighbours_total: int
    position: Place | None
    text: str | None = None
    """Its own text, where the dataset keeps it."""
    link: str | None = None


class Evidence(Told):
    """Why the node of the first question may be in its class; and of these nodes, and the example it is most like."""

    nodes: dict[str, NodeDetails]
    why: Why | None


class DataFacts(Told):
    name: str
    nodes: int
    edges: int
    features: int
    labelled: int
    attached: int


class Model(Versioned):
    """The model, its network, and what it can do."""

    method: str
    method_name: str
    way: int
    shot: int
    data: DataFacts
    modes: list[str]
    open_set: bool
    explains: bool
    suggests: bool
    map: bool
    layout: str | None
    """How the map is laid out: by `axes` at first, by `neighbours` as soon as that is ready."""
    describes: bool
    trained: bool
    classes: dict[str, list[str]]
    """Classes of the dataset by what they were used for: `train`, `valid` and `test`."""
    limits: dict[str, int]
    reload: Reloaded
    fewnode: str


class Now(Versioned):
    """All that a page shows of a class; without an answer to give, trust, questions and evidence are None."""

    model: Model
    label: Annotated[str | None, Field(alias="class")]
    classes: list[ClassNow]
    journal: Journal
    trust: Trust | None = None
    questions: list[Question] | None = None
    evidence: Evidence | None = None
    examples: list[Listed] = []
    """Classes of the data to try, as long as there is no class."""


class UnknownLine(Told):
    line: int
    text: str


class ReadList(Told):
    """What a pasted list says: nodes with their classes, lines that are none, and what was not used."""

    nodes: list[Listed]
    unknown: list[UnknownLine]
    repeated: int
    said_no: int
    """Lines whose `answer` is no, which are left out."""
    unused_columns: list[str]


class Attribute(Told):
    """What nodes can be searched by, with how many have it, or what a new node can be given by."""

    name: str
    kind: str
    nodes: int | None = None
    values: list[str] | None = None


class Columns(Told):
    columns: list[Attribute]
    way: str


class Attributes(Told):
    total: int
    attributes: list[Attribute]
