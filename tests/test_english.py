"""Pages and help texts are plain: short sentences of usual length."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from readability import read, words
from test_docs import COMMANDS, PAGES, ROOT

GRADE, LONGEST = 11.0, 30
TEXTS = [ROOT / "SECURITY.md", *PAGES]


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_is_easy_to_read(page: Path) -> None:
    found = read(page.read_text())
    assert found.grade <= GRADE, f"Flesch-Kincaid grade {found.grade:.1f}: shorter sentences, shorter words"
    long = [s for s in found.sentences if len(words(s)) > LONGEST]
    assert not long, f"{len(long)} sentences of more than {LONGEST} words, the first: {long[0]}"
    prose = re.sub(r"^(```|:::).*?^\1", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    assert [line for line in prose.splitlines() if len(line) > 120 and line[0] not in "|<! \\"] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_easy_to_read(name: str) -> None:
    command = COMMANDS[name]
    prose = [part for part in command.help.split("\n\n") if "\b" not in part]
    found = read("\n\n".join([*prose, *(param.help or "" for param in command.params)]))
    assert found.grade <= GRADE
    assert found.longest()[0] <= LONGEST, found.longest()[1]


def test_a_hard_page_is_noticed() -> None:
    easy = read("The cat sat on the mat. It was warm. The dog came in.")
    hard = read(
        "Notwithstanding considerable heterogeneity, multidimensional representations systematically facilitate "
        "generalisation, provided that institutional circumstances necessitate comprehensive reconsideration."
    )
    assert easy.grade < 3
    assert hard.grade > GRADE
    assert read("One two three `a b c`. Code `x` here: no.\n\n| a | table |\n\n    code block\n").sentences == [
        "One two three Code.",
        "Code Code here: no.",
    ]
