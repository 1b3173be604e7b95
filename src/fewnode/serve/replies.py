"""Answers as they go over the wire: JSON, tables, and files of numbers."""

from __future__ import annotations

from typing import Any

import orjson
from fastapi import Response

CSV = "text/csv"
KINDS = {
    "csv": CSV,
    "json": "application/json",
    "parquet": "application/vnd.apache.parquet",
    "bin": "application/octet-stream",
}


def as_json(value: Any, status: int = 200) -> Response:
    return Response(orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY), status, media_type="application/json")


def as_file(content: str | bytes, name: str, kind: str) -> Response:
    return Response(content, media_type=kind, headers={"content-disposition": f'attachment; filename="{name}"'})
