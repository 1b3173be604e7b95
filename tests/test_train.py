from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save

from fewnode.dataset import Dataset
from fewnode.episodes import EpisodeSampler
from fewnode.errors import FewnodeError
from fewnode.formats.checkpoint import CHECKPOINT, Checkpoints, digest
from fewnode.methods.gpn import GPN
from fewnode.train import Adam, Gradients, Journal, Schedule, meta_train


class Killed(Exception):
    """Stands for the power going off in the middle of training."""


def fit(data: Dataset, journal: Journal, **options: object) -> GPN:
    train, valid = (EpisodeSampler(data, part, 3, 2, 4) for part in ("train", "valid"))
    return GPN(**{"episodes": 60, "dropout": 0.5, **options}).fit_in_steps(data.graph, train, valid, journal)


def kill_at(episode: int) -> Callable[..., None]:
    def on_step(step: int, loss: float, history: object) -> None:
        if step == episode:
            raise Killed

    return on_step


@pytest.mark.parametrize("killed", [1, 10, 37, 60])
def test_a_resumed_training_has_the_bits_of_an_uninterrupted_one(planted: Dataset, tmp_path: Path, killed: int) -> None:
    whole = fit(planted, Checkpoints(tmp_path / "whole"))
    with pytest.raises(Killed):
        fit(planted, Checkpoints(tmp_path / "parts", on_step=kill_at(killed)))
    torch.manual_seed(12345)  # the caller's own stream must not matter
    resumed = fit(planted, Checkpoints(tmp_path / "parts"))
    assert resumed.history_ == whole.history_
    for name, tensor in whole.state().items():
        assert np.array_equal(tensor, resumed.state()[name]), name
    ends = [(tmp_path / name / CHECKPOINT).read_bytes() for name in ("whole", "parts")]
    assert ends[0] == ends[1], "optimiser state and log included"


def test_a_checkpoint_of_other_options_is_refused(planted: Dataset, tmp_path: Path) -> None:
    fit(planted, Checkpoints(tmp_path, {"shot": 2, "data": "a"}), episodes=10)
    with pytest.raises(FewnodeError, match="was trained with shot = 2, not 3"):
        fit(planted, Checkpoints(tmp_path, {"shot": 3, "data": "a"}), episodes=10)


def test_a_damaged_checkpoint_is_refused(planted: Dataset, tmp_path: Path) -> None:
    fit(planted, Checkpoints(tmp_path), episodes=10)
    path = tmp_path / CHECKPOINT
    good = path.read_bytes()
    for place in np.random.default_rng(0).integers(0, len(good), 60):
        bad = bytearray(good)
        bad[place] ^= 4
        path.write_bytes(bad)
        with pytest.raises(FewnodeError, match=CHECKPOINT):
            fit(planted, Checkpoints(tmp_path), episodes=10)


@pytest.mark.parametrize("state", ["[]", "{", '{"settings": {}}', '{"settings": {}, "history": {"points": [{}]}}'])
def test_a_checkpoint_with_a_right_checksum_and_wrong_content_is_refused(
    planted: Dataset, tmp_path: Path, state: str
) -> None:
    tensors = {"model.w": np.zeros(1)}
    (tmp_path / CHECKPOINT).write_bytes(save(tensors, {"fewnode": digest(state, tensors) + state}))
    with pytest.raises(FewnodeError, match="not a checkpoint of this training"):
        fit(planted, Checkpoints(tmp_path), episodes=10)


class Scripted:
    """A model of one weight, which is its loss, whose validation accuracy follows a script."""

    def __init__(self, accuracies: list[float]) -> None:
        self.weights = {"w": np.ones(1, np.float32)}
        self.accuracies = iter(accuracies)
        self.validated: list[float] = []

    def gradients(self, k: int) -> Gradients:
        return float(self.weights["w"][0]), {"w": np.ones(1, np.float32)}

    def train(self, schedule: Schedule, journal: Journal, gradients: Callable[[int], Gradients] | None = None):
        return meta_train(self.weights, gradients or self.gradients, self.validate, schedule, journal)

    def validate(self) -> float:
        self.validated.append(float(self.weights["w"][0]))
        return next(self.accuracies)


def test_best_weights_are_kept_and_training_stops_early() -> None:
    script = Scripted([0.3, 0.6, 0.5, 0.6, 0.4])
    schedule = Schedule(episodes=1000, patience=3)
    history = script.train(schedule, Journal())
    assert (history.done, history.stopped, history.best.episode) == (50, True, 20), "a tie is no gain"
    assert script.weights["w"][0] == script.validated[1]


def test_adam_is_torchs() -> None:
    rng = np.random.default_rng(0)
    ours = {"a": rng.normal(size=(4, 3)).astype(np.float32), "b": rng.normal(size=3).astype(np.float32)}
    theirs = {name: torch.nn.Parameter(torch.tensor(array)) for name, array in ours.items()}
    adam, reference = Adam(ours, 0.01, 0.1), torch.optim.Adam(theirs.values(), 0.01, weight_decay=0.1)
    for _ in range(20):
        gradients = {name: rng.normal(size=array.shape).astype(np.float32) for name, array in ours.items()}
        adam.step(gradients)
        for name, gradient in gradients.items():
            theirs[name].grad = torch.from_numpy(gradient)
        reference.step()
    for name, array in ours.items():
        assert np.allclose(array, theirs[name].detach().numpy(), atol=1e-6)


def test_a_gradient_that_is_no_number_is_named_before_it_reaches_the_weights() -> None:
    script = Scripted([0.5] * 10)
    with pytest.raises(FewnodeError, match="gradient of episode 1 is not finite"):
        script.train(Schedule(), Journal(), lambda k: (0.0, {"w": np.full(1, np.inf, np.float32)}))
    assert np.isfinite(script.weights["w"]).all()


def test_diverging_training_names_the_episode_and_keeps_the_last_checkpoint(tmp_path: Path) -> None:
    script = Scripted([0.5] * 10)
    calls = iter(range(100))

    def gradients(k: int) -> Gradients:
        value, found = script.gradients(k)
        return value * (float("nan") if next(calls) == 13 else 1), found

    with pytest.raises(FewnodeError, match="loss of episode 14 is nan"):
        script.train(Schedule(), Checkpoints(tmp_path), gradients)
    assert script.weights["w"][0] == script.validated[0], "the last good weights are kept"
    fresh = Scripted([0.5] * 100)
    again = fresh.train(Schedule(episodes=20), Checkpoints(tmp_path))
    assert [point.episode for point in again.points] == [10, 20]
