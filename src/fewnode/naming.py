"""Names that survive a table, a line of text and an address, and those that people cannot tell apart."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

UNSEEN = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
"""Letters and marks that take no ink. Others, such as the zero-width space, are not printable, and no name has them."""


def plain(name: str) -> str:
    """A name that survives a table and a line of text: something to see, no control characters, no space around it."""
    if not UNSEEN.sub("", name).strip() or name != name.strip():
        raise ValueError("a name must not be blank, nor begin or end with a space")
    if not name.isprintable():
        raise ValueError("a name must not hold control characters")
    if name in (".", ".."):
        raise ValueError("a name must not be . or .., which mean something in an address")
    return name


def likeness(name: str) -> str:
    """What two names have in common that people cannot tell apart: case, Unicode form, invisible characters."""
    if name.isascii() and name.isprintable():
        return name.casefold().strip()
    seen = "".join(filter(str.isprintable, UNSEEN.sub("", unicodedata.normalize("NFKC", name))))
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", seen).casefold()).strip()


def alike(name: str, names: Iterable[str]) -> str | None:
    """Why a class cannot have this name beside the others, if it cannot."""
    wanted = likeness(name)
    for other in names:
        if other != name and likeness(other) == wanted:
            both = (repr(n) if repr(n) == ascii(n) else f"{n!r} ({n!a})" for n in (other, name))
            return f"classes {' and '.join(both)} differ only in case, Unicode form or invisible characters"
    return None


def two_alike(names: Iterable[str]) -> str | None:
    """Why these cannot be the names of several classes, if two of them cannot be told apart."""
    seen: dict[str, str] = {}
    return next((why for name in names if (why := alike(name, [seen.setdefault(likeness(name), name)]))), None)


CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


def legible(text: str) -> str:
    """What somebody typed or pasted: lines and tabs are fine."""
    if CONTROL.search(text):
        raise ValueError("a description must not hold control characters")
    return text
