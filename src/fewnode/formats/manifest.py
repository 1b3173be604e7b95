"""What the manifests of models and datasets may hold: a stranger can compute checksums, so each field is checked."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Annotated, Any, Generic, Literal, TypeAlias, TypeVar, Union

from pydantic import BaseModel, Field, TypeAdapter, ValidationError, model_validator

from fewnode.errors import FewnodeError

MAX_COUNT = 1 << 24
"""Attributes, ways, shots, classes."""
MAX_CONSTANT = 1e12
"""Of a calibration: a larger one was fitted to rounding errors."""

Count: TypeAlias = Annotated[int, Field(ge=0, le=MAX_COUNT)]
Large: TypeAlias = Annotated[int, Field(ge=0, le=1 << 53)]
Constant: TypeAlias = Annotated[float, Field(ge=-MAX_CONSTANT, le=MAX_CONSTANT)]
Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]
Text: TypeAlias = Annotated[str, Field(pattern=r"^[^\x00]*$")]
Digest: TypeAlias = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Classes: TypeAlias = Annotated[list[Annotated[int, Field(ge=0, le=1 << 20)]], Field(max_length=MAX_COUNT)]


T = TypeVar("T")


class Record(BaseModel, strict=True, extra="forbid"):
    """Fields of exactly these types; others are refused."""


class Parts(Record, Generic[T]):
    """Classes of a split, by id or by name."""

    train: T
    valid: T
    test: T


class Block(Record):
    kind: Literal["words", "numbers", "vector"]
    start: Count
    stop: Count
    name: Text


class RelationRecord(Record):
    name: Text
    directed: bool
    alone: bool


class DatasetManifest(Record):
    """`dataset.json`. What new rows are encoded by is checked when there are some."""

    format: Text
    sha256: dict[str, Digest]
    name: Text
    x_shape: Annotated[list[Annotated[int, Field(ge=0, le=1 << 40)]], Field(min_length=2, max_length=2)]
    blocks: Annotated[list[Block], Field(max_length=10_000)] = []
    class_names: list[Text]
    split: Parts[Classes]
    info: dict[str, Any]
    encoding: dict[str, Any] | None
    relations: Annotated[list[RelationRecord], Field(max_length=1000)] = []
    kind_names: Annotated[list[Text], Field(max_length=1000)] = []


class TrainedOn(Record):
    name: Text
    sha256: Digest
    nodes: Large
    edges: Large
    path: Text = ""


class Validated(Record):
    episode: Large
    loss: Annotated[float, Field(ge=-1e300, le=1e300)]
    accuracy: Share


class TrainingHistory(Record):
    points: list[Validated]
    stopped: bool
    engine: Text
    part: Text


class Temperature(Record):
    inductive: dict[str, Constant]
    transductive: dict[str, Constant]


class Trained(Record):
    """What training left in a model beside its arrays."""

    n_features: Count
    width: Count
    feature_names: list[Text] | None
    data: TrainedOn
    classes: Parts[list[Text]]
    history: TrainingHistory | None
    temperature: Temperature | None
    membership: dict[str, Constant] | None
    worth: Share
    validated: dict[str, Share]
    seconds: Annotated[float, Field(ge=0, le=1e12)]
    threads: Annotated[int, Field(ge=1, le=MAX_COUNT)]
    versions: dict[str, Text]


class ModelManifest(Record):
    """`model.json`."""

    format: Text
    sha256: dict[str, Digest]
    method: Annotated[Text, Field(min_length=1, max_length=4096)]
    options: dict[str, Any]
    way: Count
    shot: Count
    query: Count
    seed: Annotated[int, Field(ge=0, le=(1 << 63) - 1)]
    features: Literal["degree", "svd", "walks"] | None
    trained: Trained

    @model_validator(mode="after")
    def _fit_together(self) -> ModelManifest:
        width, names = self.trained.n_features, self.trained.feature_names
        if names is not None and len(names) != width:
            raise ValueError(f"{len(names)} names of attributes, expected {width}")
        if self.features is None and self.trained.width != width:
            raise ValueError(f"the method reads {self.trained.width} attributes, expected {width}")
        return self


def check_manifest(model: type[Record], meta: Mapping[str, Any]) -> None:
    """Refuse a manifest whose checksum is right, because a stranger made it, and whose content is not."""
    try:
        model.model_validate(meta)
    except (ValidationError, RecursionError) as error:
        raise _told("", error) from None


_WORD = Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f]*$")]
_KINDS: dict[str, Any] = {
    "bool": bool,
    "int": Annotated[int, Field(ge=-(1 << 31), le=1 << 31)],
    "float": Constant,
    "str": _WORD,
    "None": None,
    "Sequence[int]": Annotated[list[Annotated[int, Field(ge=1, le=1 << 20)]], Field(max_length=64)],
}
_RANGES: dict[str, Any] = {
    "rank": Annotated[int, Field(ge=1, le=1 << 16)],
    "views": Literal["all", "attributes", "structure"],
    "workers": Annotated[int, Field(ge=1, le=1024)] | None,
    "c": Annotated[float, Field(ge=1e-9, le=1e9)],
    "device": Annotated[str, Field(pattern=r"^(cpu|cuda(:\d+)?|mps)$")],
}
"""Of options whose range no method checks itself."""


def check_options(method: type, options: Mapping[str, Any]) -> None:
    """Refuse options of a file that are not of the types that a method of ours declares."""
    for name, parameter in inspect.signature(method).parameters.items():
        kinds = tuple(_KINDS[kind] for kind in str(parameter.annotation).split(" | ") if kind in _KINDS)
        if name in options and kinds:
            kind = _RANGES.get(name, Union[kinds])  # noqa: UP007  # made of what is in the tuple
            try:
                TypeAdapter(kind, config={"strict": True}).validate_python(options[name])
            except ValidationError as error:
                raise _told(f"options.{name} ", error) from None


def _told(place: str, error: Exception) -> FewnodeError:
    if not isinstance(error, ValidationError):
        return FewnodeError("a manifest is nested too deep")
    fault = error.errors(include_url=False)[0]
    where = place + ".".join(str(part)[:40] for part in fault["loc"])
    what = fault["msg"].removeprefix("Value error, ")
    found = f", found {str(fault['input'])[:60]!r}" if not isinstance(fault["input"], (dict, list)) else ""
    return FewnodeError(f"{where.strip() + ': ' if where.strip() else ''}{what}{found}")
