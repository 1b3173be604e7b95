from pathlib import Path

import numpy as np
import pytest

import fewnode
from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.model.estimator import Estimator
from fewnode.nodes import classes
from fewnode.train import History


@pytest.fixture(scope="module", name="model")
def _model(planted: Dataset) -> Estimator:
    return fewnode.Estimator("gpn", way=3, shot=2, episodes=30).fit(planted)


def test_labels_may_be_any_names(model: Estimator, planted: Dataset) -> None:
    support, query = [0, 1, 2, 3], [4, 5, 6]
    by_name = model.predict_proba(planted.graph, support, ["vpn", "mail", "vpn", "mail"], query)
    by_number = model.predict_proba(planted.graph, support, [1, 0, 1, 0], query)
    assert np.array_equal(by_name, by_number)
    assert by_name.shape == (3, 2)
    labels = model.predict(planted.graph, support, ["vpn", "mail", "vpn", "mail"], query)
    assert labels == [["mail", "vpn"][row.argmax()] for row in by_name]
    assert classes(["b", "a", "b"]) == ["a", "b"]
    assert classes([2, "a"]) == [2, "a"], "labels without an order are ordered by their text"


def test_beta_sums_to_one_a_class_and_the_nearest_support_node_of_a_support_node_is_itself(
    model: Estimator, planted: Dataset
) -> None:
    support, labels = [0, 1, 2, 3, 4], ["a", "a", "b", "b", "b"]
    why = model.explain(planted.graph, support, labels, [3, 0])
    assert why.beta[:2].sum() == pytest.approx(1)
    assert why.beta[2:].sum() == pytest.approx(1)
    assert why.nearest[:, 0].tolist() == [3, 0]


def test_a_model_is_never_overwritten(model: Estimator, tmp_path: Path) -> None:
    model.save(tmp_path / "run")
    with pytest.raises(FewnodeError, match="there is a model already"):
        model.save(tmp_path / "run")


def test_an_unfitted_model_says_so(planted: Dataset, tmp_path: Path) -> None:
    with pytest.raises(FewnodeError, match="not fitted"):
        fewnode.Estimator("gpn").predict_proba(planted.graph, [0], ["a"], [1])
    with pytest.raises(FewnodeError, match="not fitted"):
        fewnode.Estimator("gpn").save(tmp_path / "run")


def test_unknown_methods_and_options_suggest_the_closest() -> None:
    with pytest.raises(FewnodeError, match=r"unknown method 'gnp' .did you mean 'gpn'"):
        Estimator("gnp")
    with pytest.raises(FewnodeError, match=r"no option 'droput' .did you mean 'dropout'"):
        Estimator("gpn", droput=0.1)


def test_another_width_is_refused(model: Estimator, star: fewnode.Graph) -> None:
    with pytest.raises(FewnodeError, match="2 attributes, the model reads 90"):
        model.predict_proba(star, [0], ["a"], [1])


# --- following a training -----------------------------------------------------------------------------------------

SHORT = {"way": 3, "shot": 2, "episodes": 25, "dropout": 0.5}


def test_each_step_is_told_once_with_its_loss(planted: Dataset) -> None:
    told: list[tuple[int, float, int]] = []
    model = Estimator("gpn", **SHORT).fit(
        planted, on_step=lambda step, loss, history: told.append((step, loss, history.done))
    )
    steps, losses, validated = zip(*told, strict=True)
    assert steps == tuple(range(1, 26))
    assert np.isfinite(losses).all()
    assert validated == (*[0] * 9, *[10] * 10, *[20] * 5, 25), "the step that a validation follows is told after it"
    points = model.trained_["history"]["points"]
    assert [np.mean(losses[low:high]) for low, high in ((0, 10), (10, 20), (20, 25))] == pytest.approx(
        [point["loss"] for point in points]
    )


@pytest.mark.parametrize("method", ["gpn", "sgc"])
def test_what_is_raised_at_a_step_ends_the_training(method: str, planted: Dataset, tmp_path: Path) -> None:
    told: list[int] = []

    def stop(step: int, loss: float, history: History) -> None:
        told.append(step)
        if step == 13:
            raise KeyboardInterrupt

    model = Estimator(method, **SHORT)
    with pytest.raises(KeyboardInterrupt):
        model.fit(planted, on_step=stop, checkpoints=tmp_path)
    assert (told, model.needs_fit) == (list(range(1, 14)), True)
    continued = Estimator(method, **SHORT).fit(
        planted, on_step=lambda step, *_: told.append(step), checkpoints=tmp_path
    )
    assert told[13:] == list(range(11, 26)), "from the last validation"
    whole = Estimator(method, **SHORT).fit(planted)
    assert continued.trained_["history"] == whole.trained_["history"]
    with pytest.raises(FewnodeError, match="was trained with way = 3, not 2"):
        Estimator(method, **{**SHORT, "way": 2}).fit(planted, checkpoints=tmp_path)
