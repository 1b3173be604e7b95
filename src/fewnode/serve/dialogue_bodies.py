"""What a request may say where people answer, search and look through lists. Checked as in `bodies`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, model_validator

from fewnode.serve.bodies import ANSWERS, NAME, Asked, Body, ClassName, Judging, NodeName, Signed


class OneAnswer(Body):
    """Whether a node is in a class: an example, a counter-example or, with null, no longer answered for."""

    node: NodeName
    label: ClassName = Field(alias="class")
    verdict: Literal["yes", "no"] | None


class GivenAnswers(Signed):
    """Answers, all or none. `check`: they were asked as a sample of what the classes claim, and not to learn from."""

    answers: Annotated[list[OneAnswer], Field(min_length=1, max_length=ANSWERS)]
    check: bool = False

    model_config = ConfigDict(
        json_schema_extra={
            "example": {"answers": [{"node": "strongswan", "class": "vpn", "verdict": "yes"}], "by": "Ann"}
        }
    )


class PutLabel(Signed):
    """What the data should say of a node: a class, or null if it is not known."""

    label: ClassName | None = Field(alias="class")

    model_config = ConfigDict(json_schema_extra={"example": {"class": "mail", "by": "Ann"}})


class TakeBack(Signed):
    """Who undoes or redoes a change."""

    model_config = ConfigDict(json_schema_extra={"example": {}})


class NextQuestion(Judging):
    """How many questions, for one class or for all of them; `exclude`: nodes that are not to be asked about."""

    label: ClassName | None = Field(default=None, alias="class")
    count: Annotated[int, Field(ge=1, le=100)] = 5
    exclude: Asked = Field(default=[])

    model_config = ConfigDict(json_schema_extra={"example": {"class": "vpn", "count": 5}})


class GivenList(Body):
    """A list as somebody has it: a node a line, or a node and a class, with or without a header."""

    text: Annotated[str, Field(min_length=1, max_length=1 << 20)]

    model_config = ConfigDict(json_schema_extra={"example": {"text": "node,class\nopenvpn,vpn\n"}})


def _of_what(wanted: ClaimFilter | Wanted | ExportClaims) -> None:
    if wanted.value and not wanted.attribute:
        raise ValueError('"value" is of an attribute; give "attribute" too')


class ClaimFilter(Body):
    """Which claims are listed: those of a name or a text, of an attribute, unanswered, attached later."""

    text: Annotated[str, Field(max_length=NAME)] = ""
    attribute: Annotated[str, Field(max_length=4 * NAME)] = ""
    value: Annotated[str, Field(max_length=NAME)] = ""
    unanswered: bool = False
    attached: bool = False

    @model_validator(mode="after")
    def _whole(self) -> ClaimFilter:
        _of_what(self)
        return self


class ListClaims(Judging):
    """A page of what the classes claim. `sort`: probability, member, degree, node, class or an attribute."""

    label: ClassName | None = Field(default=None, alias="class")
    sort: Annotated[str, Field(min_length=1, max_length=4 * NAME)] = "probability"
    descending: bool = True
    filter: ClaimFilter | None = None
    group: bool = False
    offset: Annotated[int, Field(ge=0, le=1 << 40)] = 0
    limit: Annotated[int, Field(ge=1, le=1000)] = 50
    attributes: Annotated[list[Annotated[str, Field(max_length=4 * NAME)]], Field(max_length=20)] = Field(default=[])

    model_config = ConfigDict(json_schema_extra={"example": {"class": "vpn", "threshold": 0.6, "group": True}})


class Wanted(Body):
    """Which nodes are searched for: all that is given must hold. A number is wanted as `12`, `>12` or `10..20`."""

    search: Annotated[str, Field(max_length=200)] = ""
    where: Literal["name", "text", "all"] = Field(default="name", alias="in")
    attribute: Annotated[str, Field(max_length=4 * NAME)] = ""
    value: Annotated[str, Field(max_length=200)] = ""
    near: Annotated[str, Field(max_length=4 * NAME)] = ""
    offset: Annotated[int, Field(ge=0, le=1 << 40)] = 0
    limit: Annotated[int, Field(ge=1, le=1000)] = 50

    model_config = ConfigDict(strict=False)

    @model_validator(mode="after")
    def _whole(self) -> Wanted:
        _of_what(self)
        return self

    @property
    def is_quick(self) -> bool:
        """Whether it is only names that are looked through."""
        return self.where == "name" and not self.attribute and not self.near


class AsJudged(Judging):
    """`Judging` in an address, where all is text."""

    model_config = ConfigDict(strict=False)


class AskTrust(AsJudged):
    """All classes, or one."""

    label: ClassName | None = Field(default=None, alias="class")


class AskAlerts(AsJudged):
    """Since when nodes must have come."""

    since: Annotated[str, Field(max_length=40)]


class ExportClaims(AsJudged):
    """Which list of claims a file has: that of a page with the same words."""

    label: ClassName | None = Field(default=None, alias="class")
    sort: Annotated[str, Field(min_length=1, max_length=4 * NAME)] = "probability"
    descending: bool = True
    text: Annotated[str, Field(max_length=NAME)] = ""
    attribute: Annotated[str, Field(max_length=4 * NAME)] = ""
    value: Annotated[str, Field(max_length=NAME)] = ""
    unanswered: bool = False
    attached: bool = False
    attributes: Annotated[list[Annotated[str, Field(max_length=4 * NAME)]], Field(max_length=20)] = Field(default=[])

    @model_validator(mode="after")
    def _whole(self) -> ExportClaims:
        _of_what(self)
        return self

    @property
    def listed(self) -> ListClaims:
        given = self.model_dump(by_alias=True)
        chosen = {name: given.pop(name) for name in ClaimFilter.model_fields}
        return ListClaims(**given, filter=ClaimFilter(**chosen))
