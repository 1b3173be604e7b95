"""How tables of text are written: separator, decimal mark, encoding, and words for what is missing."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from fewnode.errors import FewnodeError

MISSING = ("NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "n.a.", "NaN", "nan", "NAN", "-NaN", "-nan", "NaT",
           "None", "NULL", "Null", "null", "-", "--", "?")  # fmt: skip
"""Words that stand for a missing value in what spreadsheets, databases, R and pandas write."""

_NAMED = {"tab": "\t", "\\t": "\t", "space": " "}


@dataclass(frozen=True)
class Dialect:
    """How a table of text is written; what is None is recognised.

    >>> Dialect(separator="tab", decimal=",", encoding="latin-1", missing=("unknown",)).delimiter
    '\\t'
    """

    separator: str | None = None
    """One character between two cells, or `tab` or `space`."""
    decimal: str | None = None
    """`.` or `,`; the other one may stand between thousands."""
    encoding: str | None = None
    missing: tuple[str, ...] | None = None
    """More words for a missing value than `MISSING` has; `("",)` means that only empty cells are missing."""
    header: bool = True
    """Whether the first line has the names of the columns; else they are `column 1`, `column 2`, …"""
    multiline: bool = False
    """Whether a quoted cell may have several lines; else it is refused, for a lost quote would swallow rows."""

    def __post_init__(self) -> None:
        mark = self.delimiter
        if mark is not None and (len(mark) != 1 or not mark.isascii() or mark.isalnum() or mark in '"\r\n\0'):
            raise FewnodeError(f"separator {self.separator!r}: expected one character such as ; or |, or tab or space")
        if self.decimal not in (None, ".", ","):
            raise FewnodeError(f"decimal mark {self.decimal!r}: expected . or ,")
        if self.encoding is not None:
            _check_encoding(self.encoding)

    @property
    def delimiter(self) -> str | None:
        """The separator as a character."""
        return None if self.separator is None else _NAMED.get(self.separator, self.separator)

    @property
    def missing_words(self) -> frozenset[str]:
        if self.missing == ("",):
            return frozenset()
        return frozenset((*MISSING, *(word.strip() for word in self.missing or ()))) - {""}


AS_USUAL = Dialect()
"""Nothing is said about how a table is written."""

_PLAIN = b'a,b;c|d\te"f" 1.5 xn--a-b \\x41\\u0041 +AGE-\r\n'


def _check_encoding(name: str) -> None:
    """Only encodings of text: those that read ASCII as it is, and the wide ones of Unicode."""
    try:
        wide = codecs.lookup(name).name.startswith(("utf-16", "utf-32"))
        plain = wide or _PLAIN.decode(name) == _PLAIN.decode("ascii")
    except (LookupError, ValueError):
        plain = False
    if not plain:
        raise FewnodeError(f"encoding {name!r}: not known for text; try latin-1, cp1252, utf-16 or utf-8")
