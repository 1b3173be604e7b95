"""What the manifests of models and datasets may hold: a stranger can compute checksums, so each field is checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Generic, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model, model_validator

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
R = TypeVar("R", bound=BaseModel)


class Record(BaseModel, strict=True, extra="forbid"):
    """Fields of exactly these types; others are refused."""


class Parts(Record, Generic[T]):
    """Classes of a split, by id or by name."""

    train: T
    valid: T
    test: T


class BlockRecord(Record):
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
    blocks: Annotated[list[BlockRecord], Field(max_length=10_000)]
    class_names: list[Text]
    split: Parts[Classes]
    info: dict[str, Any]
    encoding: dict[str, Any] | None
    relations: Annotated[list[RelationRecord], Field(max_length=1000)]
    kind_names: Annotated[list[Text], Field(max_length=1000)]


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
    method: Annotated[str, Field(min_length=1, max_length=4096, pattern=r"^[^\x00-\x1f]*$")]
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


_Word = Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f]*$")]
_Whole = Annotated[int, Field(ge=-(1 << 31), le=1 << 31)]
_OPTIONS: dict[Any, tuple[str, ...]] = {
    bool: ("meta", "first_order", "weighted_degree", "mix", "sharpen", "metric", "ridge", "centre"),
    _Whole: (
        "steps",
        "episodes",
        "patience",
        "batch",
        "dimensions",
        "walks",
        "length",
        "window",
        "negatives",
        "epochs",
    ),
    Constant: ("inner_lr", "lr", "weight_decay", "eps", "teleport", "p", "q"),
    _Word: ("encoder", "distance", "scaling", "formulation", "keep", "engine"),
    Constant | _Word: ("dropout",),
    Annotated[list[Annotated[int, Field(ge=1, le=1 << 20)]], Field(max_length=64)]: ("hidden",),
    Annotated[int, Field(ge=1, le=1 << 16)]: ("rank",),
    Literal["all", "attributes", "structure"]: ("views",),
    Annotated[float, Field(ge=1e-9, le=1e9)]: ("c",),
    Annotated[str, Field(pattern=r"^(cpu|cuda(:\d+)?|mps)$")]: ("device",),
}
_fields: dict[str, Any] = {name: (kind, None) for kind, names in _OPTIONS.items() for name in names}
StoredOptions = create_model("StoredOptions", __config__=ConfigDict(strict=True, extra="allow"), **_fields)
"""Options of the methods of the house. A method refuses what it does not have, and what is out of its own range."""


def check_manifest(model: type[R], meta: Mapping[str, Any], place: str = "") -> R:
    """The record, or a sentence about a field: whoever made the file made its checksum, too."""
    try:
        return model.model_validate(meta)
    except RecursionError:
        raise FewnodeError("a manifest is nested too deep") from None
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
    where = place + ".".join(str(part)[:40] for part in fault["loc"])
    found = f", found {str(fault['input'])[:60]!r}" if not isinstance(fault["input"], (dict, list)) else ""
    raise FewnodeError(f"{f'{where}: ' if where else ''}{fault['msg'].removeprefix('Value error, ')}{found}")
