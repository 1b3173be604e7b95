"""What a request may say. Everything is checked here, and every limit holds, before a tensor is built."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    FiniteFloat,
    Tag,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from fewnode.classes.description import MAX_LENGTH
from fewnode.naming import legible, plain, two_alike
from fewnode.serve.state import GivenClass

CLASSES, SHOTS, NODES = 200, 1_000, 10_000
"""At most so many classes, support nodes a class, and nodes a request."""
ANSWERS = 1_000
"""Answers a request."""
LISTED = 10_000
"""Nodes of a list that somebody pastes."""
SHOTS_IN_ALL, VERDICTS_IN_ALL = 20_000, 200_000
"""Support nodes of all classes together, and answers that are kept."""
NAME = 200
"""Characters of a name at most."""
ATTACHED, ATTACHED_IN_ALL = 1_000, 100_000
"""New nodes a request, and in all."""
WORDS, EDGES = 1_000, 1_000
"""Attributes and edges of a new node at most."""
EDGES_IN_ALL = 1_000_000
"""Edges that may differ from the dataset's."""


def refuse_many(shots: int) -> None:
    if shots > SHOTS_IN_ALL:
        raise ValueError(f"{shots:,} support nodes in all, {SHOTS_IN_ALL:,} at most")


Who = Annotated[str, Field(min_length=1, max_length=NAME), AfterValidator(plain)]
"""The name that somebody gives for themselves; nobody checks it."""
ClassName = Annotated[str, Field(min_length=1, max_length=NAME), AfterValidator(plain)]
NodeName = Annotated[str, Field(min_length=1, max_length=4 * NAME)]
Shots = Annotated[list[NodeName], Field(min_length=1, max_length=SHOTS)]
Support = Annotated[dict[ClassName, Shots], Field(min_length=1, max_length=CLASSES)]
Sentence = Annotated[str, Field(max_length=MAX_LENGTH), AfterValidator(legible)]
Descriptions = Annotated[dict[ClassName, Sentence], Field(min_length=1, max_length=CLASSES)]
Vector = Annotated[list[FiniteFloat], Field(max_length=NODES)]
Asked = Annotated[list[NodeName], Field(max_length=NODES)]


class Body(BaseModel):
    """A field nobody knows is an error, and so is a number where a text belongs."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Signed(Body):
    """A change, and who makes it, if they say so."""

    by: Who | None = None


class PutClass(Signed):
    """A class as it is from now on: a few nodes that are in it, a description, or both. An empty description means that
    the name speaks; without one, only the nodes count."""

    support: Annotated[list[NodeName], Field(max_length=SHOTS)] = []
    description: Sentence | None = None

    model_config = ConfigDict(
        json_schema_extra={
            "example": {"support": ["openvpn", "wireguard-tools"], "description": "encrypted tunnels between networks"}
        }
    )

    @model_validator(mode="after")
    def _something(self) -> PutClass:
        if not self.support and self.description is None:
            raise ValueError('give "support", "description" or both')
        return self


class GivenClasses(Body):
    """Classes of this request alone, in place of the registered ones: by their nodes, by descriptions, or both."""

    support: Support | None = None
    descriptions: Descriptions | None = None

    @model_validator(mode="after")
    def _apart(self) -> GivenClasses:
        names = list(dict.fromkeys([*(self.support or ()), *(self.descriptions or ())]))
        if len(names) > CLASSES:
            raise ValueError(f"{len(names)} classes, {CLASSES} at most")
        if why := two_alike(names):
            raise ValueError(why)
        refuse_many(sum(map(len, (self.support or {}).values())))
        return self

    @property
    def given(self) -> tuple[GivenClass, ...] | None:
        """None: the registered ones are meant."""
        if self.support is None and self.descriptions is None:
            return None
        nodes, said = self.support or {}, self.descriptions or {}
        return tuple(GivenClass(name, tuple(nodes.get(name, ())), said.get(name)) for name in {**nodes, **said})


class Judging(Body):
    """How nodes are judged. A node is in none of the classes where being in any of them is less likely than `threshold`
    (0.5), unless the set is closed."""

    mode: Annotated[str, Field(pattern="^(inductive|transductive)$")] | None = None
    closed_set: bool = False
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None


class Classify(Judging, GivenClasses):
    """Which nodes, into which classes, and how."""

    nodes: Annotated[Asked, Field(min_length=1)] | None = None
    all: bool = False
    limit: Annotated[int, Field(ge=1, le=NODES)] = 50
    explain: bool = True

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "nodes": ["strongswan", "dovecot-core"],
                "support": {"vpn": ["openvpn", "wireguard-tools"], "mail": ["postfix", "exim4"]},
            }
        }
    )

    @model_validator(mode="after")
    def _either(self) -> Classify:
        if (self.nodes is None) != self.all:
            raise ValueError('give either "nodes" or "all": true')
        return self


class Suggest(GivenClasses):
    """How many nodes to suggest for labelling; `exclude`: nodes that are in none of the classes, neither they nor what
    is like them; `known`: only nodes that the dataset has in one of these classes, so that its labels can answer."""

    count: Annotated[int, Field(ge=1, le=100)] = 10
    exclude: Asked = []
    known: bool = False

    model_config = ConfigDict(json_schema_extra={"example": {"count": 5}})


def cell(value: Any, check: ValidatorFunctionWrapHandler) -> Any:
    try:
        return check(value)
    except ValidationError:
        raise ValueError("expected text, a finite number, true, false, null or a list of numbers") from None


Integer = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Cell = Annotated[str | bool | Integer | FiniteFloat | Vector | None, WrapValidator(cell)]
Cells = Annotated[
    dict[NodeName, Cell],
    Field(max_length=WORDS, examples=[{"country": "FR", "balance": 1200, "about": "a bank for small shops"}]),
]
Numbers = Annotated[dict[str, FiniteFloat], Field(max_length=WORDS, examples=[{"vpn": 1, "tunnel": 2}])]
Kind = Annotated[str, Field(min_length=1, max_length=4 * NAME)]
Amount = Annotated[FiniteFloat, Field(gt=0)]
Ends = Annotated[list[NodeName], Field(max_length=EDGES)]


class NodeContent(Body):
    """What a node is like. `row`: its cells, by the columns of the table that the dataset was imported from; a column
    that is left out is missing. `attributes`: numbers by attribute, where the dataset was not imported from a table."""

    row: Cells | None = None
    attributes: Numbers | None = None

    @model_validator(mode="after")
    def _one_way(self) -> NodeContent:
        if self.row is not None and self.attributes is not None:
            raise ValueError('give "row" or "attributes", not both')
        return self

    @property
    def content(self) -> dict[str, Any] | None:
        given = {"row": self.row, "attributes": self.attributes}
        return {way: cells for way, cells in given.items() if cells is not None} or None


class NewEdge(Body):
    """An edge of a new node with more to say: its kind, its weight, and which way it leads."""

    node: NodeName
    kind: Kind | None = None
    weight: Amount | None = None
    way: Literal["to", "from"] = "from"
    """Whether it leads to that node or comes from it; for kinds of a direction."""


def _form(given: Any) -> str:
    """What an edge was given as, so that an error speaks of that form alone."""
    return "edge" if isinstance(given, dict | NewEdge) else "name"


AnyEdge = Annotated[Annotated[NodeName, Tag("name")] | Annotated[NewEdge, Tag("edge")], Discriminator(_form)]
NewEdges = Annotated[list[AnyEdge], Field(max_length=EDGES)]


class NewNode(NodeContent):
    """A node that the network does not have yet, and the nodes that it has edges with."""

    node: ClassName
    edges: NewEdges = []


class Attach(Signed, Judging):
    """New nodes; their edges lead to nodes of the network or to each other."""

    nodes: Annotated[list[NewNode], Field(min_length=1, max_length=ATTACHED)]
    classify: bool = True

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "nodes": [{"node": "my-vpn", "attributes": {"vpn": 1, "tunnel": 1}, "edges": ["libc6", "openssl"]}]
            }
        }
    )


class PutNode(Signed, NodeContent, Judging):
    """A node as it is to be from now on. Its row and its edges stay as they are where they are left out."""

    edges: Ends | None = None
    classify: bool = True

    model_config = ConfigDict(json_schema_extra={"example": {"attributes": {"vpn": 2}, "edges": ["libc6"]}})


class EdgeBody(Body):
    """In a network that is not directed, source and target may change places."""

    source: NodeName
    target: NodeName
    kind: Kind | None = None
    """One of the network's; left out, it is an edge whose kind nobody told."""
    weight: Amount | None = None
    """On the scale of the data that the network was imported from. Only to add."""


class ChangeEdges(Signed):
    """Edges between nodes that are there: some to add, some to remove, all or none."""

    add: Annotated[list[EdgeBody], Field(max_length=NODES)] = []
    remove: Annotated[list[EdgeBody], Field(max_length=NODES)] = []

    model_config = ConfigDict(json_schema_extra={"example": {"add": [{"source": "openvpn", "target": "openssl"}]}})


class MeasureProgress(Judging):
    """Nodes whose class is known beside those that the dataset knows; a class of another name is another class."""

    truth: Annotated[dict[ClassName, Asked], Field(max_length=CLASSES)] = {}

    model_config = ConfigDict(json_schema_extra={"example": {}})
