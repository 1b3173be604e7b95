"""Methods of one's own: a file runs if a person names it, as it is then, and for no other reason."""

from __future__ import annotations

import importlib.util
import os
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.evaluation import evaluate
from fewnode.experiment.grid import read_grid
from fewnode.experiment.run import plan, work
from fewnode.formats.directory import read_record, save_dataset, write_record
from fewnode.graph import Graph
from fewnode.model.estimator import Estimator
from fewnode.model.model_files import load_model
from fewnode.vectors import Embedding

EXAMPLE = Path(__file__).parents[2] / "examples" / "my_method.py"


def sings(canary: Path) -> str:
    return f"open({str(canary)!r}, 'w').close()\n"


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    return tmp_path / "canary"


@pytest.fixture
def run(planted: Dataset, tmp_path: Path) -> Path:
    """A run of the method in `mine.py`."""
    (tmp_path / "mine.py").write_text(EXAMPLE.read_text())
    Estimator(f"{tmp_path / 'mine.py'}:MyMethod", way=3, shot=3, power=0.3).fit(planted).save(tmp_path / "run")
    return tmp_path / "run"


def test_a_run_runs_nothing_unless_its_method_is_named(run: Path, canary: Path, planted: Dataset) -> None:
    plugin = run.parent / "mine.py"
    plugin.write_text(sings(canary) + EXAMPLE.read_text())
    with pytest.raises(FewnodeError, match="MyMethod, which is code; name it: `method` FILE"):
        load_model(run)
    assert not canary.exists()
    again = load_model(run, method=f"{plugin}:MyMethod")
    assert canary.exists(), "naming the file is consent, also to what it says by now"
    assert (again.needs_fit, again.options) == (True, {"power": 0.3})
    assert again.fit(planted).predict(planted, [0, 1], ["a", "b"], [0, 1]) == ["a", "b"]


def test_a_class_is_a_method_as_its_file_is(run: Path, planted: Dataset) -> None:
    named = load_model(run, method=f"{run.parent / 'mine.py'}:MyMethod")
    mine = type(named.method_)
    model = load_model(run, method=mine)
    assert model.method == named.method == f"{run.parent / 'mine.py'}:MyMethod"
    results = [evaluate(each.fit(planted), planted, tasks=10).per_task["accuracy"].tolist() for each in (model, named)]
    assert results[0] == results[1]
    assert model.fresh(1).fit(planted).predict(planted, [0, 1], ["a", "b"], [0]) == ["a"]
    with pytest.raises(FewnodeError, match="method MyMethod has no option 'powr'"):
        Estimator(mine, powr=1)
    with pytest.raises(FewnodeError, match=r"class 'int' has no fit\(\)"):
        Estimator(int)
    with pytest.raises(FewnodeError, match="method is a MyMethod, expected a name, a class or"):
        Estimator(mine())


@pytest.mark.parametrize("method", ["os.py:system", "/etc/passwd:x", "no such", "gpn-plu"])
def test_a_name_in_a_run_is_only_a_name(run: Path, tmp_path: Path, method: str) -> None:
    meta, state = read_record(run, "model")
    write_record(
        tmp_path / "forged", "model", {k: v for k, v in meta.items() if k != "sha256"} | {"method": method}, state
    )
    with pytest.raises(FewnodeError, match="which is code"):
        load_model(tmp_path / "forged")


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("", "Nothing", "there is no class 'Nothing' in it"),
        ("class Mine: pass", "Mine", r"has no fit\(\)"),
        ("class Mine:\n  def fit(self): ...", "Mien", "did you mean 'Mine'"),
        ("import nowhere", "Mine", "cannot be imported: ModuleNotFoundError"),
        ("def", "Mine", "cannot be imported: SyntaxError"),
    ],
)
def test_a_file_that_holds_no_method_is_named(tmp_path: Path, text: str, name: str, message: str) -> None:
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(FewnodeError, match=message):
        Estimator(f"{tmp_path / 'mine.py'}:{name}")


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("class Mine: pass")
    with pytest.raises(FewnodeError, match="unknown method"):
        Estimator(f"{tmp_path / 'mine.txt'}:Mine")
    (tmp_path / "mine.py").mkdir()
    (tmp_path / "circle.py").symlink_to(tmp_path / "circle.py")
    for name in ("mine", "circle", "nul\0", "nowhere"):
        with pytest.raises(FewnodeError, match="no such file"):
            Estimator(f"{tmp_path / name}.py:Mine")


# --- what it imports ----------------------------------------------------------------------------------------------


def test_two_methods_have_each_their_own_modules(tmp_path: Path) -> None:
    """One's `besides` is not the other's, and nobody else sees either."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "besides.py").write_text(f"NAME = {name!r}\n")
        text = "import dataclasses\nimport besides\n" + EXAMPLE.read_text() + "\n    name = besides.NAME\n"
        (tmp_path / name / "mine.py").write_text(text)
    before = list(sys.path)
    made = {name: Estimator(f"{tmp_path / name / 'mine.py'}:MyMethod").method_ for name in ("one", "two")}
    assert {name: method.name for name, method in made.items()} == {"one": "one", "two": "two"}
    assert "besides" not in sys.modules
    besides = tmp_path / "two" / "besides.py"
    written = besides.stat().st_mtime_ns
    besides.write_text("NAME = 'new'\n")
    os.utime(besides, ns=(written, written))  # as large and as old as what was compiled
    assert Estimator(f"{tmp_path / 'two' / 'mine.py'}:MyMethod").method_.name == "new"
    assert sys.path == before


def test_a_file_beside_it_shadows_no_installed_module(tmp_path: Path, canary: Path) -> None:
    for name in ("colorsys", "json", "numpy"):
        (tmp_path / f"{name}.py").write_text(sings(canary))
    (tmp_path / "mine.py").write_text("import colorsys, json\n" + EXAMPLE.read_text())
    Estimator(f"{tmp_path / 'mine.py'}:MyMethod")
    assert not canary.exists()


def test_a_compiled_file_beside_it_is_not_run(tmp_path: Path, canary: Path) -> None:
    """Python believes such a file without a look at the source, if it is prepared for that."""
    from importlib._bootstrap_external import _code_to_hash_pyc  # type: ignore[import-not-found]

    source = tmp_path / "mine.py"
    source.write_text(EXAMPLE.read_text())
    made = Path(importlib.util.cache_from_source(str(source)))
    made.parent.mkdir()
    digest = importlib.util.source_hash(source.read_bytes())
    code = compile(sings(canary) + EXAMPLE.read_text(), str(source), "exec")
    made.write_bytes(_code_to_hash_pyc(code, digest, checked=False))
    Estimator(f"{source}:MyMethod")
    assert not canary.exists()


def test_a_grid_knows_what_it_was_planned_with(planted: Dataset, tmp_path: Path) -> None:
    """A file that changes before its cell is run fails that cell; planned again, it is another cell."""
    save_dataset(planted, tmp_path / "data")
    (tmp_path / "besides.py").write_text("POWER = 1.0\n")
    (tmp_path / "mine.py").write_text("import besides\n" + EXAMPLE.read_text())
    grid = "[[compare]]\ndatasets = 'data'\nmethods = 'mine.py:MyMethod'\nway = 3\nshot = 1\ntasks = 2\n"
    (tmp_path / "grid.toml").write_text(grid)
    first = plan(read_grid(tmp_path / "grid.toml"))[1]
    sent = pickle.loads(pickle.dumps(first))  # noqa: S301  # as to another process
    assert [record.status for record in work(sent)] == ["done"]
    (tmp_path / "besides.py").write_text("POWER = 2.0\n")
    (record,) = work(sent)
    assert record.status == "failed"
    assert "has changed since the grid was planned" in str(record.reason)
    assert first[0].id != plan(read_grid(tmp_path / "grid.toml"))[1][0].id


class Averages:
    """z: attributes, and those of neighbours."""

    needs_base = False

    def fit(self, graph: Graph, train: object, valid: object) -> Averages:
        return self

    def embed(self, graph: Graph) -> Embedding:
        return Embedding.of(np.asarray((graph.x + graph.adj @ graph.x).todense(), np.float32))


def test_a_method_may_embed_in_place_of_answering(planted: Dataset) -> None:
    first, other = (np.flatnonzero(planted.y == c)[:10] for c in (10, 11))
    answers = Estimator(Averages).fit(planted).ask(planted, {"a": first[:5], "b": other[:5]}).judge([*first, *other])
    assert answers.closed_set is False
    assert np.mean(answers.probabilities.argmax(axis=1) == np.repeat([0, 1], 10)) > 0.8
