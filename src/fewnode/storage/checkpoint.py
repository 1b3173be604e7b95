"""Weights on disk: checkpoints that a training continues from with the same bits, and networks from files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self, TypeVar

import torch
from safetensors.torch import save as safetensors_bytes
from torch import Tensor, nn

from fewnode.adam import Adam
from fewnode.errors import FewnodeError
from fewnode.machine.files import atomic_write, one_line
from fewnode.storage.io import read_safetensors
from fewnode.train import History, Journal, Point

CHECKPOINT = "checkpoint.safetensors"
M = TypeVar("M", bound=nn.Module)


@dataclass(frozen=True)
class Checkpoints(Journal):
    """One safetensors file after each validation, its state and checksum in the header."""

    directory: Path
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What a checkpoint must agree on to be continued."""

    def within(self, part: str) -> Self:
        return replace(self, directory=self.directory / part, settings={**self.settings, "part": part}, part=part)

    def save(self, model: nn.Module, optimizer: Adam, history: History, best: Mapping[str, Tensor]) -> None:
        tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
        tensors |= {f"best.{name}": tensor for name, tensor in best.items()}
        tensors |= {f"adam.{name}": tensor for name, tensor in optimizer.flat().items()}
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        state = json.dumps({"settings": self.settings, "history": asdict(history)}, sort_keys=True)
        # One header entry: two are written in an order of their own, and equal states would get unequal bytes.
        blob = safetensors_bytes(tensors, {"fewnode": digest(state, tensors) + state})
        with atomic_write(self.directory / CHECKPOINT) as file:
            file.write(blob)

    def resume(self, model: nn.Module, optimizer: Adam) -> tuple[History, dict[str, Tensor]]:
        path = self.directory / CHECKPOINT
        if not path.exists():
            return super().resume(model, optimizer)
        header, tensors = read_safetensors(path)
        claimed, text = header.get("fewnode", "")[:64], header.get("fewnode", "")[64:]
        if claimed != digest(text, tensors):
            raise FewnodeError(f"{path}: damaged, its checksum does not match; start again in another directory")
        try:
            return self._continued(path, json.loads(text), tensors, model, optimizer)
        except (KeyError, TypeError, ValueError, RuntimeError, AttributeError, RecursionError) as error:
            raise FewnodeError(f"{path}: not a checkpoint of this training ({one_line(error)})") from None

    def _continued(
        self, path: Path, state: dict[str, Any], tensors: Mapping[str, Tensor], model: nn.Module, optimizer: Adam
    ) -> tuple[History, dict[str, Tensor]]:
        need_same_settings(path, state["settings"], self.settings)
        points = [Point(**point) for point in state["history"]["points"]]
        model.load_state_dict(_part(tensors, "model."))
        saved = _part(tensors, "adam.")
        for name, tensor in optimizer.flat().items():
            tensor.copy_(saved[name])
        return History(points, state["history"]["stopped"], self.part), _part(tensors, "best.")


def need_same_settings(path: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse to go on with what was trained in another way."""
    asked = json.loads(json.dumps(dict(now)))
    for key in sorted(asked.keys() | before.keys()):
        if before.get(key) != asked.get(key):
            told = f"{path}: was trained with {key} = {before.get(key)!r}, not {asked.get(key)!r}"
            raise FewnodeError(f"{told}; resume with the same options")


def _part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def digest(state: str, tensors: Mapping[str, Tensor]) -> str:
    """The checksum of a checkpoint: of its state and of each tensor."""
    found = hashlib.sha256(state.encode())
    for name in sorted(tensors):
        found.update(f"{name} {tensors[name].dtype} {tuple(tensors[name].shape)}".encode())
        found.update(tensors[name].numpy().tobytes())
    return found.hexdigest()


# --- networks from files ------------------------------------------------------------------------------------------


def adopt(build: Callable[[], M], learned: Mapping[str, Tensor]) -> M:
    """The network that `build` makes, with weights from a file.

    Its shapes are compared before it is made: a file that claims to need another one costs no memory.
    """
    with torch.device("meta"):
        expected = build().state_dict()
    need_shapes(learned, {name: tuple(tensor.shape) for name, tensor in expected.items()})
    if odd := [name for name, tensor in learned.items() if tensor.dtype != expected[name].dtype]:
        raise ValueError(f"tensor {odd[0]!r} is {learned[odd[0]].dtype}, expected {expected[odd[0]].dtype}")
    network = build()
    network.load_state_dict(learned)
    network.eval()
    return network


def need_shapes(state: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse tensors of a file that are not exactly those, of these shapes."""
    if odd := sorted(state.keys() ^ shapes.keys()):
        raise ValueError(f"tensor {odd[0]!r} is {'missing' if odd[0] in shapes else 'not one of the method'}")
    for name, shape in shapes.items():
        if tuple(state[name].shape) != shape:
            raise ValueError(f"tensor {name!r} is {tuple(state[name].shape)}, expected {shape}")
