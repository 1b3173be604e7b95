from __future__ import annotations

import csv
import itertools
import os
import resource
import signal
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fewnode.dataset import ClassSplit, Dataset
from fewnode.formats.directory import load_dataset, save_dataset
from fewnode.graph import Graph
from fewnode.model.estimator import Estimator
from fewnode.model.model_files import load_model
from sizes import begun, in_child, kill_once
from sizes import command as forked

TRAIN = ("--method", "gpn", "--way", 3, "--shot", 3, "--episodes", 20)


def test_train_evaluate_predict(fewnode, dataset_dir: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    trained = fewnode("train", "--data", dataset_dir, *TRAIN, "--out", run, "--json")
    assert (trained.code, trained.json["episodes"]) == (0, 20)
    assert sorted(p.name for p in run.iterdir()) == [".lock", "model.json", "model.safetensors"]
    scored = fewnode("evaluate", "--run", run, "--tasks", 7, "--json")
    assert scored.code == 0
    assert scored.json["tasks"] == 7
    assert scored.json["accuracy"]["mean"] > 0.34
    assert (scored.json["way"], scored.json["shot"], scored.json["query"]) == (3, 3, 3)
    assert "accuracy" in fewnode("evaluate", "--run", run, "--tasks", 7).out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--data", "nowhere"), "nowhere: no such dataset"),
        (("--method", "gnp"), "unknown method 'gnp' (did you mean 'gpn'?)"),
        (("--way", 0), "way, shot and query must be at least 1, not 0, 5 and 5"),
        (("--shot", 20, "--query", 5), "has 24 nodes, but 20 shots and 5 queries need 25"),
        (("--option", "hidden=[0]"), "hidden"),
        (("--option", "dropout=much"), "dropout"),
        (("--option", "scaling=tfidf"), "unknown scaling 'tfidf' (did you mean 'tf-idf'?)"),
        (("--method", "propagation", "--option", "eps=1"), "method propagation has no option 'eps'"),
        (("--episodes", "many"), "Invalid value for '--episodes'"),
        (("--nonsense",), "No such option"),
    ],
)
def test_wrong_arguments_are_one_line_and_exit_2(
    fewnode, dataset_dir: Path, tmp_path: Path, arguments: tuple[object, ...], message: str
) -> None:
    first = () if "--data" in arguments else ("--data", dataset_dir)
    done = fewnode("train", *first, "--method", "gpn", "--out", tmp_path / "new" / "run", *arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert len(done.err.splitlines()) == 1, done.err
    assert not (tmp_path / "new").exists()


@pytest.fixture
def bare_dir(planted: Dataset, tmp_path: Path) -> Path:
    """The planted network without its attributes."""
    graph = Graph.from_edges(planted.graph.edge_index(), planted.graph.n)
    save_dataset(replace(planted, graph=graph), tmp_path / "bare")
    return tmp_path / "bare"


def test_a_training_without_classes_to_choose_by_leaves_no_directory(fewnode, planted: Dataset, tmp_path: Path) -> None:
    save_dataset(replace(planted, split=ClassSplit((0, 1, 2, 3, 4), (5,), (6, 7))), tmp_path / "data")
    (tmp_path / "there").mkdir()
    for method, run in itertools.product(("propagation", "gpn"), ("a/b/run", "there")):
        done = fewnode("train", "--data", tmp_path / "data", "--method", method, "--out", tmp_path / run, "-q")
        assert (done.code, "1 validation classes; two of each are needed" in done.err) == (2, True)
    assert not (tmp_path / "a").exists()
    assert (tmp_path / "there").is_dir(), "what was there before stays"
    done = fewnode("train", "--data", tmp_path / "data", "--method", "gpn-plus", "--out", tmp_path / "plus", "-q")
    assert done.code == 0, "it does with what there is"


def test_a_pool_has_its_own_tasks(fewnode, run_dir: Path, tmp_path: Path) -> None:
    pool = tmp_path / "pool.jsonl"
    fewnode("evaluate", "--run", run_dir, "--way", 2, "--shot", 4, "--tasks", 3, "--save-pool", pool, "--json")
    read = fewnode("evaluate", "--run", run_dir, "--pool", pool, "--json").json
    assert (read["way"], read["shot"], read["query"], read["tasks"]) == (2, 4, 4, 3), "not those of the run"
    same = fewnode("evaluate", "--run", run_dir, "--pool", pool, "--way", 2, "--shot", 4, "--tasks", 3, "--json").json
    assert same["accuracy"] == read["accuracy"], "what the pool has may be said"
    for option in ("--way", 3), ("--tasks", 9), ("--pool-seed", 1), ("--queries", "long-tail"):
        done = fewnode("evaluate", "--run", run_dir, "--pool", pool, *option)
        assert (done.code, f"leave out {option[0]}" in done.err) == (2, True)
    assert fewnode("evaluate", "--run", run_dir, "--way", 0).code == 2


def test_attributes_made_from_structure_are_remembered_by_the_run(fewnode, bare_dir: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    made = ("--data", bare_dir, "--method", "propagation", "--way", 3, "--shot", 3, "--out", run)
    advised = fewnode("train", *made)
    assert (advised.code, "--features degree, svd or walks" in advised.err, run.exists()) == (2, True, False)
    assert fewnode("train", *made, "--features", "svd").code == 0
    scored = fewnode("evaluate", "--run", run, "--tasks", 30, "--json")
    assert scored.code == 0
    assert scored.json["accuracy"]["mean"] > 0.34
    assert "did you mean 'degree'?" in fewnode("train", *made[:-1], tmp_path / "x", "--features", "degre").err


def test_an_existing_run_is_left_alone(fewnode, run_dir: Path, dataset_dir: Path) -> None:
    before = (run_dir / "model.json").read_bytes()
    done = fewnode("train", "--data", dataset_dir, *TRAIN, "--out", run_dir)
    assert (done.code, "there is a run already" in done.err) == (2, True)
    again = fewnode("train", "--data", dataset_dir, *TRAIN[:-1], 30, "--out", run_dir, "--resume", "--json")
    assert again.json == {"run": str(run_dir), "method": "gpn", "finished_before": True}
    assert (run_dir / "model.json").read_bytes() == before


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--seed", 1), "was trained with seed = 0, not 1; resume with the same options"),
        (("--method", "gpn-plus"), "was trained with method = 'gpn', not 'gpn-plus'"),
        (("--option", "lr=0.1"), "was trained with options = "),
    ],
)
def test_a_finished_run_is_not_taken_for_another_one(
    fewnode, run_dir: Path, dataset_dir: Path, option: tuple[object, ...], message: str
) -> None:
    usual = (*TRAIN[:-1], 30) if "gpn-plus" not in option else ()
    done = fewnode("train", "--data", dataset_dir, *usual, "--out", run_dir, "--resume", *option)
    assert (done.code, message in done.err) == (2, True), done.err


def test_a_dataset_that_changed_is_noticed(fewnode, run_dir: Path, dataset_dir: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    data = tmp_path / "data"
    save_dataset(load_dataset(dataset_dir), data)
    fewnode("train", "--data", data, *TRAIN, "--out", run, "-q")
    old = load_dataset(data)
    for path in data.iterdir():
        path.unlink()
    save_dataset(replace(old, y=np.roll(old.y, 1)), data)
    done = fewnode("evaluate", "--run", run)
    assert done.code == 2
    assert "has changed since" in done.err
    assert fewnode("evaluate", "--run", run, "--data", data).code == 0
    data.rename(tmp_path / "moved")
    gone = fewnode("evaluate", "--run", run)
    assert (gone.code, f"its dataset is no longer at {data}; say where it is now with --data" in gone.err) == (2, True)
    assert fewnode("evaluate", "--run", run, "--data", tmp_path / "moved").code == 0


def test_an_unwritable_place_is_the_machines_failure(
    fewnode, dataset_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied", "run")

    monkeypatch.setattr("fewnode.model.estimator.Estimator.save", refuse)
    done = fewnode("train", "--data", dataset_dir, *TRAIN, "--out", tmp_path / "run")
    assert done.code == 3
    assert "Traceback" not in done.err


def _train_command(data: Path, run: Path, *more: object) -> list[str]:
    options = map(
        str, ("--data", data, "--way", 3, "--shot", 3, "--episodes", 80, "--option", "patience=99", "--out", run)
    )
    return ["train", "--method", "gpn", *options, *map(str, more)]


def test_a_killed_training_resumes_to_the_same_bytes(fewnode, dataset_dir: Path, tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert fewnode(*_train_command(dataset_dir, whole, "-q")).code == 0
    training = begun(forked(tmp_path / "said", *_train_command(dataset_dir, parts)))
    kill_once(lambda: any(parts.rglob("checkpoint.safetensors")), training)
    assert not (parts / "model.json").exists(), "it was killed too late to mean anything"
    unfinished = fewnode(*_train_command(dataset_dir, parts))
    assert unfinished.code == 2
    assert "--resume" in unfinished.err
    assert fewnode(*_train_command(dataset_dir, parts, "--resume", "-q")).code == 0
    ends = [(run / "model.safetensors").read_bytes() for run in (whole, parts)]
    assert ends[0] == ends[1]
    assert sorted(p.name for p in parts.iterdir()) == [".lock", "model.json", "model.safetensors"]


def test_a_full_disk_exits_3_and_keeps_what_was_there(dataset_dir: Path, tmp_path: Path) -> None:
    def small_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))

    said = tmp_path / "said"
    train = forked(said, *_train_command(dataset_dir, tmp_path / "run", "-q"), before=small_files)
    assert os.waitstatus_to_exitcode(in_child(train, quiet=False)) == 3, said.read_text()
    assert len(said.read_text().splitlines()) == 1
    left = [path.name for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert left == [".lock"], "no half-written file is left"


@pytest.fixture(name="plus_run", scope="module")
def _plus_run(planted: Dataset, fitted_plus: Estimator, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("plus")
    save_dataset(planted, home / "data")
    model = deepcopy(fitted_plus)
    model.trained_["data"]["path"] = str(home / "data")
    model.save(home / "run")
    return home / "run"


def test_evaluate_in_both_modes_with_strangers_and_a_long_tail(fewnode, plus_run: Path) -> None:
    asked = ("evaluate", "--run", plus_run, "--way", 3, "--shot", 1, "--query", 6, "--tasks", 20, "--json")
    plain = fewnode(*asked).json
    assert (plain["transductive"], plain["queries"]) == (False, "balanced")
    assert 0 <= plain["ece"] < 0.3
    assert "auroc" not in plain
    both = fewnode(*asked, "--transductive", "--queries", "long-tail", "--open-set").json
    assert (both["transductive"], both["queries"]) == (True, "long-tail")
    assert both["auroc"]["mean"] > 0.7
    printed = fewnode(*asked[:-1], "--open-set").out
    assert "AUROC" in printed
    assert "calibration error" in printed
    wrong = fewnode(*asked, "--queries", "longtail")
    assert (wrong.code, "long-tail" in wrong.err) == (2, True)


def test_suggest(fewnode, plus_run: Path, planted: Dataset, tmp_path: Path) -> None:
    support = tmp_path / "support.csv"
    first = [int(np.flatnonzero(planted.y == c)[0]) for c in planted.split.test[:2]]
    support.write_text("node,class\n" + "".join(f"node-{v},{name}\n" for v, name in zip(first, "ab", strict=True)))
    asked = ("suggest", "--run", plus_run, "--support", support, "--count", 4)
    rows = list(csv.DictReader(fewnode(*asked).out.splitlines()))
    assert [*rows[0]] == ["node", "likely", "probability", "member", "covers"]
    (tmp_path / "asked.csv").write_text("node\n" + "".join(f"{row['node']}\n" for row in rows))
    of_predict = fewnode("predict", *asked[1:5], "--query", tmp_path / "asked.csv")
    for row, same in zip(rows, csv.DictReader(of_predict.out.splitlines()), strict=True):
        assert (row["member"], row["probability"]) == (same["member"], same[row["likely"]])
    assert len({row["node"] for row in rows} - {f"node-{v}" for v in first}) == 4
    told = fewnode(*asked, "--json").json["suggestions"]
    assert [row["node"] for row in told] == [row["node"] for row in rows]
    among = tmp_path / "among.csv"
    among.write_text("node\nnode-7\nnode-8\n")
    fewnode(*asked, "--query", among, "--out", tmp_path / "next.csv")
    assert {line.split(",")[0] for line in (tmp_path / "next.csv").read_text().splitlines()[1:]} == {"node-7", "node-8"}


@pytest.mark.parametrize("command", ["evaluate", "predict"])
def test_a_run_of_ones_own_method_is_read_by_who_names_it(
    fewnode, dataset_dir: Path, tmp_path: Path, command: str
) -> None:
    mine = f"{Path(__file__).parents[2] / 'examples' / 'my_method.py'}:MyMethod"
    (tmp_path / "support.csv").write_text("node,class\nnode-0,a\nnode-30,b\n")
    trained = fewnode("train", "--data", dataset_dir, "--method", mine, "--way", 3, "--out", tmp_path / "run", "-q")
    assert trained.code == 0, trained.err
    predicting = ("--support", tmp_path / "support.csv", "--all", "--out", tmp_path / "p.csv")
    asked = (command, "--run", tmp_path / "run", *(("--tasks", 2) if command == "evaluate" else predicting))
    refused = fewnode(*asked)
    assert (refused.code, "which is code; name it: --method FILE.py:CLASS" in refused.err) == (2, True)
    assert fewnode(*asked, "--method", mine).code == 0


def test_options_that_were_tuned_are_read(fewnode, dataset_dir: Path, tmp_path: Path) -> None:
    tuned = tmp_path / "tuned.json"
    tuned.write_text('{"method": "sgc", "options": {"steps": 3, "episodes": 10}}')
    asked = ("train", "--data", dataset_dir, "--way", 3, "--tuned", tuned, "--out", tmp_path / "run", "-q")
    assert "found for sgc, not for gpn; pass --method sgc" in fewnode(*asked, "--method", "gpn").err
    assert fewnode(*asked, "--method", "sgc").code == 0
    assert load_model(tmp_path / "run").options["steps"] == 3
    for text in ("method = 3", "[]", '{"method": 3}', "\0"):
        tuned.write_text(text)
        refused = fewnode(*asked, "--method", "sgc")
        assert (refused.code, "not what fewnode tune writes" in refused.err) == (2, True)
