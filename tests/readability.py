"""How hard a page is to read: the Flesch-Kincaid grade, and its longest sentences.

Only prose counts: no code, no tables, no formulas, no headings. A name in backticks is one word of one syllable.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_BLOCKS = re.compile(r"^(```|~~~|:::+).*?^\1", re.MULTILINE | re.DOTALL)
_LEFT_OUT = re.compile(r"\$\$.*?\$\$|<!--.*?-->|<[^>]+>|\$[^$\n]+\$", re.DOTALL)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_CODE = re.compile(r"`[^`]*`")
_ITEM = re.compile(r"^\s*(?:[-*•]|\d+\.)\s+")
_END = re.compile(r"(?<=[.!?:])[\"'*_)]*\s+(?=[\"'*_(]*(?:[A-Z0-9β−]|fewnode\b))")
_WORD = re.compile(r"[A-Za-zÀ-ÿ][A-Za-zÀ-ÿ'’-]*|\d[\d.,:%×]*")


class Reading(NamedTuple):
    """A page: its grade, and its sentences."""

    grade: float
    sentences: list[str]

    def longest(self) -> tuple[int, str]:
        return max(((len(words(s)), s) for s in self.sentences), default=(0, ""))


def words(sentence: str) -> list[str]:
    return _WORD.findall(sentence)


def syllables(word: str) -> int:
    """Groups of vowels, without a silent e at the end."""
    if word[0].isdigit():
        return 1
    plain = word.lower()
    count = len(re.findall(r"[aeiouyà-ÿ]+", plain))
    if plain.endswith("e") and not plain.endswith(("le", "ee")) and count > 1:
        count -= 1
    return max(1, count)


def paragraphs(page: str) -> list[str]:
    """The prose of a Markdown page; an item of a list, and a row of a table of one sentence, is a paragraph."""
    text = _LEFT_OUT.sub(" x ", _BLOCKS.sub("\n", page))
    text = _LINK.sub(r"\1", _CODE.sub("Code", text))
    found: list[str] = [""]
    for line in text.splitlines():
        plain = line.strip()
        if not plain or plain.startswith(("#", "|", "---", ":")):
            found.append("")
        elif line.startswith("    ") and found[-1] == "":
            continue  # an indented block of code
        elif _ITEM.match(line):
            found.append(_ITEM.sub("", line))
        else:
            found[-1] += f" {plain}"
    return [" ".join(each.split()) for each in found if each.strip()]


def read(page: str) -> Reading:
    """All of a page."""
    sentences = [s.strip() for each in paragraphs(page) for s in _END.split(each) if words(s)]
    every = [word for s in sentences for word in words(s)]
    if not every:
        return Reading(0.0, [])
    grade = 0.39 * len(every) / len(sentences) + 11.8 * sum(map(syllables, every)) / len(every) - 15.59
    return Reading(grade, sentences)
