"""A training is told to `logging`, and to real stores of TensorBoard and MLflow in a folder of their own."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import fewnode
from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError

SHORT = {"way": 3, "shot": 2, "episodes": 20, "dropout": 0.5}


def test_logging_under_one_name(planted: Dataset, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "fewnode"):
        fewnode.GPN(**SHORT).fit(planted)
    said = [record.getMessage() for record in caplog.records]
    assert {record.name for record in caplog.records} == {"fewnode"}
    assert said[0] == "fitting way=3, shot=2, episodes=20, dropout=0.5, method=gpn, data=planted, nodes=360"
    assert said[1].startswith("training episode 10: loss ")
    assert said[-1].startswith("fitted in ")


def test_nothing_is_printed_unless_asked(planted: Dataset, capsys: pytest.CaptureFixture[str]) -> None:
    fewnode.GPN(**SHORT).fit(planted)
    assert capsys.readouterr() == ("", "")
    fewnode.GPN(**SHORT).fit(planted, verbose=True)
    said = capsys.readouterr()
    assert said.out == ""
    assert "training  20/20  loss " in said.err
    assert "fitted in " in said.err


def test_tensorboard_reads_the_curve(planted: Dataset, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="the extra tensorboard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    model = fewnode.GPN(**SHORT).fit(planted, tensorboard=tmp_path)
    events = EventAccumulator(str(tmp_path)).Reload()
    accuracy = {event.step: event.value for event in events.Scalars("validation accuracy")}
    points = model.trained_["history"]["points"]
    assert accuracy == pytest.approx({point["episode"]: point["accuracy"] for point in points})
    assert {event.step for event in events.Scalars("loss")} == set(range(1, 21))
    assert "episodes | 20" in events.Tensors("settings/text_summary")[0].tensor_proto.string_val[0].decode()


@pytest.mark.filterwarnings("ignore")  # about MLflow's own code
def test_mlflow_has_a_finished_run_and_a_failed_one(planted: Dataset, tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow", reason="the extra mlflow is not installed")
    model = fewnode.GPN(**SHORT).fit(planted, mlflow=tmp_path)
    with pytest.raises(FewnodeError, match="diverged"):
        fewnode.GPN(**SHORT, lr=1e30).fit(planted, mlflow=tmp_path)
    client = mlflow.MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")
    failed, run = client.search_runs([client.get_experiment_by_name("fewnode").experiment_id])
    assert (run.info.status, failed.info.status) == ("FINISHED", "FAILED")
    assert run.data.params["method"] == "gpn"
    history = client.get_metric_history(run.info.run_id, "validation accuracy")
    points = model.trained_["history"]["points"]
    assert [(each.step, each.value) for each in history] == [(p["episode"], p["accuracy"]) for p in points]


@pytest.mark.parametrize(("option", "module"), [("tensorboard", "torch.utils.tensorboard"), ("mlflow", "mlflow")])
def test_what_is_not_installed_is_named(
    option: str, module: str, planted: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(FewnodeError, match=rf"{option} is not installed: pip install 'fewnode\[{option}\]'"):
        fewnode.GPN(**SHORT).fit(planted, **{option: tmp_path})
