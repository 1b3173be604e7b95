"""Checkpoints that a training continues from with the same bits."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from numpy.typing import NDArray
from safetensors.numpy import save as safetensors_bytes

from fewnode._system.files import atomic_write, one_line
from fewnode.errors import FewnodeError
from fewnode.formats.directory import need_shapes, read_safetensors
from fewnode.train import Adam, History, Journal, Point, Weights, copied, overwrite

CHECKPOINT = "checkpoint.safetensors"


@dataclass(frozen=True)
class Checkpoints(Journal):
    """One safetensors file after each validation, its state and checksum in the header."""

    directory: Path
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What a checkpoint must agree on to be continued."""

    def within(self, part: str) -> Self:
        return replace(self, directory=self.directory / part, settings={**self.settings, "part": part}, part=part)

    def save(self, weights: Weights, optimizer: Adam, history: History, best: Weights) -> None:
        parts = {"model": weights, "best": best, "adam": optimizer.state()}
        arrays = {f"{part}.{name}": array for part, named in parts.items() for name, array in named.items()}
        state = json.dumps({"settings": self.settings, "history": asdict(history)}, sort_keys=True)
        # One header entry: two are written in an order of their own, and equal states would get unequal bytes.
        blob = safetensors_bytes(arrays, {"fewnode": digest(state, arrays) + state})
        with atomic_write(self.directory / CHECKPOINT) as file:
            file.write(blob)

    def resume(self, weights: Weights, optimizer: Adam) -> tuple[History, Weights]:
        path = self.directory / CHECKPOINT
        if not path.exists():
            return super().resume(weights, optimizer)
        strings, arrays = read_safetensors(path)
        claimed, text = strings.get("fewnode", "")[:64], strings.get("fewnode", "")[64:]
        if claimed != digest(text, arrays):
            raise FewnodeError(f"{path}: damaged, its checksum does not match; start again in another directory")
        parts = {"model": weights, "best": copied(weights), "adam": optimizer.state()}
        try:
            state = json.loads(text)
            need_same_settings(path, state["settings"], self.settings)
            points = [Point(**point) for point in state["history"]["points"]]
            ours = {f"{part}.{name}": array for part, named in parts.items() for name, array in named.items()}
            need_shapes(arrays, {name: array.shape for name, array in ours.items()})
            overwrite(ours, arrays)
            return History(points, state["history"]["stopped"], part=self.part), parts["best"]
        except (KeyError, TypeError, ValueError, RuntimeError, AttributeError, RecursionError) as error:
            raise FewnodeError(f"{path}: not a checkpoint of this training ({one_line(error)})") from None


def need_same_settings(path: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse to go on with what was trained in another way."""
    asked = json.loads(json.dumps(dict(now)))
    for key in sorted(asked.keys() | before.keys()):
        if before.get(key) != asked.get(key):
            told = f"{path}: was trained with {key} = {before.get(key)!r}, not {asked.get(key)!r}"
            raise FewnodeError(f"{told}; resume with the same options")


def digest(state: str, arrays: Mapping[str, NDArray[Any]]) -> str:
    """The checksum of a checkpoint: of its state and of each array."""
    checksum = hashlib.sha256(state.encode())
    for name in sorted(arrays):
        checksum.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode())
        checksum.update(arrays[name].tobytes())
    return checksum.hexdigest()
