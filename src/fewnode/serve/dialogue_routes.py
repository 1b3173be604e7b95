"""The routes of question and answer, search, the list of claims and its exports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import Body, Depends, FastAPI, Header, Query, Response

from fewnode.serve.bodies import NAME
from fewnode.serve.dialogue_bodies import (
    AsJudged,
    AskAlerts,
    AskTrust,
    ExportClaims,
    GivenAnswers,
    GivenList,
    ListClaims,
    NextQuestion,
    PutLabel,
    TakeBack,
)
from fewnode.serve.snapshot import Condition

if TYPE_CHECKING:
    from fewnode.serve.app import Service


async def condition(
    if_match: Annotated[str | None, Header(alias="If-Match")] = None,
    if_none_match: Annotated[str | None, Header(alias="If-None-Match")] = None,
) -> Condition:
    return Condition(if_match, if_none_match)


Conditional = Annotated[Condition, Depends(condition)]
Limit = Annotated[int, Query(ge=1, le=1000)]
Text = Annotated[str, Query(max_length=200)]
Kind = Literal["csv", "json", "parquet"]
Judged = Annotated[AsJudged, Query()]
ROWS = r"^\d{1,9}(,\d{1,9})*$"
Offset = Annotated[int, Query(ge=0, le=1 << 40)]


def add_dialogue(app: FastAPI, service: Service) -> None:
    """Routes by which the service is told about nodes, and asks about them."""

    @app.post("/api/answers", summary="Say of nodes whether they are in a class; all answers are kept, or none")
    async def answers(body: Annotated[GivenAnswers, Body()], condition: Conditional) -> Response:
        return await service.aside(service.dialogue.answer, body, condition)

    @app.put("/api/labels/{node:path}", summary="Correct the label that the data has for a node")
    async def put_label(node: str, body: Annotated[PutLabel, Body()], condition: Conditional) -> Response:
        return await service.aside(service.dialogue.put_label, node, body, condition)

    @app.post("/api/undo", summary="Undo the last change that is not undone")
    async def undo(body: Annotated[TakeBack, Body()], condition: Conditional) -> Response:
        return await service.aside(service.dialogue.undo, body.by, condition)

    @app.post("/api/redo", summary="Make the change again that was undone last")
    async def redo(body: Annotated[TakeBack, Body()], condition: Conditional) -> Response:
        return await service.aside(service.dialogue.redo, body.by, condition)

    @app.get("/api/journal", summary="Every change in a sentence, with who and when; the newest first")
    async def journal(limit: Limit = 50, offset: Offset = 0) -> Response:
        return await service.aside(service.dialogue.journal, limit, offset)

    @app.post("/api/next", summary="What to ask somebody next, and why")
    async def ask(body: Annotated[NextQuestion, Body()]) -> Response:
        return await service.aside(service.dialogue.ask, body)

    @app.post("/api/lists", summary="Read a pasted list of nodes, or of nodes and classes; nothing is changed")
    async def read_list(body: Annotated[GivenList, Body()]) -> Response:
        return await service.aside(service.dialogue.read_list, body)

    @app.post("/api/claims", summary="What the classes claim: sorted, filtered, a page of it")
    async def claims(body: Annotated[ListClaims, Body()]) -> Response:
        return await service.aside(service.dialogue.claims, body)

    @app.get("/api/trust", summary="What to trust of the classes: members, precision by answers and by labels, a curve")
    async def trust(wanted: Annotated[AskTrust, Query()]) -> Response:
        return await service.aside(service.dialogue.trust, wanted)

    @app.get("/api/why/{node:path}", summary="What speaks for a node in a class, and what against it")
    async def why(node: str, label: Annotated[str | None, Query(alias="class", max_length=NAME)] = None) -> Response:
        return await service.aside(service.dialogue.why, node, label)

    @app.get("/api/alerts", summary="Nodes that were attached since a time and that a class claims")
    async def alerts(wanted: Annotated[AskAlerts, Query()]) -> Response:
        return await service.aside(service.dialogue.alerts, wanted)

    @app.get("/api/export/claims.{kind}", summary="The list of claims as csv, json or parquet")
    async def claims_file(kind: Kind, wanted: Annotated[ExportClaims, Query()]) -> Response:
        return await service.file(f"claims.{kind}", service.dialogue.claims_file, wanted.listed, kind)

    @app.get("/api/export/journal.{kind}", summary="Every change with who and when, as csv or json")
    async def journal_file(kind: Literal["csv", "json"]) -> Response:
        return await service.file(f"journal.{kind}", service.dialogue.journal_file, kind)


def add_map(app: FastAPI, service: Service) -> None:
    """Routes for who draws all nodes, or asks for new ones."""

    @app.get("/api/map.bin", summary="Every node's place on the map and known class, as numbers")
    async def map_file() -> Response:
        return await service.file("map.bin", service.catalogue.map_file)

    @app.get("/api/map/claims.bin", summary="Which class claims each node, a byte a node in the order of map.bin")
    async def map_claims(how: Judged) -> Response:
        return await service.file("claims.bin", service.dialogue.map_claims, how)

    @app.get("/api/names", summary="Names of nodes by their rows in map.bin")
    async def names(rows: Annotated[str, Query(max_length=20_000, pattern=ROWS)]) -> Response:
        return await service.looked(service.catalogue.names, [int(row) for row in rows.split(",")])

    @app.get("/api/columns", summary="What a new node can be given by")
    async def columns() -> Response:
        return await service.looked(service.catalogue.columns)

    @app.get("/api/examples", summary="Classes that the data knows, to try the page with, and a typical node of each")
    async def examples() -> Response:
        return await service.aside(service.catalogue.examples)
