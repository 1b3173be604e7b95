"""`predict --proportions` and `predict --with-base`, from the command line."""

from __future__ import annotations

import csv
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest

from fewnode.dataset import Dataset
from fewnode.model.estimator import Estimator


@pytest.fixture(scope="module")
def run(dataset_dir: Path, fitted_plus: Estimator, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("runs") / "plus"
    model = deepcopy(fitted_plus)
    model.trained_["data"]["path"] = str(dataset_dir)
    model.save(directory)
    return directory


@pytest.fixture
def support(planted: Dataset, tmp_path: Path) -> Path:
    """Three nodes each of two new classes, `x` and `y`."""
    rows = [
        (v, name) for name, c in zip("xy", planted.split.test, strict=False) for v in np.flatnonzero(planted.y == c)[:3]
    ]
    path = tmp_path / "support.csv"
    path.write_text("node,class\n" + "".join(f"node-{v},{name}\n" for v, name in rows))
    return path


def column(text: str, name: str) -> list[float]:
    return [float(row[name]) for row in csv.DictReader(text.splitlines())]


# --- known shares ---


def test_classes_have_the_shares_that_are_given_as_text_or_as_a_table(fewnode, run, support, tmp_path) -> None:
    asked = ("predict", "--run", run, "--support", support, "--all", "-q")
    done = fewnode(*asked, "--proportions", "x=0.2, y = 0.8")
    assert (done.code, done.err) == (0, "")
    total = [sum(column(done.out, name)) for name in "xy"]
    assert total[0] / sum(total) == pytest.approx(0.2, abs=1e-4)
    assert column(done.out, "member") == column(fewnode(*asked).out, "member")
    (tmp_path / "shares.csv").write_text("class,share\ny,0.8\nx,0.2\n")
    assert fewnode(*asked, "--proportions", tmp_path / "shares.csv").out == done.out
    assert fewnode(*asked, "--proportions", "x=0.2,y=0.8", "--json").json["classes"] == ["x", "y"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("x=0.5,z=0.5", "'z' is none of the classes"),
        ("x=-0.5,y=1.5", "the share of 'x' is -0.5, expected a number from 0 to 1"),
        ("x=much,y=1", "the share of 'x' is 'much', expected a number"),
        ("nowhere.csv", "--proportions nowhere.csv: no such table, and not written as mail=0.3,vpn=0.7"),
        ("{support}", "column 'share' is missing"),
        ("x=" + 5000 * "9", "the share of 'x' is inf"),
    ],
)
def test_what_are_no_shares_is_refused_in_a_sentence(fewnode, run, support, given: str, message: str) -> None:
    text = given.replace("{support}", str(support))
    done = fewnode("predict", "--run", run, "--support", support, "--all", "-q", "--proportions", text)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert message in done.err


# --- base classes ---


def test_a_name_that_is_taken_is_refused(fewnode, run, support) -> None:
    support.write_text("node,class\nnode-3,class a\nnode-4,x\n")
    done = fewnode("predict", "--run", run, "--support", support, "--all", "--with-base", "-q")
    assert (done.code, done.out) == (2, "")
    assert "class 'class a' is a base class of planted already: give the new class another name" in done.err
