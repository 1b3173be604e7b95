"""Methods of one's own, and runs of strangers that name some."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import pickle
import runpy
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.estimator import Estimator, load_model
from fewnode.evaluation import evaluate
from fewnode.experiment.grid import read_grid
from fewnode.experiment.plan import plan
from fewnode.experiment.work import work
from fewnode.machine.signing import is_signed, sign
from fewnode.methods.plugins import read
from fewnode.storage.io import canonical, save_dataset

EXAMPLE = Path(__file__).parents[2] / "examples" / "my_method.py"


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))


def test_the_example_is_a_method_of_thirty_lines(planted: Dataset) -> None:
    assert len(EXAMPLE.read_text().splitlines()) <= 30
    model = Estimator(f"{EXAMPLE}:MyMethod", way=3, shot=3, power=1.0).fit(planted)
    assert evaluate(model, planted, 5, 5, tasks=30).accuracy.mean > 0.5


def test_a_run_comes_back_for_its_author_and_is_fitted_again(planted: Dataset, tmp_path: Path) -> None:
    model = Estimator(f"{EXAMPLE}:MyMethod", way=3, shot=3).fit(planted)
    model.save(tmp_path / "run")
    again = load_model(tmp_path / "run")
    assert again.needs_fit
    task = ([0, 1, 2], ["a", "b", "b"], list(range(10)))
    again.fit(planted)
    assert np.array_equal(again.predict_proba(planted.graph, *task), model.predict_proba(planted.graph, *task))


def test_a_strangers_run_runs_nothing(planted: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    canary = tmp_path / "canary"
    plugin = tmp_path / "evil.py"
    plugin.write_text(EXAMPLE.read_text() + f"\nopen({str(canary)!r}, 'w').close()\n")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "stranger"))
    Estimator(f"{plugin}:MyMethod", way=3, shot=3).fit(planted).save(tmp_path / "run")
    canary.unlink()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    with pytest.raises(FewnodeError, match="which is code; name the file"):
        load_model(tmp_path / "run")
    assert not canary.exists()
    load_model(tmp_path / "run", method=f"{plugin}:MyMethod")
    assert canary.exists(), "naming the file is consent"


def test_a_changed_file_is_no_longer_trusted(planted: Dataset, tmp_path: Path) -> None:
    plugin = tmp_path / "mine.py"
    plugin.write_text(EXAMPLE.read_text())
    Estimator(f"{plugin}:MyMethod", way=3, shot=3).fit(planted).save(tmp_path / "run")
    load_model(tmp_path / "run")
    plugin.write_text(EXAMPLE.read_text() + "\n# changed\n")
    with pytest.raises(FewnodeError, match="which is code"):
        load_model(tmp_path / "run")


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
    (tmp_path / "large.py").write_bytes(b"#" * 2_000_000)
    for name in ("mine", "circle", "large", "nul\0"):
        with pytest.raises(FewnodeError, match=r"no such file|too large"):
            Estimator(f"{tmp_path / name}.py:Mine")


def test_a_missing_file_is_named() -> None:
    with pytest.raises(FewnodeError, match=r"nowhere\.py: no such file"):
        Estimator("nowhere.py:Mine")


# --- what a signature covers --------------------------------------------------------------------------------------


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    return tmp_path / "canary"


def sings(canary: Path) -> str:
    return f"open({str(canary)!r}, 'w').close()\n"


def trained(plugin: Path, planted: Dataset, run: Path, text: str = "") -> Path:
    plugin.parent.mkdir(exist_ok=True)
    plugin.write_text(text + EXAMPLE.read_text())
    Estimator(f"{plugin}:MyMethod", way=3, shot=3).fit(planted).save(run)
    load_model(run)
    return run


def pointed(run: Path, out: Path, method: str) -> Path:
    """A copy of a run, with its signature, that names another file; its checksum is right."""
    shutil.copytree(run, out)
    manifest = json.loads((out / "model.json").read_text())
    del manifest["sha256"]["manifest"]
    manifest["method"] = method
    manifest["sha256"]["manifest"] = hashlib.sha256(canonical(manifest).encode()).hexdigest()
    (out / "model.json").write_text(canonical(manifest))
    return out


def compiled(source: Path, code: str) -> None:
    """A compiled file for a source that Python believes without looking at the source."""
    from importlib._bootstrap_external import _code_to_hash_pyc  # type: ignore[import-not-found]

    made = Path(importlib.util.cache_from_source(str(source)))
    made.parent.mkdir(exist_ok=True)
    digest = importlib.util.source_hash(source.read_bytes())
    made.write_bytes(_code_to_hash_pyc(compile(code, str(source), "exec"), digest, checked=False))


def test_a_prepared_compiled_file_is_not_run(planted: Dataset, tmp_path: Path, canary: Path) -> None:
    run = trained(tmp_path / "mine" / "mine.py", planted, tmp_path / "run")
    other = tmp_path / "theirs" / "mine.py"
    other.parent.mkdir()
    shutil.copy(tmp_path / "mine" / "mine.py", other)
    for source in (other, tmp_path / "mine" / "mine.py"):
        compiled(source, sings(canary) + EXAMPLE.read_text())
    with pytest.raises(FewnodeError, match="which is code"):  # the same bytes, but not where the user had them
        load_model(pointed(run, tmp_path / "copy", f"{other}:MyMethod"))
    load_model(run)
    Estimator(f"{other}:MyMethod")
    assert not canary.exists()
    shutil.rmtree(other.parent / "__pycache__")
    Estimator(f"{other}:MyMethod")
    assert not (other.parent / "__pycache__").exists(), "nor is one written"


def test_a_link_is_signed_for_what_it_leads_to(planted: Dataset, tmp_path: Path, canary: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    run = trained(tmp_path / "mine" / "mine.py", planted, tmp_path / "run")
    load_model(pointed(run, tmp_path / "same", f"{tmp_path / 'link' / 'mine.py'}:MyMethod"))
    shutil.move(tmp_path / "mine", tmp_path / "theirs" / "mine")
    (tmp_path / "mine").symlink_to(tmp_path / "theirs" / "mine")
    with pytest.raises(FewnodeError, match="which is code"):
        load_model(run)


@pytest.mark.parametrize("where", ["top", "function"])
def test_what_it_imports_from_its_folder_is_signed_too(
    planted: Dataset, tmp_path: Path, canary: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))  # as `python -m fewnode` in that folder has it
    (folder / "deeper.py").write_text("FACTOR = 2\n")
    (folder / "besides.py").write_text("from deeper import FACTOR\nassert FACTOR == 2\n")
    inside = "import besides\n" if where == "top" else "def late():\n    import besides\n\n\nlate()\n"
    run = trained(folder / "mine.py", planted, tmp_path / "run", inside)
    compiled(folder / "deeper.py", sings(canary) + "FACTOR = 2\n")
    load_model(run)
    for name in ("besides.py", "deeper.py"):
        good = (folder / name).read_text()
        (folder / name).write_text(sings(canary) + good)
        with pytest.raises(FewnodeError, match="which is code"):
            load_model(run)
        (folder / name).write_text(good)
    (folder / "deeper.py").unlink()
    with pytest.raises(FewnodeError, match="which is code"):
        load_model(run)
    assert not canary.exists()


@pytest.mark.parametrize("late", ["late.py", "late/__init__.py"])
def test_what_lies_in_its_folder_and_was_not_signed_is_not_run(
    planted: Dataset, tmp_path: Path, canary: Path, monkeypatch: pytest.MonkeyPatch, late: str
) -> None:
    folder = tmp_path / "mine"
    monkeypatch.syspath_prepend(str(folder))
    text = "try:\n    import late\nexcept ImportError:\n    late = None\n"
    run = trained(folder / "mine.py", planted, tmp_path / "run", text)
    (folder / late).parent.mkdir(exist_ok=True)
    (folder / late).write_text(sings(canary))
    load_model(run)
    assert not canary.exists()


def test_a_file_beside_it_shadows_no_module_of_python(tmp_path: Path, canary: Path) -> None:
    for name in ("colorsys", "json", "numpy"):
        (tmp_path / f"{name}.py").write_text(sings(canary))
    (tmp_path / "mine.py").write_text("import colorsys, json\n" + EXAMPLE.read_text().replace("import numpy as np", ""))
    before = list(sys.path)
    Estimator(f"{tmp_path / 'mine.py'}:MyMethod")
    assert sys.path == before
    (tmp_path / "mine.py").write_text(EXAMPLE.read_text())
    with pytest.raises(
        FewnodeError, match=r"numpy\.py: there is a module 'numpy' in .* too; give one of the two another"
    ):
        Estimator(f"{tmp_path / 'mine.py'}:MyMethod")
    assert not canary.exists()


def test_two_plug_ins_have_each_their_own_modules(tmp_path: Path) -> None:
    """One's `besides` is not the other's, and nobody else sees either."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "besides.py").write_text(f"NAME = {name!r}\n")
        text = (
            "import dataclasses\n"
            + EXAMPLE.read_text()
            + "\n    def name(self):\n        from besides import NAME\n        return NAME\n"
        )
        (tmp_path / name / "mine.py").write_text(text)
    made = {name: Estimator(f"{tmp_path / name / 'mine.py'}:MyMethod").method_ for name in ("one", "two")}
    assert {name: method.name() for name, method in made.items()} == {"one": "one", "two": "two"}
    assert "besides" not in sys.modules


def test_bytes_that_were_read_are_run_and_signed_however_often(planted: Dataset, tmp_path: Path, canary: Path) -> None:
    """A file that changes after it was read: no second seed, and no signature, takes it for what it was."""
    plugin = tmp_path / "mine.py"
    plugin.write_text(EXAMPLE.read_text())
    model = Estimator(f"{plugin}:MyMethod", way=3, shot=3).fit(planted)
    plugin.write_text(sings(canary) + EXAMPLE.read_text())
    again = model.fresh(1).fit(planted)
    again.all_settings()
    again.save(tmp_path / "run")
    assert not canary.exists()
    with pytest.raises(FewnodeError, match="which is code"):
        load_model(tmp_path / "run")
    plugin.write_text(EXAMPLE.read_text())
    load_model(tmp_path / "run")


def test_a_grid_runs_what_it_was_planned_with(planted: Dataset, tmp_path: Path, canary: Path) -> None:
    """Workers get the bytes that were read, so that a file that changes in the meantime changes no result."""
    save_dataset(planted, tmp_path / "data")
    (tmp_path / "besides.py").write_text("POWER = 1.0\n")
    (tmp_path / "mine.py").write_text("import besides\n" + EXAMPLE.read_text())
    grid = "[[compare]]\ndatasets = 'data'\nmethods = 'mine.py:MyMethod'\nway = 3\nshot = 1\ntasks = 2\n"
    (tmp_path / "grid.toml").write_text(grid)
    first = plan(read_grid(tmp_path / "grid.toml"))
    (tmp_path / "besides.py").write_text(sings(canary))
    sent = pickle.loads(pickle.dumps(first))  # noqa: S301  # as to another process
    assert [record.status for record in work(sent)] == ["done"]
    assert not canary.exists()
    second = plan(read_grid(tmp_path / "grid.toml"))
    assert canary.exists(), "naming a file in a grid of one's own is consent"
    assert first[0].id != second[0].id, "another file beside it: another cell"


@pytest.mark.parametrize("forge", [None, 5, {}, {"files": []}, {"files": {}}, {"files": {"mine": 3}, "signature": "é"}])
def test_a_signature_of_another_shape_is_none(planted: Dataset, tmp_path: Path, canary: Path, forge: Any) -> None:
    run = trained(tmp_path / "mine.py", planted, tmp_path / "run")
    (tmp_path / "mine.py").write_text(sings(canary) + EXAMPLE.read_text())
    manifest = json.loads((run / "model.json").read_text())
    del manifest["sha256"]["manifest"]
    manifest["plugin"] = forge
    manifest["sha256"]["manifest"] = hashlib.sha256(canonical(manifest).encode()).hexdigest()
    (run / "model.json").write_text(canonical(manifest))
    with pytest.raises(FewnodeError):
        load_model(run)
    assert not canary.exists()


# --- the key ------------------------------------------------------------------------------------------------------


def test_the_key_is_its_owners_alone_and_a_cut_one_is_made_anew(tmp_path: Path) -> None:
    assert not is_signed("0" * 64, "what", b"text")
    path = tmp_path / "home" / "fewnode" / "signing.key"
    assert not path.exists(), "to look is not to make"
    signature = sign("what", b"text")
    assert (path.stat().st_mode & 0o777, path.stat().st_size, sign("what", b"text")) == (0o600, 32, signature)
    assert (path.parent.stat().st_mode & 0o777) == 0o700
    assert is_signed(signature, "what", b"text")
    for other in (("that", b"text"), ("what", b"texT"), ("what", b"te", b"xt"), ("wha", b"ttext")):
        assert not is_signed(signature, *other)
    path.write_bytes(path.read_bytes()[:5])
    assert not is_signed(signature, "what", b"text")
    assert sign("what", b"text") != signature
    assert path.stat().st_size == 32


def test_the_key_lies_where_a_users_data_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    sign("what")
    assert (tmp_path / ".local" / "share" / "fewnode" / "signing.key").exists()


def test_a_class_is_a_method_as_its_file_is(planted: Dataset, tmp_path: Path) -> None:
    mine = read(f"{EXAMPLE}:MyMethod").load()
    model, named = Estimator(mine, way=3, shot=3, power=0.3), Estimator(f"{EXAMPLE}:MyMethod", 3, 3, power=0.3)
    assert model.method == named.method == f"{EXAMPLE}:MyMethod"
    results = [evaluate(each.fit(planted), planted, tasks=10).per_task["accuracy"].tolist() for each in (model, named)]
    assert results[0] == results[1]
    assert model.fresh(1).fit(planted).predict(planted, [0, 1], ["a", "b"], [0]) == ["a"]
    model.save(tmp_path / "run")
    assert load_model(tmp_path / "run").options == {"power": 0.3}
    with pytest.raises(FewnodeError, match="method MyMethod has no option 'powr'"):
        Estimator(mine, powr=1)
    with pytest.raises(FewnodeError, match=r"class 'int' has no fit\(\)"):
        Estimator(int)
    with pytest.raises(FewnodeError, match="method is a MyMethod, expected a name, a class or"):
        Estimator(mine())


def test_a_class_of_a_script_comes_back_with_the_run(planted: Dataset, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        EXAMPLE.read_text()
        + """
if __name__ == "__main__":
    from pathlib import Path
    from fewnode import Estimator
    from graphs import planted
    Estimator(MyMethod, way=3, shot=3, power=0.2).fit(planted()).save(Path(__file__).parent / "run")
"""
    )
    runpy.run_path(str(tmp_path / "mine.py"), run_name="__main__")
    again = load_model(tmp_path / "run")
    assert again.method == f"{tmp_path / 'mine.py'}:MyMethod"
    assert again.fit(planted).predict(planted, [0, 1], ["a", "b"], [0, 1]) == ["a", "b"]


def test_a_class_of_no_file_is_not_saved(planted: Dataset, tmp_path: Path) -> None:
    class Local(read(f"{EXAMPLE}:MyMethod").load()):  # type: ignore[misc]
        pass

    model = Estimator(Local, way=3, shot=3).fit(planted)
    assert evaluate(model, planted, tasks=3).accuracy.mean > 0.3
    with pytest.raises(FewnodeError, match=r"Local cannot be imported again from a file.*top level of a \.py file"):
        model.save(tmp_path / "run")
    assert not (tmp_path / "run").exists()
