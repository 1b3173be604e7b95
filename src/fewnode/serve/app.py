"""The routes. Each is one call into the `Session`; what a user can do wrong becomes a sentence and a status."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

from fastapi import Body, Depends, FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware

import fewnode
from fewnode.errors import FewnodeError, closest
from fewnode.serve.admission import Admission, Busy
from fewnode.serve.auth import BUG, AuthMiddleware, Health, Rules
from fewnode.serve.bodies import (
    Attach,
    ChangeEdges,
    Classify,
    Judging,
    MeasureProgress,
    PutClass,
    PutNode,
    Suggest,
    Who,
)
from fewnode.serve.catalogue import Catalogue
from fewnode.serve.dialogue import Dialogue
from fewnode.serve.dialogue_bodies import Wanted
from fewnode.serve.dialogue_routes import Conditional, Limit, Text, add_dialogue, add_map
from fewnode.serve.metrics import Metrics
from fewnode.serve.replies import CSV, KINDS, as_file, as_json
from fewnode.serve.session import Session
from fewnode.serve.snapshot import Conflict, NearDuplicate, NotFound, NothingLeft, PreconditionFailed

STATIC = Path(__file__).parent / "static"
AT_ONCE = 50_000
"""Pairs of nodes that are compared on the event loop; more of them go to the thread, and nobody waits for them."""
Name = Annotated[Who | None, Query()]
"""Who asks for a change, where there is no body to say it in."""
PACKED = 1_000
"""Bytes from which an answer is sent compressed to those who take it: maps, lists of nodes, files of the page."""
STATUS: dict[type[FewnodeError], tuple[int, str]] = {
    NotFound: (404, "search for it with GET /api/nodes?search= or list GET /api/classes"),
    Conflict: (409, "take it out of that class first"),
    NothingLeft: (409, "GET /api/journal has every change"),
    NearDuplicate: (409, "use the class that is there, or another name"),
    PreconditionFailed: (412, "read GET /api/classes again and repeat the change"),
    FewnodeError: (422, "correct the request and send it again"),
}


class Service:
    """The application and what it is made of. The session comes when the model is loaded."""

    def __init__(self, rules: Rules, admission: Admission | None = None) -> None:
        self.rules, self.admission, self.health, self.metrics = rules, admission or Admission(), Health(), Metrics()
        self._session: Session | None = None
        self.app = AuthMiddleware(_routes(self), rules, self.admission, self.health, self.metrics)

    @property
    def session(self) -> Session:
        assert self._session is not None, "nobody gets past the authentication before"  # noqa: S101 # nosec B101
        return self._session

    def open(self, session: Session) -> None:
        self._session, self.dialogue, self.catalogue = session, Dialogue(session), Catalogue(session)
        self.health.ready = True

    async def aside(self, work: Callable[..., Any], *args: Any) -> Response:
        """What takes long, or changes something."""
        return as_json(await self.admission.aside(work, *args))

    async def looked(self, work: Callable[..., Any], *args: Any) -> Response:
        """What needs all of the network, which after a change takes a moment to make."""
        return as_json(work(*args)) if self.session.now.online.is_whole else await self.aside(work, *args)

    async def file(self, name: str, work: Callable[..., bytes], *args: Any) -> Response:
        return as_file(await self.admission.aside(work, *args), name, KINDS[name.rsplit(".", 1)[-1]])

    def gauges(self) -> dict[str, tuple[str, float]]:
        now = self.session.now
        return {
            "ready": ("Whether new requests are welcome.", float(self.health.ready and not self.health.leaving)),
            "nodes": ("Nodes of the network.", now.online.n),
            "attached_nodes": ("Nodes attached since the model was trained.", now.n_attached),
            "classes": ("Registered classes.", len(now.state.classes)),
            "changes": ("Changes of classes, nodes and edges.", now.state.changes),
            "drift": ("Share of neighbourhoods that changed since all nodes were embedded.", now.online.drift),
            "short_queue": ("Requests in hand or waiting for their turn.", self.admission.in_hand),
            "long_queue": ("Long requests in hand or waiting.", self.admission.in_thread),
        }


def _routes(service: Service) -> FastAPI:
    app = FastAPI(
        title="fewnode",
        version=fewnode.__version__,
        description="Recognise new classes of nodes in a network from a handful of examples.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
        dependencies=[Depends(_refuse_unknown)],
    )
    app.add_middleware(GZipMiddleware, minimum_size=PACKED, compresslevel=1)
    admission, aside, looked = service.admission, service.aside, service.looked

    @app.post("/api/classify", summary="Classify nodes, with reasons", openapi_extra=_takes(Classify))
    async def classify(request: Request) -> Response:
        body = Classify.model_validate_json(await request.body())
        session = service.session
        if session.now.online.anchor.embeds and session.cost(body) <= AT_ONCE:
            return as_json(session.classify(body))
        return await aside(session.classify, body)

    @app.get("/health/live", tags=["health"], summary="Whether the process answers; no token needed")
    async def live() -> Response:
        return as_json({"live": True})

    @app.get("/health/ready", tags=["health"], summary="200 if requests are welcome, else 503")
    async def ready() -> Response:
        return as_json({"ready": True})

    @app.get("/api/model", summary="The model, its network, and what it can do")
    async def model() -> Response:
        return await looked(service.catalogue.about)

    @app.get("/api/nodes", summary="Search nodes by name, by words, by an attribute, or near another node")
    async def nodes(wanted: Annotated[Wanted, Query()]) -> Response:
        return await (looked if wanted.is_quick else aside)(service.catalogue.nodes, wanted)

    @app.get("/api/attributes", summary="The attributes that nodes can be searched by")
    async def attributes(search: Text = "", limit: Limit = 50) -> Response:
        return await aside(service.catalogue.attributes, search, limit)

    @app.get("/api/nodes/{node:path}", summary="One node: class, telling attributes, neighbours, place on the map")
    async def node(node: str) -> Response:
        return await looked(service.catalogue.node, node)

    @app.post("/api/nodes", summary="Attach new nodes and classify them; nothing is trained")
    async def attach(body: Annotated[Attach, Body()], condition: Conditional) -> Response:
        return await aside(service.session.attach, body, condition)

    @app.put("/api/nodes/{node:path}", summary="Replace what is known of a node, or attach it where there is none")
    async def put_node(node: str, body: Annotated[PutNode, Body()], condition: Conditional) -> Response:
        return await aside(service.session.put_node, node, body, condition)

    @app.delete("/api/nodes/{node:path}", summary="Delete a node and its edges; not while it supports a class")
    async def delete_node(node: str, condition: Conditional, by: Name = None) -> Response:
        return await aside(service.session.delete_node, node, condition, by)

    @app.post("/api/edges", summary="Add and remove edges between nodes that are there")
    async def edges(body: Annotated[ChangeEdges, Body()], condition: Conditional) -> Response:
        return await aside(service.session.change_edges, body, condition)

    @app.get("/api/map", summary="Every node's embedding in two dimensions; labelled nodes first")
    async def plane(limit: Annotated[int, Query(ge=1, le=20_000)] = 4000) -> Response:
        return await looked(lambda: service.session.now.network.map(limit))

    @app.get("/api/classes", summary="The registered classes")
    async def classes() -> Response:
        return await looked(service.session.classes)

    @app.get("/api/classes/{name:path}", summary="One class: β of its support nodes, its prototype's place on the map")
    async def one_class(name: str) -> Response:
        return await looked(service.session.one_class, name)

    @app.put("/api/classes/{name:path}", summary="A class as it is from now on: by nodes, by a description, or both")
    async def put_class(name: str, body: Annotated[PutClass, Body()], condition: Conditional) -> Response:
        return await aside(service.session.put_class, name, body, condition)

    @app.delete("/api/classes/{name:path}", summary="Forget a class")
    async def delete_class(name: str, condition: Conditional, by: Name = None) -> Response:
        return await aside(service.session.delete_class, name, condition, by)

    @app.post("/api/suggest", summary="The nodes most worth labelling next")
    async def suggest(body: Annotated[Suggest, Body()]) -> Response:
        return await aside(service.session.suggest, body)

    @app.post("/api/progress", summary="How much of what the classes claim is right, by known labels")
    async def progress(body: Annotated[MeasureProgress, Body()]) -> Response:
        return await aside(service.session.progress, body)

    @app.get("/api/export/support.csv", summary="The table that `fewnode predict --support` takes")
    async def support_table() -> Response:
        return as_file(service.session.support_csv(), "support.csv", CSV)

    @app.get("/api/export/classes.csv", summary="The table that `fewnode predict --classes` takes")
    async def class_table() -> Response:
        return as_file(service.session.classes_csv(), "classes.csv", CSV)

    @app.get("/api/export/labels.csv", summary="Every node with its class and probabilities")
    async def label_table(
        mode: str | None = None, closed_set: bool = False, threshold: float | None = None
    ) -> Response:
        how = Judging(mode=mode, closed_set=closed_set, threshold=threshold)
        return as_file(await admission.aside(service.session.labels_csv, how), "labels.csv", CSV)

    add_dialogue(app, service)
    add_map(app, service)

    @app.get("/metrics", summary="Counts and times for Prometheus")
    async def metrics() -> Response:
        return Response(service.metrics.text(service.gauges()), media_type="text/plain; version=0.0.4; charset=utf-8")

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return FileResponse(STATIC / "index.html", headers={"cache-control": "no-cache"})

    app.mount("/static", _Static(directory=STATIC, check_dir=False))
    _errors(app, service)
    return app


async def _refuse_unknown(request: Request) -> None:
    """A misspelt word of an address is an error, as a field that nobody knows is; else it would count as not given."""
    if not request.query_params or not request.url.path.startswith("/api/"):
        return
    told = request.app.openapi()["paths"][request.scope["route"].path_format][request.method.lower()]
    known = [each["name"] for each in told.get("parameters", ()) if each["in"] == "query"]
    if unknown := next((name for name in request.query_params if name not in known), None):
        raise FewnodeError(f"query: {unknown[:60]!r} is not known here{closest(unknown, known)}")


def _takes(body: type[BaseModel]) -> dict[str, Any]:
    """For the route that has to be fast: it reads its body itself, which takes a third of FastAPI's time."""
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": body.model_json_schema()}}}}


class _Static(StaticFiles):
    """Files of the page; asked for again each time, so that a new release is not mixed with an old one."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers["cache-control"] = "no-cache"
        return response


def _errors(app: FastAPI, service: Service) -> None:
    """Every refusal has the same form, whoever refuses."""

    def said(status: int, error: str, hint: str, headers: Mapping[str, str] | None = None) -> Response:
        response = as_json({"error": error, "hint": hint}, status)
        response.headers.update(headers or {})
        return response

    @app.exception_handler(FewnodeError)
    async def user_error(_: Request, error: FewnodeError) -> Response:
        status, hint = next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)
        return said(status, _without_place(str(error), service.session.now.online.anchor.model.method), hint)

    @app.exception_handler(RequestValidationError)
    @app.exception_handler(ValidationError)
    async def invalid(_: Request, error: RequestValidationError | ValidationError) -> Response:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            return said(400, "the body is not JSON", "send one JSON object in UTF-8")
        parts = [str(part) for part in first["loc"] if part != "body"]
        place = ".".join(part if part.isprintable() else ascii(part) for part in parts)[:300]
        told = f"{place}: {first['msg']}" if place else str(first["msg"])
        return said(422, told, "see /openapi.json for what a request may say")

    @app.exception_handler(HTTPException)
    async def refused(_: Request, error: HTTPException) -> Response:
        hints = {404: "see /openapi.json for what there is", 405: "see /openapi.json for the methods of this address"}
        hint = hints.get(error.status_code, "correct the request and send it again")
        return said(error.status_code, str(error.detail).lower(), hint, error.headers)

    @app.exception_handler(Busy)
    async def busy(_: Request, __: Busy) -> Response:
        return said(429, "too many long requests at once", "come again in some seconds", {"retry-after": "2"})

    @app.exception_handler(Exception)
    async def bug(_: Request, __: Exception) -> Response:
        return as_json(BUG, 500)

    @app.exception_handler(OSError)
    async def machine(_: Request, error: OSError) -> Response:
        why = error.strerror or type(error).__name__  # and not where: the file's place is nobody else's business
        return said(507, f"the change could not be kept: {why}", "nothing was changed; see to the disk")


def _without_place(text: str, method: str) -> str:
    """A method of one's own is called by its file, which is named without its folder."""
    return text.replace(method, method.rsplit("/", 1)[-1])
