"""What a request may say. Everything is checked here, and every limit holds, before a tensor is built."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, FiniteFloat, model_validator

CLASSES, SHOTS, NODES = 200, 100, 10_000
"""At most so many classes, support nodes a class, and nodes a request."""
NAME = 200
"""Characters of a name at most."""
ATTACHED, ATTACHED_IN_ALL = 1_000, 100_000
"""New nodes a request, and in all."""
WORDS, EDGES = 1_000, 1_000
"""Attributes and edges of a new node at most."""


def plain(name: str) -> str:
    """A name that survives a table and a line of text: something to see, no control characters, no space around it."""
    if not name.strip() or name != name.strip():
        raise ValueError("a name must not be blank, nor begin or end with a space")
    if not name.isprintable():
        raise ValueError("a name must not hold control characters")
    if name in (".", ".."):
        raise ValueError("a name must not be . or .., which mean something in an address")
    return name


ClassName = Annotated[str, Field(min_length=1, max_length=NAME), AfterValidator(plain)]
NewName = ClassName
NodeName = Annotated[str, Field(min_length=1, max_length=4 * NAME)]
Shots = Annotated[list[NodeName], Field(min_length=1, max_length=SHOTS)]
Support = Annotated[dict[ClassName, Shots], Field(min_length=1, max_length=CLASSES)]
Asked = Annotated[list[NodeName], Field(max_length=NODES)]


class Body(BaseModel):
    """A field nobody knows is an error, and so is a number where a text belongs."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Put(Body):
    """A class: a few nodes that are in it."""

    support: Shots

    model_config = ConfigDict(json_schema_extra={"example": {"support": ["openvpn", "wireguard-tools"]}})


class Judging(Body):
    """How nodes are judged. A node is in none of the classes where being in any of them is less likely than `threshold`
    (0.5), unless the set is closed."""

    mode: Annotated[str, Field(pattern="^(inductive|transductive)$")] | None = None
    closed_set: bool = False
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None


class Classify(Judging):
    """Which nodes, into which classes, and how."""

    nodes: Annotated[Asked, Field(min_length=1)] | None = None
    all: bool = False
    support: Support | None = None
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


class Suggest(Body):
    """How many nodes to suggest for labelling; `exclude`: nodes that are in none of the classes, neither they nor what
    is like them; `known`: only nodes that the dataset has in one of these classes, so that its labels can answer."""

    count: Annotated[int, Field(ge=1, le=100)] = 10
    support: Support | None = None
    exclude: Asked = []
    known: bool = False

    model_config = ConfigDict(json_schema_extra={"example": {"count": 5}})


class NewNode(Body):
    """A node that the network does not have yet."""

    node: NewName
    attributes: Annotated[dict[str, FiniteFloat], Field(max_length=WORDS)] = {}
    edges: Annotated[list[NodeName], Field(max_length=EDGES)] = []


class Attach(Body):
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


class Progress(Judging):
    """Nodes whose class is known beside those that the dataset knows; a class of another name is another class."""

    truth: Annotated[dict[ClassName, Asked], Field(max_length=CLASSES)] = {}

    model_config = ConfigDict(json_schema_extra={"example": {}})


def limits() -> dict[str, Any]:
    return {"classes": CLASSES, "shots": SHOTS, "nodes": NODES}
