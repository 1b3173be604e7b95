"""The routes of question and answer, search, the list of claims and its exports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import Body, Depends, FastAPI, Header, Query, Response

from fewnode.serve.bodies import GivenAnswers, NextQuestion, PutLabel, TakeBack
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
