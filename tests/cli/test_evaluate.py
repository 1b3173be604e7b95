"""`fewnode evaluate --protocol all-classes`; what it says of a run is in `test_run.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from fewnode.dataset import Dataset
from fewnode.evaluation import evaluate
from fewnode.formats.directory import save_dataset

ASK = ("--protocol", "all-classes", "--method", "nearest-mean")


def test_json_is_one_object_with_the_numbers_of_python(fewnode, dataset_dir: Path, planted: Dataset) -> None:
    done = fewnode("evaluate", "--data", dataset_dir, *ASK, "--option", "steps=1", "--shot", 2, "--draws", 4, "--json")
    found = evaluate("nearest-mean", planted, shot=2, tasks=4, classes="all", options={"steps": 1})
    assert done.code == 0
    assert done.json["per_task"] == found.to_json()["per_task"]
    for metric in ("accuracy", "macro_f1", "weighted_f1"):
        assert done.json[metric] == {"mean": found[metric].mean, "ci95": found[metric].ci95}
    assert done.json["ece"] == pytest.approx(found.ece)
    said = {"draws": 4, "shot": 2, "way": 15, "method": "nearest-mean", "options": {"steps": 1}, "data": "planted"}
    assert {**done.json, **said, "protocol": "all-classes", "left_out": []} == done.json


def test_a_person_sees_a_table_and_progress(fewnode, dataset_dir: Path) -> None:
    done = fewnode("evaluate", "--data", dataset_dir, *ASK, "--draws", 10, "--query", 3, "--transductive")
    first = done.out.splitlines()[0]
    assert first == (
        "nearest-mean on planted: 5 labels of each of 15 classes, at most 3 others a class asked about, 10 draws"
    )
    assert "transductive, no base classes" in done.out
    assert "calibration error" in done.out
    assert "4 of 10 draws" in done.err
    assert fewnode("evaluate", "--data", dataset_dir, *ASK, "--draws", 2, "-q").err == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give --run RUN, what fewnode train wrote, or --data D --protocol all-classes"),
        (("--protocol", "all"), "--protocol: found 'all', expected 'all-classes'"),
        (("--protocol", "all-classes"), "--protocol all-classes needs --data D"),
        (("--protocol", "all-classes", "--data", "D", "--way", 3, "--tasks", 9), "--way, --tasks: not used with"),
        (("--protocol", "all-classes", "--data", "D", "--run", "R"), "--run: not used with --protocol all-classes"),
        (("--run", "R", "--draws", 3, "--option", "steps=2"), "--option, --draws: not used with --run"),
        (("--data", "{data}", *ASK, "--shot", 0), "must be at least 1"),
        (("--data", "{data}", *ASK[:3], "pn"), "there are no base classes to learn from"),
    ],
)
def test_what_cannot_be_is_refused(fewnode, dataset_dir: Path, arguments: tuple[object, ...], message: str) -> None:
    done = fewnode("evaluate", *(str(word).replace("{data}", str(dataset_dir)) for word in arguments))
    assert done.code == 2
    assert message in done.err
    assert done.err.count("\n") == 1
    assert done.out == ""


def test_descriptions_that_say_nothing_and_those_of_other_classes_are_named(
    fewnode, worded: Dataset, tmp_path: Path
) -> None:
    from dataclasses import replace

    from fewnode.dataset import ClassSplit

    data = replace(worded, split=ClassSplit((), (), (1, 2, 3)), class_names=("base", "c17", *worded.class_names[2:]))
    save_dataset(data, tmp_path / "d")
    fewnode("train", "--data", tmp_path / "d", "--out", tmp_path / "run", "-q")
    (tmp_path / "c.csv").write_text("class,description\nbase,send mail\nc17,xyzzy\n")
    asked = ("evaluate", "--run", tmp_path / "run", "--classes", tmp_path / "c.csv", "--way", 2, "--tasks", 2)
    done = fewnode(*asked, "--shot", 0)
    assert "c.csv: not used, they are no test classes: base" in done.err
    assert "left out, no word about them is in the vocabulary of worded: c17" in done.err
    assert "--query: found 0" in fewnode(*asked, "--query", 0).err
