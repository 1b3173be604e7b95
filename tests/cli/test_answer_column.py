"""Answers in a table, yes or no, as commands read them."""

from __future__ import annotations

from pathlib import Path

from fewnode.dataset import Dataset
from fewnode.storage.io import save_dataset


def test_answers_in_a_table_reach_the_commands(fewnode, worded: Dataset, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    save_dataset(worded, tmp_path / "d")
    table = tmp_path / "answers.csv"
    table.write_text("node,class,answer\nn0,mail,yes\nn5,mail,no\n")
    told = fewnode("suggest", "--data", tmp_path / "d", "--support", table, "--find", "--count", "3", "--json").json
    assert not {"n0", "n5"} & {row["node"] for row in told["suggestions"]}
    told = fewnode("predict", "--data", tmp_path / "d", "--support", table, "--all", "--json").json
    by_node = {row["node"]: row for row in told["predictions"]}
    assert by_node["n5"]["member"] == 0
    assert by_node["n5"]["label"] == "none of these"
