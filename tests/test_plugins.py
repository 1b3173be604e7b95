"""Methods of one's own, and runs of strangers that name some."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

from fewnode.errors import FewnodeError
from fewnode.estimator import Estimator, load_model
from fewnode.evaluation import evaluate
from fewnode.graph import Dataset
from fewnode.plugins import _key, load_class, sign

EXAMPLE = Path(__file__).parents[1] / "examples" / "my_method.py"


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
    with pytest.raises(FewnodeError, match=r"mine\.txt: not a Python file"):
        load_class(f"{tmp_path / 'mine.txt'}:Mine")


def test_a_file_that_is_gone_has_no_signature(tmp_path: Path) -> None:
    assert sign(f"{tmp_path / 'gone.py'}:Mine") == ""


def test_a_missing_file_is_named() -> None:
    with pytest.raises(FewnodeError, match=r"nowhere\.py: no such file"):
        Estimator("nowhere.py:Mine")


def test_the_key_is_its_owners_alone_and_a_cut_one_is_made_anew(tmp_path: Path) -> None:
    key = _key()
    path = tmp_path / "home" / "fewnode" / "plugin.key"
    assert (path.stat().st_mode & 0o777, len(key), _key()) == (0o600, 32, key)
    path.write_bytes(key[:5])
    assert len(_key()) == 32
    assert _key() != key
    assert (path.parent.stat().st_mode & 0o777) == 0o700


def test_the_key_lies_where_a_users_data_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert (tmp_path / ".local" / "share" / "fewnode" / "plugin.key").exists() is False
    key = _key()
    assert (tmp_path / ".local" / "share" / "fewnode" / "plugin.key").read_bytes() == key


def test_a_class_is_a_method_as_its_file_is(planted: Dataset, tmp_path: Path) -> None:
    mine = load_class(f"{EXAMPLE}:MyMethod")
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
    class Local(load_class(f"{EXAMPLE}:MyMethod")):  # type: ignore[misc]
        pass

    model = Estimator(Local, way=3, shot=3).fit(planted)
    assert evaluate(model, planted, tasks=3).accuracy.mean > 0.3
    with pytest.raises(FewnodeError, match=r"Local cannot be imported again from a file.*top level of a \.py file"):
        model.save(tmp_path / "run")
    assert not (tmp_path / "run").exists()
