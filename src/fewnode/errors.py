"""The one error that users can cause, the one warning, and the hint at what they may have meant."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Sequence

MOST_NAMED = 20
"""Unused things that a warning lists. A graph may have thousands."""


class FewnodeError(Exception):
    """Something in the input or the arguments is wrong: what, in which file or field, and what to do about it.

    As text it is one line that a user can act on. Arguments stand in it in backticks, as Python calls them; a door that
    calls them otherwise has it `worded`.

    >>> import fewnode
    >>> try:
    ...     fewnode.load("debain")
    ... except fewnode.FewnodeError as error:
    ...     print(error)
    debain: no such dataset; built in: debian (did you mean 'debian'?); fewnode data import reads your own
    """

    def __init__(self, what: str, place: object = "", remedy: str = "") -> None:
        super().__init__(what, place, remedy)
        self.what, self.place, self.remedy = what, str(place), remedy

    def __str__(self) -> str:
        what = f"{self.place}: {self.what}" if self.place else self.what
        return f"{what}; {self.remedy}" if self.remedy else what

    def worded(self, door: Callable[[str], str]) -> FewnodeError:
        """This error, which calls arguments as a door does."""
        return FewnodeError(worded(self.what, door), self.place, worded(self.remedy, door))


def worded(text: str, door: Callable[[str], str]) -> str:
    """A text of ours in which arguments stand in backticks, with the names that a door has for them.

    >>> worded("name the column: `text`", lambda name: f"--{name}")
    'name the column: --text'
    """
    return re.sub(r"`(\w+)`", lambda name: door(name[1]), text)


class UnusedInput(UserWarning):
    """Something that was given is not used; the message names it.

    >>> import fewnode, numpy as np
    >>> from fewnode.interchange import NetworkParts
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     parts = NetworkParts(np.array([[0], [1]]), 2, unused=("edge_attr",))
    ...     data = fewnode.Dataset.from_parts(parts)
    >>> print(told[0].message)
    not used: edge_attr
    >>> data.info["unused"]
    ['edge_attr']
    """


def warn_unused(names: Sequence[str], stacklevel: int) -> None:
    """Warn the caller so many calls above about what is not used."""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    warnings.warn(UnusedInput(visible(f"not used: {', '.join(names[:MOST_NAMED])}{more}")), stacklevel=stacklevel)


def visible(text: str) -> str:
    """Text from a file without what would move the cursor, colour the terminal or run backwards; lines stay."""
    return text if text.isprintable() else "".join(c if c.isprintable() or c == "\n" else "·" for c in text)


def closest(word: str, known: Iterable[str]) -> str:
    """` (did you mean X?)` if some known word is near `word` or contains it, else an empty string."""
    import difflib  # which most commands never need

    names, bare = list(known), _bare(word)
    near = [name for name in names if bare and _bare(name) == bare]
    near = near or difflib.get_close_matches(word, names, n=1, cutoff=0.75)
    if not near and len(word) >= 3:
        near = sorted((name for name in names if word.lower() in name.lower()), key=len)
    near = near or difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    return f" (did you mean {near[0]!r}?)" if near else ""


def _bare(word: str) -> str:
    """A word without what spreadsheets take off a number and people leave out: leading zeros, `.0`, spaces, case."""
    return re.sub(r"^0+|\.0+$", "", word.strip().lower())
