"""The routes. Each is one call of the `Desk`, or of its `Moment`; a refusal is a status and a sentence."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
import prometheus_client as prometheus
from fastapi import Depends, FastAPI, Header, Query, Request, Response
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
from fewnode.service.access import BUG, Access, Health, Rules, refusal
from fewnode.service.desk import Conflict, Desk, PreconditionFailed
from fewnode.service.map import map_file
from fewnode.service.moment import Moment
from fewnode.service.network import NotFound
from fewnode.service.search import read_list
from fewnode.service.table import as_cell

STATIC = Path(__file__).parent / "static"
PACKED = 1_000
"""Bytes from which an answer is sent compressed to those who take it: maps, lists of nodes, files of the page."""
STATUS: dict[type[FewnodeError], tuple[int, str]] = {
    NotFound: (404, "search for it with GET /api/search?search= or list GET /api/classes"),
    Conflict: (409, "GET /api/classes has every class, GET /api/journal every change"),
    PreconditionFailed: (412, "read GET /api/classes again and repeat the change"),
    FewnodeError: (422, "correct the request and send it again"),
}
KINDS = {"csv": "text/csv", "json": "application/json", "parquet": "application/vnd.apache.parquet"}
COLUMNS = ("number", "when", "by", "what", "undone")
Version = Annotated[str | None, Header(alias="If-Match")]
"""Make a change only if nothing else has changed since."""
How = Annotated[b.AsJudged, Query()]
Rows = Annotated[str, Query(max_length=20_000, pattern=r"^\d{1,9}(,\d{1,9})*$")]


class Service:
    """The application and what it is made of. The desk comes when the model is loaded."""

    def __init__(self, rules: Rules) -> None:
        self.rules, self.health, self.registry = rules, Health(), prometheus.CollectorRegistry()
        self._desk: Desk | None = None
        self.app = Access(_routes(self), rules, self.health, self.registry)
        for name, what, value in (
            ("ready", "Whether new requests are welcome.", lambda: self.health.ready and not self.health.leaving),
            ("peak_memory_bytes", "Most memory ever resident.", peak_memory),
            ("nodes", "Nodes of the network.", lambda: self.now.network.n),
            ("attached_nodes", "Nodes that came later.", lambda: self.now.network.n_attached),
            ("classes", "Registered classes.", lambda: len(self.now.state.classes)),
            ("changes", "Changes that were made.", lambda: self.desk.log.total),
        ):
            prometheus.Gauge(f"fewnode_{name}", what, registry=self.registry).set_function(value)

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
    for part in (_there, _changes, _questions, _files):
        part(app, service)
    for error in (FewnodeError, RequestValidationError, ValidationError, HTTPException, OSError, Exception):
        app.add_exception_handler(error, _refused)
    return app


def _there(app: FastAPI, service: Service) -> None:
    get, post = (partial(verb, response_model_exclude_unset=True) for verb in (app.get, app.post))

    @get("/api/model", response_model=a.Model, summary="The model, its network, and what it can do")
    def model() -> Any:
        return {**service.now.model(), "reload": service.desk.reloaded}

    @post("/api/now", response_model=a.Now, summary="All that the page shows of a class, in one answer")
    def look(body: b.Look) -> Any:
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
    def attributes(search: b.Text = "", limit: b.Limit = 50) -> Any:
        return service.now.search.attributes.listed(search, limit)

    @get("/api/columns", response_model=a.Columns, summary="What a new node can be given by")
    def columns() -> Any:
        return service.now.columns()

    @get("/api/names", response_model=dict[str, list[str]], summary="Names of nodes by their rows in map.bin")
    def names(rows: Rows) -> Any:
        return service.now.names([int(row) for row in rows.split(",")])


def _changes(app: FastAPI, service: Service) -> None:
    get, put, delete, post = (
        partial(verb, response_model_exclude_unset=True) for verb in (app.get, app.put, app.delete, app.post)
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
    def put_class(name: str, body: b.PutClass, version: Version = None) -> Any:
        return service.desk.put_class(name, body, version)

    @delete("/api/classes/{name:path}", response_model=a.Kept, summary="Forget a class")
    def delete_class(name: str, by: b.Who | None = None, version: Version = None) -> Any:
        return service.desk.delete_class(name, by, version)

    @post("/api/answers", response_model=a.Kept, summary="Whether nodes are in a class; all answers, or none")
    def answers(body: b.GivenAnswers, version: Version = None) -> Any:
        return service.desk.answer(body, version)

    @post("/api/undo", response_model=a.Kept, summary="Undo the last change that is not undone")
    def undo(body: b.Signed, version: Version = None) -> Any:
        return service.desk.step(True, body.by, version)

    @post("/api/redo", response_model=a.Kept, summary="Make the change again that was undone last")
    def redo(body: b.Signed, version: Version = None) -> Any:
        return service.desk.step(False, body.by, version)

    @get("/api/journal", response_model=a.Journal, summary="Every change in a sentence; the newest first")
    def journal(limit: b.Limit = 50, offset: b.Offset = 0) -> Any:
        return service.desk.journal(limit, offset)

    @post("/api/nodes", response_model=a.Answer, summary="Attach new nodes and classify them; nothing is trained")
    def attach(body: b.Attach, version: Version = None) -> Any:
        return service.desk.attach(body, version)

    @post("/api/reload", response_model=a.Reloaded, summary="Read the dataset again; classes and answers are kept")
    def reload(body: b.Signed) -> Any:
        return service.desk.reload()


def _questions(app: FastAPI, service: Service) -> None:
    get, post = (partial(verb, response_model_exclude_unset=True) for verb in (app.get, app.post))

    @post("/api/classify", response_model=a.Answer, summary="Classify nodes, with reasons")
    def classify(body: b.Classify) -> Any:
        return service.now.classify(body)

    @post("/api/next", response_model=a.Questions, summary="What to ask somebody next, and why")
    def ask(body: b.NextQuestion) -> Any:
        return service.now.next(body)

    @post("/api/lists", response_model=a.ReadList, summary="Read a pasted list of nodes; nothing is changed")
    def pasted(body: b.GivenList) -> Any:
        return read_list(service.now.network, body.text)

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
        kind = KINDS.get(name.rsplit(".", 1)[-1], "application/octet-stream")
        return Response(content, headers={"content-disposition": f'attachment; filename="{name}"'}, media_type=kind)

    @app.get("/api/export/labels.csv", summary="Every node with its class and probabilities")
    def label_table(how: How) -> Response:
        return file("labels.csv", service.now.table(how).judged.to_csv().encode())

    @app.get("/api/export/claims.{kind}", summary="The list of claims as csv, json or parquet")
    def claims_file(kind: Literal["csv", "json", "parquet"], wanted: Annotated[b.ListClaims, Query()]) -> Response:
        return file(f"claims.{kind}", service.now.claims_file(wanted, kind))

    @app.get("/api/export/journal.{kind}", summary="Every change with who and when, as csv or json")
    def journal_file(kind: Literal["csv", "json"]) -> Response:
        journal = service.desk.journal(-1, 0)
        if kind == "json":
            return file("journal.json", orjson.dumps({name: journal[name] for name in ("version", "entries")}))
        rows = [[as_cell(entry[name]) for name in COLUMNS] for entry in journal["entries"]]
        return file("journal.csv", csv_text([COLUMNS, *rows]).encode())

    @app.get("/api/export/{table}.csv", summary="`support` or `classes`, as `fewnode predict` takes them")
    def given_table(table: Literal["support", "classes"]) -> Response:
        return file(f"{table}.csv", service.now.support_csv() if table == "support" else service.now.classes_csv())

    @app.get("/api/map.bin", summary="Every node's place on the map and known class, as numbers")
    def map_of_nodes() -> Response:
        now = service.now
        return file("map.bin", map_file(now.network.data, now.network.xy, now.version))

    @app.get("/api/map/claims.bin", summary="Which class claims each node, a byte a node in the order of map.bin")
    def map_claims(how: How) -> Response:
        return file("claims.bin", service.now.map_claims(how))

    @app.get("/metrics", summary="Counts and times for Prometheus")
    def metrics() -> Response:
        return Response(prometheus.generate_latest(service.registry), media_type=prometheus.CONTENT_TYPE_LATEST)

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return FileResponse(STATIC / "index.html")

    app.mount("/static", StaticFiles(directory=STATIC, check_dir=False))


async def _refuse_unknown(request: Request) -> None:
    """A misspelt word of an address is an error, as a field that nobody knows is; else it would count as not given."""
    if "if-none-match" in request.headers and request.url.path.startswith("/api/"):
        raise FewnodeError("If-None-Match is not heeded here; If-Match is")
    if request.query_params and (route := request.app.openapi()["paths"].get(request.scope["route"].path_format)):
        told = route[request.method.lower()].get("parameters", ())
        known = [parameter["name"] for parameter in told if parameter["in"] == "query"]
        if unknown := next((name for name in request.query_params if name not in known), None):
            raise FewnodeError(f"query: {unknown[:60]!r} is not known here{closest(unknown, known)}")


async def _refused(_: Request, error: Exception) -> Response:
    """Every refusal has the same form, whoever refuses."""
    match error:
        case FewnodeError():
            status, hint = next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)
            return refusal(status, str(error), hint)
        case RequestValidationError() | ValidationError():
            first = error.errors()[0]
            if first["type"] == "json_invalid":
                return refusal(400, "the body is not JSON", "send one JSON object in UTF-8")
            parts = [str(part) for part in first["loc"] if part not in ("body", "query")]
            place = ".".join(part if part.isprintable() else ascii(part) for part in parts)[:300]
            told = f"{place}: {first['msg']}" if place else str(first["msg"])
            return refusal(422, told, "see /openapi.json for what a request may say")
        case HTTPException():
            hints = {
                404: "see /openapi.json for what there is",
                405: "see /openapi.json for the methods of this address",
            }
            hint = hints.get(error.status_code, "correct the request and send it again")
            return refusal(error.status_code, str(error.detail).lower(), hint, **(error.headers or {}))
        case OSError():  # without the file's place, which is nobody else's business
            why = error.strerror or type(error).__name__
            return refusal(507, f"the change could not be kept: {why}", "nothing was changed; see to the disk")
    return refusal(*BUG)
