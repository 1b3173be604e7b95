"""Every public name shows an example in its docstring, and what the example shows is what happens."""

from __future__ import annotations

import doctest
import importlib
import inspect
from pathlib import Path

import pytest

import fewnode

HOMES = sorted({*fewnode._HOMES, "fewnode.errors"})


@pytest.mark.parametrize("name", fewnode.__all__)
def test_every_public_name_has_an_example(name: str) -> None:
    assert ">>> " in (inspect.getdoc(getattr(fewnode, name)) or ""), f"fewnode.{name} shows no example"


@pytest.mark.parametrize("home", HOMES)
def test_examples_in_docstrings(home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(home)
    found = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert found.failed == 0
    assert found.attempted > 0, f"no example in {home}"
