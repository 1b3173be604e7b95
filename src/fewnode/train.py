"""Meta-training (Algorithm 1): episodes, early stopping on validation classes, checkpoints that resume exactly.

What step t does depends on the weights and on (seed, t) alone, so a resumed run continues with the same bits.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
import torch
from safetensors.torch import save as safetensors_bytes
from torch import Tensor, nn
from torch.optim.adam import adam

from fewnode.episodes import Episode, EpisodeSampler
from fewnode.errors import FewnodeError
from fewnode.io import atomic_write, one_line, read_safetensors

CHECKPOINT = "checkpoint.safetensors"
VALID_TASKS = 50


class Diverged(FewnodeError):
    """The loss is no longer a number. The last checkpoint, and the weights that validated best, are intact."""


@dataclass(frozen=True)
class Schedule:
    """How long and how fast to train; the defaults are the paper's (section 5.1)."""

    episodes: int = 300
    lr: float = 0.005
    weight_decay: float = 5e-4
    validate_every: int = 10
    patience: int = 10
    """Validations without a better one before training stops."""


@dataclass(frozen=True)
class Point:
    """One validation: the mean loss of the episodes since the last one, and the accuracy on validation classes."""

    episode: int
    loss: float
    accuracy: float


@dataclass
class History:
    points: list[Point] = field(default_factory=list)
    stopped: bool = False

    @property
    def best(self) -> Point:
        """The first of the most accurate points."""
        return max(self.points, key=lambda point: point.accuracy)

    @property
    def done(self) -> int:
        """How many episodes have been trained on."""
        return self.points[-1].episode if self.points else 0


@dataclass(frozen=True)
class Journal:
    """Where a training writes to: a directory for checkpoints, and a function that is told each step."""

    directory: Path | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What a checkpoint must agree on to be continued."""
    report: Callable[[str, int, float, History], None] = lambda part, episode, loss, history: None
    part: str = ""

    def within(self, part: str) -> Journal:
        """The journal of one part of a training that has several."""
        below = self.directory / part if self.directory else None
        return Journal(below, {**self.settings, "part": part}, self.report, part)


QUIET = Journal()


T = TypeVar("T")
M = TypeVar("M", bound=nn.Module)
T_co = TypeVar("T_co", covariant=True)


class Tasks(Protocol[T_co]):
    """What a step is trained on: `tasks[t]`, a function of (seed, t). An `EpisodeSampler` gives one episode."""

    @property
    def seed(self) -> int: ...

    def __getitem__(self, t: int, /) -> T_co: ...


@dataclass(frozen=True)
class MetaBatches:
    """`size` episodes a step, none twice."""

    train: EpisodeSampler
    size: int

    @property
    def seed(self) -> int:
        return self.train.seed

    def __getitem__(self, t: int, /) -> list[Episode]:
        return [self.train[t * self.size + i] for i in range(self.size)]


Gradients: TypeAlias = tuple[float, list[Tensor]]
"""A loss, and its gradient by each parameter."""


@runtime_checkable
class Team(Protocol):
    """Who computes a step: this process alone, or several, each with a batch of episodes of its own.

    Share s of step t is batch t · size + s, so that `size` workers see in a step what one worker would see that takes
    batches `size` times as large: the mean of their gradients is the gradient of the mean loss.
    """

    @property
    def size(self) -> int: ...

    @property
    def leads(self) -> bool:
        """Whether this process validates, reports and writes."""

    def begin(self, rate: float) -> None:
        """A training with that rate of dropout starts."""

    def mean(self, model: nn.Module, own: Callable[[int], Gradients], t: int) -> Gradients:
        """The mean over the shares of step t; `own` computes one here."""

    def agree(self, value: float) -> float:
        """What the leader says."""


class _Alone:
    size, leads = 1, True

    def begin(self, rate: float) -> None:
        pass

    def mean(self, model: nn.Module, own: Callable[[int], Gradients], t: int) -> Gradients:
        return own(0)

    def agree(self, value: float) -> float:
        return value


ALONE = _Alone()


def meta_train(
    model: nn.Module,
    loss_of: Callable[[T], Tensor],
    validate: Callable[[], float],
    train: Tasks[T],
    schedule: Schedule,
    journal: Journal,
    team: Team = ALONE,
) -> History:
    """Minimise the loss of Eq. (14) episode by episode; leave the weights that validated best in `model`."""
    optimizer = Adam(list(model.parameters()), schedule.lr, schedule.weight_decay)
    history, best = _resume(model, optimizer, journal)
    while history.done < schedule.episodes and not history.stopped:
        start = history.done
        stop = min(start + schedule.validate_every, schedule.episodes)
        losses = []
        for t in range(start, stop):
            try:
                losses.append(step(model, optimizer, loss_of, train, t, team))
            except Diverged:
                model.load_state_dict(best)
                raise
            if team.leads:
                journal.report(journal.part, t + 1, losses[-1], history)
        model.eval()
        accuracy = team.agree(validate() if team.leads else 0.0)
        history.points.append(Point(stop, float(np.mean(losses)), accuracy))
        if history.best.episode == stop:
            best = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        history.stopped = stop - history.best.episode >= schedule.patience * schedule.validate_every
        if team.leads:
            _save(model, optimizer, history, best, journal)
            journal.report(journal.part, stop, losses[-1], history)
    model.load_state_dict(best)
    model.eval()
    return history


def step(
    model: nn.Module,
    optimizer: Adam,
    loss_of: Callable[[T], Tensor],
    train: Tasks[T],
    t: int,
    team: Team = ALONE,
) -> float:
    """Episode t, or those that the team has in step t."""
    value, gradients = team.mean(model, lambda share: gradients_of(model, loss_of, train, t * team.size + share), t)
    if not math.isfinite(value):
        raise Diverged(f"training diverged: the loss of episode {t + 1} is {value}; try a smaller learning rate")
    if not all(math.isfinite(float(gradient.sum())) for gradient in gradients):
        raise Diverged(f"training diverged: a gradient of episode {t + 1} is not finite; try a smaller learning rate")
    optimizer.step(gradients)
    return value


def gradients_of(model: nn.Module, loss_of: Callable[[T], Tensor], train: Tasks[T], k: int) -> Gradients:
    """Of batch k. Dropout draws from a stream of its own, a function of (seed, k), and leaves the caller's alone."""
    if not model.training:
        model.train()
    with seeded(train.seed, k):
        loss = loss_of(train[k])
    value, found = float(loss.detach()), getattr(loss.grad_fn, "gradients", None)
    if found is not None:  # it was computed with the loss; to ask the engine for it takes as long as a small episode
        return value, found
    parameters = list(model.parameters())
    if not math.isfinite(value):
        return value, [torch.zeros_like(parameter) for parameter in parameters]
    return value, list(torch.autograd.grad(loss, parameters, allow_unused=True, materialize_grads=True))


class Adam:
    """Adam (Kingma & Ba, 2015) with L2 weight decay: torch's fused kernel, without torch's optimizer classes.

    Building one of those imports the compiler, which takes longer than the first hundred episodes.
    """

    def __init__(self, parameters: list[nn.Parameter], lr: float, weight_decay: float) -> None:
        self.parameters, self.lr, self.weight_decay = parameters, lr, weight_decay
        self.state = {
            "exp_avg": [torch.zeros_like(p, requires_grad=False) for p in parameters],
            "exp_avg_sq": [torch.zeros_like(p, requires_grad=False) for p in parameters],
            "step": [torch.zeros((), device=p.device) for p in parameters],
        }

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor]) -> None:
        adam(
            params=list(self.parameters),
            grads=list(gradients),
            exp_avgs=self.state["exp_avg"],
            exp_avg_sqs=self.state["exp_avg_sq"],
            max_exp_avg_sqs=[],
            state_steps=self.state["step"],
            lr=self.lr,
            weight_decay=self.weight_decay,
            beta1=0.9,
            beta2=0.999,
            eps=1e-8,
            amsgrad=False,
            maximize=False,
            fused=True,
        )

    def flat(self) -> dict[str, Tensor]:
        """The state as named tensors; writing to them is writing to the state."""
        return {f"{name}.{i}": tensor for name, tensors in self.state.items() for i, tensor in enumerate(tensors)}


@contextmanager
def seeded(*key: int) -> Iterator[None]:
    """Draws of torch inside depend on `key`, such as (seed, t), alone; the caller's stream is left as it was.

    `torch.manual_seed` would do, but without a GPU it keeps a stack trace of every call for later.
    """
    stream = int(np.random.SeedSequence(key).generate_state(1, np.uint64)[0] >> np.uint64(1))
    generators = [torch.default_generator, *(torch.cuda.default_generators if torch.cuda.is_initialized() else ())]
    before = [generator.get_state() for generator in generators]
    try:
        for generator in generators:
            generator.manual_seed(stream)
        yield
    finally:
        for generator, state in zip(generators, before, strict=True):
            generator.set_state(state)


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


def need_shapes(state: Mapping[str, Tensor], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse tensors of a file that are not exactly those, of these shapes."""
    if odd := sorted(state.keys() ^ shapes.keys()):
        raise ValueError(f"tensor {odd[0]!r} is {'missing' if odd[0] in shapes else 'not one of the method'}")
    for name, shape in shapes.items():
        if tuple(state[name].shape) != shape:
            raise ValueError(f"tensor {name!r} is {tuple(state[name].shape)}, expected {shape}")


# --- checkpoints: one safetensors file, its state and checksum in the header --------------------------------------


def _save(model: nn.Module, optimizer: Adam, history: History, best: Mapping[str, Tensor], journal: Journal) -> None:
    if journal.directory is None:
        return
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    tensors |= {f"best.{name}": tensor for name, tensor in best.items()}
    tensors |= {f"adam.{name}": tensor for name, tensor in optimizer.flat().items()}
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    state = json.dumps({"settings": journal.settings, "history": asdict(history)}, sort_keys=True)
    # One header entry: with two, safetensors writes them in an order of its own, and equal states get unequal bytes.
    blob = safetensors_bytes(tensors, {"fewnode": _digest(state, tensors) + state})
    with atomic_write(journal.directory / CHECKPOINT) as file:
        file.write(blob)


def _resume(model: nn.Module, optimizer: Adam, journal: Journal) -> tuple[History, dict[str, Tensor]]:
    """Bring model and optimiser to where the last checkpoint left them; without one, to the beginning."""
    fresh = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    if journal.directory is None or not (journal.directory / CHECKPOINT).exists():
        return History(), fresh
    path = journal.directory / CHECKPOINT
    header, tensors = read_safetensors(path)
    claimed, text = header.get("fewnode", "")[:64], header.get("fewnode", "")[64:]
    if claimed != _digest(text, tensors):
        raise FewnodeError(f"{path}: damaged, its checksum does not match; start again in another directory")
    try:
        return _continued(path, json.loads(text), tensors, model, optimizer, journal)
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError, RecursionError) as error:
        raise FewnodeError(f"{path}: not a checkpoint of this training ({one_line(error)})") from None


def _continued(
    path: Path,
    state: dict[str, Any],
    tensors: Mapping[str, Tensor],
    model: nn.Module,
    optimizer: Adam,
    journal: Journal,
) -> tuple[History, dict[str, Tensor]]:
    agreed = json.loads(json.dumps(dict(journal.settings)))
    for key in sorted(agreed.keys() | state["settings"].keys()):
        then, now = state["settings"].get(key), agreed.get(key)
        if then != now:
            raise FewnodeError(f"{path}: was trained with {key} = {then!r}, not {now!r}; resume with the same options")
    points = [Point(**point) for point in state["history"]["points"]]
    model.load_state_dict(_part(tensors, "model."))
    saved = _part(tensors, "adam.")
    for name, tensor in optimizer.flat().items():
        tensor.copy_(saved[name])
    return History(points, state["history"]["stopped"]), _part(tensors, "best.")


def _part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _digest(state: str, tensors: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256(state.encode())
    for name in sorted(tensors):
        digest.update(f"{name} {tensors[name].dtype} {tuple(tensors[name].shape)}".encode())
        digest.update(tensors[name].numpy().tobytes())
    return digest.hexdigest()
