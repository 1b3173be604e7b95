"""`--multi-label` of `predict` and `evaluate`."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from fewnode.dataset import Dataset
from fewnode.formats.directory import save_dataset
from multi_label_graphs import planted_multi_label, with_words


@pytest.fixture(name="data", scope="module")
def _data() -> Dataset:
    return planted_multi_label()


@pytest.fixture(name="home", scope="module")
def _home(data: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the model that the first command makes and keeps there."""
    home = tmp_path_factory.mktemp("multi") / "data"
    save_dataset(data, home)
    return home


@pytest.fixture(name="support")
def _support(data: Dataset, tmp_path: Path) -> Path:
    assert data.labels is not None
    both = np.intersect1d(data.members(7), data.members(8))
    nodes = sorted({int(n) for c in (7, 8) for n in [*both[:2], *data.members(c)[:5]]})
    own = data.labels[:, [7, 8]].toarray()
    rows = [f"node-{n},{name}" for n in nodes for name, there in zip("hi", own[n], strict=True) if there]
    assert len(rows) > len(nodes), "some node is in both"
    path = tmp_path / "support.csv"
    path.write_text("\n".join(["node,class", *rows]) + "\n")
    return path


def test_a_table_of_every_node(fewnode, home: Path, support: Path, tmp_path: Path, data: Dataset) -> None:
    out = tmp_path / "p.csv"
    asked = ("predict", "--data", home, "--support", support, "--multi-label", "--all", "--threshold")
    done = fewnode(*asked, 0.5, "--out", out)
    assert done.code == 0
    assert "of them in several" in done.err
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert list(rows[0]) == ["node", "label", "probability", "h", "i", "member"]
    assert len(rows) == data.graph.n
    assert {row["label"] for row in rows} == {"h", "i", "h|i", "none of these"}
    for row in rows:
        own = [name for name in "hi" if float(row[name]) >= 0.5]
        assert row["label"] == ("|".join(own) or "none of these")
        assert float(row["probability"]) == max(float(row["h"]), float(row["i"]))
    loose = fewnode(*asked, 0.1)
    assert loose.out.count("h|i") > out.read_text().count("h|i")


def test_kinds_without_labels_are_left_out_and_named(fewnode, data: Dataset, support: Path, tmp_path: Path) -> None:
    save_dataset(with_words(data), tmp_path / "kinds")
    done = fewnode("predict", "--data", tmp_path / "kinds", "--support", support, "--multi-label", "--all")
    assert "left out: 30 nodes of kinds without any label (word)" in done.err
    assert "word-" not in done.out
    (tmp_path / "q.csv").write_text("node\nword-1\n")
    asked = ("--query", tmp_path / "q.csv", "--multi-label")
    assert "word-1," in fewnode("predict", "--data", tmp_path / "kinds", "--support", support, *asked).out


def test_evaluate_a_run(fewnode, home: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert fewnode("train", "--data", home, "--way", 3, "--shot", 3, "--out", run, "-q").code == 0
    done = fewnode("evaluate", "--run", run, "--multi-label", "--tasks", 4, "--json").json
    assert {"micro_f1", "macro_f1", "average_precision", "precision_at_k", "ece"} <= set(done)
    assert (done["tasks"], done["way"], done["precision_at"]) == (4, 3, 10)
    shown = fewnode("evaluate", "--run", run, "--multi-label", "--tasks", 4, "--precision-at", 3).out
    for word in ("micro-F1", "macro-F1", "average precision", "precision@k", "k = 3", "calibration error"):
        assert word in shown
    for more in (["--open-set"], ["--transductive"], ["--queries", "long-tail"]):
        refused = fewnode("evaluate", "--run", run, "--multi-label", *more)
        assert (refused.code, more[0] in refused.err) == (2, True)
    refused = fewnode("evaluate", "--run", run, "--precision-at", 3)
    assert (refused.code, "leave out --precision-at" in refused.err) == (2, True)


def test_an_evaluation_by_one_class_a_node_says_what_it_leaves_out(
    fewnode, home: Path, data: Dataset, tmp_path: Path
) -> None:
    asked = ("--protocol", "all-classes", "--method", "nearest-mean", "--draws", 2, "--shot", 1)
    assert data.labels is not None
    count = int((data.labels.sum(axis=1) > 1).sum())
    told = fewnode("evaluate", "--data", home, *asked)
    assert f"left out: {count:,} nodes that are in several classes" in told.err
    nested = data.labels.toarray()
    nested[:, 0] = nested[:, 1:].any(axis=1)  # a class that all others are parts of: nobody is in it alone
    y = np.where(nested[:, 1:].sum(axis=1) == 1, 1 + nested[:, 1:].argmax(axis=1), -1)
    save_dataset(replace(data, y=y, labels=sp.csr_array(nested)), tmp_path / "nested")
    done = fewnode("evaluate", "--data", tmp_path / "nested", *asked)
    assert (done.code, f"at most 1 labelled nodes: {data.class_names[0]}" in done.err) == (0, True), done.err
