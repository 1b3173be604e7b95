"""The model card: its facts can be read by a hub, its text by people, and names in it can do no harm."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from fewnode.dataset import Dataset
from fewnode.estimator import Estimator
from fewnode.model.card import SHOWN, model_card, plain


def facts(card: str) -> Any:
    """The lines between the dashes, as a hub reads them."""
    yaml = pytest.importorskip("yaml")
    assert card.startswith("---\n")
    return yaml.safe_load(card.split("---\n")[1])


@pytest.mark.parametrize("name", ["propagation", "deepwalk"])
def test_a_saved_model_has_a_card(name: str, planted: Dataset, tmp_path: Path) -> None:
    options: dict[str, Any] = {"steps": 1} if name == "propagation" else {"walks": 1, "length": 5, "dimensions": 4}
    Estimator(name, way=3, shot=3, **options).fit(planted).save(tmp_path)
    card = (tmp_path / "README.md").read_text()
    told = facts(card)
    assert told["library_name"] == "fewnode"
    assert name in told["tags"]
    assert planted.graph.n == int(re.findall(r"([\d,]+) nodes", card)[0].replace(",", ""))
    for part in ("train", "valid", "test"):
        assert all(plain(planted.class_names[c]) in card for c in planted.split.part(part))
    if name == "propagation":
        metrics = told["model-index"][0]["results"][0]["metrics"]
        assert {metric["name"] for metric in metrics} >= {"1-shot accuracy", "5-shot accuracy"}
        assert all(0.3 < metric["value"] <= 1 for metric in metrics)
    else:
        assert "Not measured in training" in card


def test_names_from_data_are_only_names() -> None:
    nasty = 'x"\n---\nlicense: mit\n<script>alert(1)</script> [click](http://x) `a|b`'
    meta = {
        "method": "/home/me/own.py:Mine",
        "way": 5,
        "shot": 5,
        "seed": 0,
        "trained": {
            "data": {"name": nasty, "sha256": "0", "nodes": 1, "edges": 1},
            "classes": {"train": [nasty] * (SHOWN + 2), "valid": ["a", "b"], "test": []},
            "n_features": 3,
            "validated": {"5": 0.5},
            "versions": {"fewnode": "0"},
        },
    }
    card = model_card(json.loads(json.dumps(meta)))
    told = facts(card)
    assert "license" not in told
    assert told["model-index"][0]["results"][0]["dataset"]["name"] == nasty
    assert "/home/me" not in card, "where somebody's files are is nobody's business"
    text = card.split("---\n", 2)[2]
    assert "<script>" not in text
    assert "\\[click\\](http" in text, "a bracket that means nothing"
    assert "and 2 more" in text
