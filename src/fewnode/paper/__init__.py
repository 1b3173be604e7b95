"""The paper's four networks, as it says they are, and its case study (sections 5.1 and 5.4)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from fewnode.dataset import Dataset
from fewnode.paper.linked_texts import DUMPS, build_linked_texts
from fewnode.paper.reddit import build_reddit

BUILDERS: dict[str, Callable[[Path], Dataset]] = {
    **{name: partial(build_linked_texts, name) for name in DUMPS},
    "reddit": build_reddit,
}
"""Each takes the raw dump of a network, a file or a folder that has it."""
