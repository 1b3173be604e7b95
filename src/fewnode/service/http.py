"""The routes. Each is one call of the `Desk`, or of its `Moment`; a refusal is a status and a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
from fastapi import Body, Depends, FastAPI, Header, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware

import fewnode
from fewnode._system.memory import peak_memory
from fewnode._system.sheets import csv_text
from fewnode.errors import FewnodeError, closest
from fewnode.service import answers as a
from fewnode.service import bodies as b
from fewnode.service.access import BUG, Access, Health, Metrics, Rules
from fewnode.service.desk import Conflict, Desk, NearDuplicate, NothingLeft, PreconditionFailed
from fewnode.service.moment import Moment
from fewnode.service.network import NotFound
from fewnode.service.table import as_cell

STATIC = Path(__file__).parent / "static"
PACKED = 1_000
"""Bytes from which an answer is sent compressed to those who take it: maps, lists of nodes, files of the page."""
STATUS: dict[type[FewnodeError], tuple[int, str]] = {
    NotFound: (404, "search for it with GET /api/search?search= or list GET /api/classes"),
    Conflict: (409, "take it out of that class first"),
    NothingLeft: (409, "GET /api/journal has every change"),
    NearDuplicate: (409, "use the class that is there, or another name"),
    PreconditionFailed: (412, "read GET /api/classes again and repeat the change"),
    FewnodeError: (422, "correct the request and send it again"),
}
KINDS = {
    "csv": "text/csv",
    "json": "application/json",
    "parquet": "application/vnd.apache.parquet",
    "bin": "application/octet-stream",
}
Version = Annotated[str | None, Header(alias="If-Match")]
"""Make a change only if nothing else has changed since."""
By = Annotated[b.Who | None, Query()]
"""Who asks for a change, where there is no body to say it in."""
Limit = Annotated[int, Query(ge=1, le=1000)]
Offset = Annotated[int, Query(ge=0, le=1 << 40)]
Text = Annotated[str, Query(max_length=200)]
ROWS = r"^\d{1,9}(,\d{1,9})*$"
How = Annotated[b.AsJudged, Query()]


class Service:
    """The application and what it is made of. The desk comes when the model is loaded."""

    def __init__(self, rules: Rules) -> None:
        self.rules, self.health, self.metrics = rules, Health(), Metrics()
        self._desk: Desk | None = None
        self.app = Access(_routes(self), rules, self.health, self.metrics)
        ready = "Whether new requests are welcome."
        self.metrics.gauge("ready", ready, lambda: float(self.health.ready and not self.health.leaving))
        self.metrics.gauge("peak_memory_bytes", "Most memory ever resident.", peak_memory)
        self.metrics.gauge("nodes", "Nodes of the network.", lambda: self.now.network.n)
        self.metrics.gauge("attached_nodes", "Nodes that came later.", lambda: self.now.network.n_attached)
        self.metrics.gauge("classes", "Registered classes.", lambda: len(self.now.state.classes))
        self.metrics.gauge("changes", "Changes that were made.", lambda: self.desk.log.total)

    @property
    def desk(self) -> Desk:
        assert self._desk is not None, "nobody gets past the access before"  # noqa: S101 # nosec B101
        return self._desk

    @property
    def now(self) -> Moment:
        return self.desk.now

    def open(self, desk: Desk) -> None:
        self._desk = desk
        self.health.ready = True


def _routes(service: Service) -> FastAPI:
    app = FastAPI(
        title="fewnode",
        version=fewnode.__version__,
        description="Recognise new classes of nodes in a network from a handful of examples.",
        docs_url=None,
        redoc_url=None,
        dependencies=[Depends(_refuse_unknown)],
        responses={422: {"model": a.Refusal}},
    )
    app.add_middleware(GZipMiddleware, minimum_size=PACKED, compresslevel=1)
    _there(app, service)
    _changes(app, service)
    _questions(app, service)
    _files(app, service)
    _errors(app)
    return app


def _there(app: FastAPI, service: Service) -> None:
    get, post = (partial(each, response_model_exclude_unset=True) for each in (app.get, app.post))

    @app.get("/health/live", tags=["health"], summary="Whether the process answers; no token needed")
    def live() -> dict[str, bool]:
        return {"live": True}

    @app.get("/health/ready", tags=["health"], summary="200 if requests are welcome, else 503")
    def ready() -> dict[str, bool]:
        return {"ready": True}

    @get("/api/model", response_model=a.Model, summary="The model, its network, and what it can do")
    def model() -> Any:
        return {**service.now.model(), "reload": service.desk.reloaded}

    @post("/api/now", response_model=a.Now, summary="All that the page shows of a class, in one answer")
    def look(body: Annotated[b.Look, Body()]) -> Any:
        return service.desk.look(body)

    @get("/api/version", response_model=a.Version, summary="Whether anything has changed, for who asks often")
    def version() -> Any:
        now = service.now
        layout = None if now.network.picture is None else now.network.picture.how
        return {"version": now.version, "reloading": service.desk.reloaded.running, "layout": layout}

    @app.get("/api/search", response_model=a.Found, summary="Nodes by name, by words, by an attribute, or near one")
    def search(wanted: Annotated[b.Wanted, Query()]) -> Any:
        return service.now.search.find(wanted)

    @get("/api/nodes/{node:path}", response_model=a.NodeDetails, summary="One node: class, attributes, neighbours")
    def node(node: str) -> Any:
        return service.now.search.about(service.now.network.row(node, NotFound))

    @get("/api/attributes", response_model=a.Attributes, summary="The attributes that nodes can be searched by")
    def attributes(search: Text = "", limit: Limit = 50) -> Any:
        return service.now.search.attributes.listed(search, limit)

    @get("/api/columns", response_model=a.Columns, summary="What a new node can be given by")
    def columns() -> Any:
        return service.now.columns()

    @get("/api/names", response_model=dict[str, list[str]], summary="Names of nodes by their rows in map.bin")
    def names(rows: Annotated[str, Query(max_length=20_000, pattern=ROWS)]) -> Any:
        return service.now.names([int(row) for row in rows.split(",")])


def _changes(app: FastAPI, service: Service) -> None:
    get, put, delete, post = (
        partial(each, response_model_exclude_unset=True) for each in (app.get, app.put, app.delete, app.post)
    )

    @get("/api/classes", response_model=a.Classes, summary="The registered classes")
    def classes() -> Any:
        now = service.now
        return {"version": now.version, "classes": now.class_list()}

    @get("/api/classes/{name:path}", response_model=a.ClassNow, summary="One class, with β of its examples")
    def one_class(name: str) -> Any:
        now = service.now
        return {**now.one_class(name), "version": now.version}

    @put("/api/classes/{name:path}", response_model=a.ClassNow, summary="A class as it is from now on")
    def put_class(name: str, body: Annotated[b.PutClass, Body()], version: Version = None) -> Any:
        return service.desk.put_class(name, body, version)

    @delete("/api/classes/{name:path}", response_model=a.Kept, summary="Forget a class")
    def delete_class(name: str, by: By = None, version: Version = None) -> Any:
        return service.desk.delete_class(name, by, version)

    @post("/api/answers", response_model=a.Kept, summary="Whether nodes are in a class; all answers, or none")
    def answers(body: Annotated[b.GivenAnswers, Body()], version: Version = None) -> Any:
        return service.desk.answer(body, version)

    @post("/api/undo", response_model=a.Kept, summary="Undo the last change that is not undone")
    def undo(body: Annotated[b.TakeBack, Body()], version: Version = None) -> Any:
        return service.desk.step(True, body.by, version)

    @post("/api/redo", response_model=a.Kept, summary="Make the change again that was undone last")
    def redo(body: Annotated[b.TakeBack, Body()], version: Version = None) -> Any:
        return service.desk.step(False, body.by, version)

    @get("/api/journal", response_model=a.Journal, summary="Every change in a sentence; the newest first")
    def journal(limit: Limit = 50, offset: Offset = 0) -> Any:
        return service.desk.journal(limit, offset)

    @post("/api/nodes", response_model=a.Answer, summary="Attach new nodes and classify them; nothing is trained")
    def attach(body: Annotated[b.Attach, Body()], version: Version = None) -> Any:
        return service.desk.attach(body, version)

    @post("/api/reload", response_model=a.Reloaded, summary="Read the dataset again; classes and answers are kept")
    def reload(body: Annotated[b.Reload, Body()]) -> Any:
        return service.desk.reload()


def _questions(app: FastAPI, service: Service) -> None:
    get, post = (partial(each, response_model_exclude_unset=True) for each in (app.get, app.post))

    @post("/api/classify", response_model=a.Answer, summary="Classify nodes, with reasons")
    def classify(body: Annotated[b.Classify, Body()]) -> Any:
        return service.now.classify(body)

    @post("/api/next", response_model=a.Questions, summary="What to ask somebody next, and why")
    def ask(body: Annotated[b.NextQuestion, Body()]) -> Any:
        return service.now.next(body)

    @post("/api/lists", response_model=a.ReadList, summary="Read a pasted list of nodes; nothing is changed")
    def read_list(body: Annotated[b.GivenList, Body()]) -> Any:
        return service.now.read_list(body)

    @get("/api/claims", response_model=a.ClaimPage, summary="What the classes claim: sorted, filtered, a page of it")
    def claims(wanted: Annotated[b.PageOfClaims, Query()]) -> Any:
        return service.now.claims(wanted)

    @get("/api/trust", response_model=a.Trust, summary="What to trust of the classes")
    def trust(wanted: Annotated[b.AskTrust, Query()]) -> Any:
        return service.now.trust(wanted)

    @get("/api/why/{node:path}", response_model=a.Why, summary="What speaks for a node in a class, and against it")
    def why(node: str, label: Annotated[str | None, Query(alias="class", max_length=b.MAX_NAME)] = None) -> Any:
        return service.now.why(node, label)


def _files(app: FastAPI, service: Service) -> None:
    def file(name: str, content: bytes) -> Response:
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        return Response(content, media_type=KINDS[name.rsplit(".", 1)[-1]], headers=headers)

    @app.get("/api/export/support.csv", summary="The table that `fewnode predict --support` takes")
    def support_table() -> Response:
        return file("support.csv", service.now.support_csv())

    @app.get("/api/export/classes.csv", summary="The table that `fewnode predict --classes` takes")
    def class_table() -> Response:
        return file("classes.csv", service.now.classes_csv())

    @app.get("/api/export/labels.csv", summary="Every node with its class and probabilities")
    def label_table(how: How) -> Response:
        return file("labels.csv", service.now.labels_csv(how))

    @app.get("/api/export/claims.{kind}", summary="The list of claims as csv, json or parquet")
    def claims_file(kind: Literal["csv", "json", "parquet"], wanted: Annotated[b.ListClaims, Query()]) -> Response:
        return file(f"claims.{kind}", service.now.claims_file(wanted, kind))

    @app.get("/api/export/journal.{kind}", summary="Every change with who and when, as csv or json")
    def journal_file(kind: Literal["csv", "json"]) -> Response:
        found = service.desk.journal(-1, 0)
        names = ("number", "when", "by", "what", "undone")
        rows = [names, *([as_cell(each[name]) for name in names] for each in found["entries"])]
        told = {"version": found["version"], "entries": found["entries"]}
        return file(f"journal.{kind}", csv_text(rows).encode() if kind == "csv" else orjson.dumps(told))

    @app.get("/api/map.bin", summary="Every node's place on the map and known class, as numbers")
    def map_file() -> Response:
        return file("map.bin", service.now.map_file())

    @app.get("/api/map/claims.bin", summary="Which class claims each node, a byte a node in the order of map.bin")
    def map_claims(how: How) -> Response:
        return file("claims.bin", service.now.map_claims(how))

    @app.get("/metrics", summary="Counts and times for Prometheus")
    def metrics() -> Response:
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return FileResponse(STATIC / "index.html", headers={"cache-control": "no-cache"})

    app.mount("/static", _Static(directory=STATIC, check_dir=False))


async def _refuse_unknown(request: Request) -> None:
    """A misspelt word of an address is an error, as a field that nobody knows is; else it would count as not given."""
    if not request.url.path.startswith("/api/"):
        return
    if "if-none-match" in request.headers:
        raise FewnodeError("If-None-Match is not heeded here; If-Match is")
    if request.query_params:
        told = request.app.openapi()["paths"][request.scope["route"].path_format][request.method.lower()]
        known = [each["name"] for each in told.get("parameters", ()) if each["in"] == "query"]
        if unknown := next((name for name in request.query_params if name not in known), None):
            raise FewnodeError(f"query: {unknown[:60]!r} is not known here{closest(unknown, known)}")


class _Static(StaticFiles):
    """Files of the page; asked for again each time, so that a new release is not mixed with an old one."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers["cache-control"] = "no-cache"
        return response


def _errors(app: FastAPI) -> None:
    """Every refusal has the same form, whoever refuses."""

    def said(status: int, error: str, hint: str, headers: Mapping[str, str] | None = None) -> Response:
        told = orjson.dumps({"error": error, "hint": hint})
        return Response(told, status, media_type="application/json", headers=dict(headers or {}))

    @app.exception_handler(FewnodeError)
    async def user_error(_: Request, error: FewnodeError) -> Response:
        status, hint = next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)
        return said(status, str(error), hint)

    @app.exception_handler(RequestValidationError)
    @app.exception_handler(ValidationError)
    async def invalid(_: Request, error: RequestValidationError | ValidationError) -> Response:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            return said(400, "the body is not JSON", "send one JSON object in UTF-8")
        parts = [str(part) for part in first["loc"] if part not in ("body", "query")]
        place = ".".join(part if part.isprintable() else ascii(part) for part in parts)[:300]
        told = f"{place}: {first['msg']}" if place else str(first["msg"])
        return said(422, told, "see /openapi.json for what a request may say")

    @app.exception_handler(HTTPException)
    async def refused(_: Request, error: HTTPException) -> Response:
        hints = {404: "see /openapi.json for what there is", 405: "see /openapi.json for the methods of this address"}
        hint = hints.get(error.status_code, "correct the request and send it again")
        return said(error.status_code, str(error.detail).lower(), hint, error.headers)

    @app.exception_handler(Exception)
    async def bug(_: Request, __: Exception) -> Response:
        return Response(orjson.dumps(BUG), 500, media_type="application/json")

    @app.exception_handler(OSError)
    async def machine(_: Request, error: OSError) -> Response:
        why = error.strerror or type(error).__name__  # and not where: the file's place is nobody else's business
        return said(507, f"the change could not be kept: {why}", "nothing was changed; see to the disk")
