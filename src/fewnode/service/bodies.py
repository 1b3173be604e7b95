"""What requests hold: one model for each, for the service, its OpenAPI document, its log and its client.

Requests are strict: an unknown field is an error, and so is a number where a text belongs. Every limit holds before
anything is computed.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    FiniteFloat,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from fewnode.naming import legible, plain, two_alike
from fewnode.recognition.description import MAX_LENGTH

MAX_CLASSES, MAX_EXAMPLES, MAX_NODES = 200, 10_000, 10_000
"""Classes, examples of a class, and nodes or answers of a request."""
MAX_EXAMPLES_IN_ALL, MAX_ANSWERS_IN_ALL = 100_000, 200_000
MAX_NAME = 200
"""Characters of a name."""
MAX_ATTACHED, MAX_ATTACHED_IN_ALL = 1_000, 100_000
"""New nodes of a request, and in all."""
MAX_CELLS = 1_000
"""Attributes, or edges, of a new node."""

Who = Annotated[str, Field(min_length=1, max_length=MAX_NAME), AfterValidator(plain)]
"""The name that somebody gives for themselves; nobody checks it."""
ClassName = Annotated[str, Field(min_length=1, max_length=MAX_NAME), AfterValidator(plain)]
NodeName = Annotated[str, Field(min_length=1, max_length=4 * MAX_NAME)]
AttributeName = Annotated[str, Field(max_length=4 * MAX_NAME)]
Text = Annotated[str, Field(max_length=MAX_NAME)]
Examples = Annotated[list[NodeName], Field(max_length=MAX_EXAMPLES)]
Sentence = Annotated[str, Field(max_length=MAX_LENGTH), AfterValidator(legible)]
Some = Annotated[list[NodeName], Field(max_length=MAX_NODES)]
Label = Annotated[ClassName | None, Field(alias="class")]
Offset = Annotated[int, Field(ge=0, le=1 << 40)]
Limit = Annotated[int, Field(ge=1, le=1000)]
Share = Annotated[float, Field(ge=0, le=1)]
Mode = Literal["inductive", "transductive"]


def _example(**body: Any) -> ConfigDict:
    """What /openapi.json shows of a request."""
    return ConfigDict(json_schema_extra={"example": body})


class Body(BaseModel):
    """A request."""

    model_config = ConfigDict(extra="forbid", strict=True, validate_by_name=True, validate_by_alias=True)


class Signed(Body):
    """A change, and who makes it, if they say so."""

    model_config = _example()
    by: Who | None = None


# --- classes and answers ------------------------------------------------------------------------------------------


class PutClass(Signed):
    """A class as it is from now on: a few nodes that are in it, a description, or both. An empty description means that
    the name speaks; without one, only the nodes count."""

    model_config = _example(support=["openvpn", "wireguard-tools"], description="encrypted tunnels between networks")
    support: Examples = []
    description: Sentence | None = None

    @model_validator(mode="after")
    def _something(self) -> PutClass:
        if not self.support and self.description is None:
            raise ValueError('give "support", "description" or both')
        return self


class OneAnswer(Body):
    """Whether a node is in a class: an example, a counter-example or, with null, no longer answered for."""

    node: NodeName
    label: ClassName = Field(alias="class")
    verdict: Literal["yes", "no"] | None
    probability: Share | None = None
    """The probability that `/api/next` gave: only answers that were asked for tell how many members there are."""


class GivenAnswers(Signed):
    """Answers, all or none. `check`: they were asked as a sample of what the classes claim, and not to learn from.
    `id`: whoever sends the same answers again, with the same id, because nothing came back, has them counted once."""

    model_config = _example(answers=[{"node": "strongswan", "class": "vpn", "verdict": "yes"}], by="Ann")
    answers: Annotated[list[OneAnswer], Field(min_length=1, max_length=MAX_NODES)]
    check: bool = False
    id: Annotated[str, Field(min_length=8, max_length=64, pattern="^[0-9a-zA-Z-]+$")] | None = None


class GivenClasses(Body):
    """Classes of this request alone, in place of the registered ones: by their nodes, by descriptions, or both."""

    support: Annotated[dict[ClassName, Annotated[Examples, Field(min_length=1)]], Field(min_length=1)] | None = None
    descriptions: Annotated[dict[ClassName, Sentence], Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _apart(self) -> GivenClasses:
        names = list(dict.fromkeys([*(self.support or ()), *(self.descriptions or ())]))
        if len(names) > MAX_CLASSES:
            raise ValueError(f"{len(names)} classes, at most {MAX_CLASSES}")
        if why := two_alike(names):
            raise ValueError(why)
        if (examples := sum(map(len, (self.support or {}).values()))) > MAX_EXAMPLES_IN_ALL:
            raise ValueError(f"{examples:,} support nodes in all, {MAX_EXAMPLES_IN_ALL:,} at most")
        return self


class Judging(Body):
    """How nodes are judged. A node is in none of the classes where being in any of them is less likely than `threshold`
    (0.5), unless the set is closed."""

    mode: Literal["inductive", "transductive"] = "inductive"
    closed_set: bool = False
    threshold: Share | None = None


class Classify(Judging, GivenClasses):
    """Which nodes, into which classes, and how."""

    model_config = _example(
        nodes=["strongswan", "dovecot-core"],
        support={"vpn": ["openvpn", "wireguard-tools"], "mail": ["postfix", "exim4"]},
    )
    nodes: Annotated[Some, Field(min_length=1)] | None = None
    all: bool = False
    limit: Annotated[int, Field(ge=1, le=MAX_NODES)] = 50

    @model_validator(mode="after")
    def _either(self) -> Classify:
        if (self.nodes is None) != self.all:
            raise ValueError('give either "nodes" or "all": true')
        return self


class NextQuestion(Judging):
    """How many questions, for one class or for all of them; `exclude`: nodes that are not to be asked about. `order`:
    nodes in `doubt`, from which most is learned, or the `likeliest` ones, which are members soonest."""

    model_config = _example(**{"class": "vpn", "count": 5})
    label: Label = None
    count: Annotated[int, Field(ge=1, le=100)] = 5
    exclude: Some = []
    order: Literal["doubt", "likeliest"] = "doubt"


class Look(NextQuestion):
    """What a page shows of a class: all as it is now, and what to ask next. `keep`: the node of the question that is on
    the screen, which comes first. A class that is not there counts as the first one."""

    keep: NodeName | None = None


class GivenList(Body):
    """A list as somebody has it: a node a line, or a node and a class, with or without a header."""

    model_config = _example(text="node,class\nopenvpn,vpn\n")
    text: Annotated[str, Field(min_length=1, max_length=1 << 20)]


# --- searches and lists: what an address says, where all is text --------------------------------------------------


class AsJudged(Judging):
    """How nodes are judged."""

    model_config = ConfigDict(strict=False)


class AskTrust(AsJudged):
    """All classes, or one."""

    label: Label = None


class OfAttribute(Body):
    """Nodes that have an attribute. A number is wanted as `12`, `>12` or `10..20`."""

    attribute: AttributeName = ""
    value: Text = ""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.value and not self.attribute:
            raise ValueError('"value" is of an attribute; give "attribute" too')
        return self


class ListClaims(OfAttribute, AsJudged):
    """What the classes claim, narrowed to a name or text, an attribute, unanswered nodes, or those attached later.
    `sort`: probability, member, degree, node, class or an attribute."""

    label: Label = None
    text: Text = ""
    unanswered: bool = False
    attached: bool = False
    since: Annotated[str, Field(max_length=40)] = ""
    sort: Annotated[AttributeName, Field(min_length=1)] = "probability"
    descending: bool = True
    attributes: Annotated[list[AttributeName], Field(max_length=20)] = []


class PageOfClaims(ListClaims):
    """A page of them; near-duplicates can be one row."""

    group: bool = False
    offset: Offset = 0
    limit: Limit = 50


class Wanted(OfAttribute):
    """Which nodes are searched for: all that is given must hold."""

    model_config = ConfigDict(strict=False)
    search: Text = ""
    where: Literal["name", "text", "all"] = Field(default="name", alias="in")
    near: AttributeName = ""
    offset: Offset = 0
    limit: Limit = 50


# --- new nodes ----------------------------------------------------------------------------------------------------


def _cell(value: Any, check: ValidatorFunctionWrapHandler) -> Any:
    try:
        return check(value)
    except ValidationError:
        raise ValueError("expected text, a finite number, true, false, null or a list of numbers") from None


Vector = Annotated[list[FiniteFloat], Field(max_length=MAX_NODES)]
Integer = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Cell = Annotated[str | bool | Integer | FiniteFloat | Vector | None, WrapValidator(_cell)]
Cells = Annotated[dict[NodeName, Cell], Field(max_length=MAX_CELLS)]
Numbers = Annotated[dict[str, FiniteFloat], Field(max_length=MAX_CELLS)]


class NewEdge(Body):
    """An edge of a new node with more to say: its kind, its weight, and which way it leads."""

    node: NodeName
    kind: Annotated[str, Field(min_length=1, max_length=4 * MAX_NAME)] | None = None
    weight: Annotated[FiniteFloat, Field(gt=0)] | None = None
    way: Literal["to", "from"] = "from"
    """Whether it leads to that node or comes from it; for kinds of a direction."""


def _edge(given: Any) -> Any:
    """An edge that is a name says nothing more."""
    return {"node": given} if isinstance(given, str) else given


AnyEdge = Annotated[NewEdge, BeforeValidator(_edge, json_schema_input_type=NodeName | NewEdge)]


class NewNode(Body):
    """A node that the network does not have yet, and the nodes that it has edges with. `row`: its cells, by the columns
    of the table that the dataset was imported from; a column that is left out is missing. `attributes`: numbers by
    attribute, where the dataset was not imported from a table."""

    node: ClassName
    row: Cells | None = None
    attributes: Numbers | None = None
    edges: Annotated[list[AnyEdge], Field(max_length=MAX_CELLS)] = []

    @model_validator(mode="after")
    def _one_way(self) -> NewNode:
        if self.row is not None and self.attributes is not None:
            raise ValueError('give "row" or "attributes", not both')
        return self


NewNodes = Annotated[list[NewNode], Field(min_length=1, max_length=MAX_ATTACHED)]


class Attach(Signed, Judging):
    """New nodes; their edges lead to nodes of the network or to each other."""

    model_config = _example(
        nodes=[{"node": "my-vpn", "attributes": {"vpn": 1, "tunnel": 1}, "edges": ["libc6", "openssl"]}]
    )
    nodes: NewNodes
    classify: bool = True


# --- what the log holds -------------------------------------------------------------------------------------------


class ClassChange(Body):
    kind: Literal["class"] = "class"
    name: ClassName
    support: Examples = []
    description: Sentence | None = None


class Forget(Body):
    kind: Literal["forget"] = "forget"
    name: ClassName


class AnswerChange(GivenAnswers):
    kind: Literal["answers"] = "answers"


class AttachChange(Body):
    kind: Literal["nodes"] = "nodes"
    nodes: NewNodes


Change = Annotated[ClassChange | Forget | AnswerChange | AttachChange, Discriminator("kind")]
