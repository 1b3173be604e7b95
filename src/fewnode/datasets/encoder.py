"""Text encoders: whatever turns texts into vectors. Each text is encoded once, in batches of similar length."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from fewnode.datasets.encoder_folder import open_folder
from fewnode.datasets.standardise import MAX_LENGTH, Vectors
from fewnode.datasets.vector_cache import VectorCache
from fewnode.errors import FewnodeError
from fewnode.interchange import plain_array
from fewnode.machine.files import one_line

TextEncoder: TypeAlias = Callable[[list[str]], Any]
"""A row of numbers for each text."""
EncoderSource: TypeAlias = TextEncoder | str | os.PathLike[str]
Progress: TypeAlias = Callable[[int, int], None]
"""How many texts are encoded, of how many."""

COLUMN = "encoded text"
BATCH = 64
PROBE = "The quick brown fox jumps over the lazy dog near 12 rivers."
PROBED = 16
"""So many numbers of the vector of one sentence tell an encoder from another."""


@dataclass(frozen=True, eq=False)
class Encoder:
    """A text encoder with what it goes by in a dataset."""

    encode: TextEncoder
    name: str
    sha256: str
    """Of its files; of a function, of what it makes of a sentence."""
    probe: tuple[float, ...]
    width: int
    path: str | None = None
    """The folder it was read from; a function has none."""

    @classmethod
    def of(cls, source: EncoderSource, expected: str | None = None) -> Encoder:
        """The encoder in a folder, whose SHA-256 may be `expected`, or that a function is."""
        if isinstance(source, (str, os.PathLike)):
            opened = open_folder(Path(source), expected)
            probe = _probe(opened.name, opened.encode)
            return cls(opened.encode, opened.name, opened.sha256, _start(probe), len(probe), str(opened.folder))
        if not callable(source):
            raise FewnodeError(f"the encoder is a {type(source).__name__}, expected a function or a folder")
        name = str(getattr(source, "__qualname__", type(source).__qualname__))[:200]
        probe = _checked(name, source, [PROBE])[0]
        return cls(source, name, hashlib.sha256(np.round(probe, 3).tobytes()).hexdigest(), _start(probe), len(probe))

    def vectors(self, texts: Sequence[str], progress: Progress = lambda done, total: None) -> Vectors:
        """A row for each text, of NaN where it is blank. What a folder's encoder made before is remembered."""
        wanted = list(dict.fromkeys(text for text in texts if text.strip()))
        with VectorCache(self.sha256 if self.path else None) as cache:
            known = {text: row for text, row in cache.read(wanted).items() if len(row) == self.width}
            todo = sorted((text for text in wanted if text not in known), key=len, reverse=True)
            for batch in _batches(todo):
                made = _checked(self.name, self.encode, batch, self.width)
                known |= zip(batch, made, strict=True)
                cache.write(batch, made)
                progress(len(known), len(wanted))
        found = np.full((len(texts), self.width), np.nan, np.float32)
        for row, text in zip(found, texts, strict=True):
            row[:] = known.get(text, np.nan)
        return found

    # --- with a dataset -------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "sha256": self.sha256, "path": self.path, "probe": list(self.probe)}

    @classmethod
    def of_dataset(cls, stored: Mapping[str, Any], given: EncoderSource | None, owner: str) -> Encoder:
        """The encoder that a dataset was made with: the given one if it is the same, or else that of its folder."""
        name, sha256, path, probe = _stored(stored)
        if given is None and path is None:
            raise FewnodeError(f"texts of {owner} went through the function {name}; give it: encoder={name}")
        if given is None and path is not None:
            try:
                return cls.of(path, sha256)
            except FewnodeError as error:
                raise FewnodeError(f"texts of {owner} went through {name}, which cannot be opened: {error}") from None
        found = cls.of(given)  # type: ignore[arg-type]  # it is there
        both_folders = path is not None and found.path is not None
        close = len(found.probe) == len(probe) and np.allclose(found.probe, probe, rtol=1e-2, atol=1e-3)
        if found.sha256 != sha256 and (both_folders or not close):
            raise FewnodeError(
                f"texts of {owner} went through the encoder {name} ({sha256[:12]}), and {found.name} "
                f"({found.sha256[:12]}) is another one; give that one, or import the tables again"
            )
        return found


@lru_cache(maxsize=4)
def _probe(name: str, encode: TextEncoder) -> Vectors:
    """Of a folder's encoder, which is the same object until its files change."""
    vector: Vectors = _checked(name, encode, [PROBE])[0]
    return vector


def _start(vector: Vectors) -> tuple[float, ...]:
    return tuple(vector[:PROBED].tolist())


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(texts), BATCH):
        yield list(texts[start : start + BATCH])


def _checked(name: str, encode: TextEncoder, batch: list[str], width: int | None = None) -> Vectors:
    """What an encoder makes of some texts: finite numbers, a row for each."""
    try:
        found = np.asarray(plain_array(encode(list(batch))))
    except FewnodeError:
        raise
    except Exception as error:  # whatever a user's function raises
        raise FewnodeError(f"the encoder {name} failed ({type(error).__name__}: {one_line(error)})") from error
    if found.ndim != 2 or len(found) != len(batch) or found.dtype.kind not in "biuf":
        raise FewnodeError(
            f"the encoder {name} made {found.dtype} {found.shape} of {len(batch)} texts, expected a row of numbers each"
        )
    if not 0 < found.shape[1] <= MAX_LENGTH or found.shape[1] != (width or found.shape[1]):
        expected = f"{width:,} as before" if width else f"1 to {MAX_LENGTH:,}"
        raise FewnodeError(f"the encoder {name} made vectors of {found.shape[1]:,} numbers, expected {expected}")
    with np.errstate(over="ignore"):
        vectors = found.astype(np.float32)
    if not np.isfinite(vectors).all():
        row = int(np.argmin(np.isfinite(vectors).all(axis=1)))
        raise FewnodeError(f"the encoder {name} made numbers that are not finite of {batch[row][:60]!r}")
    return vectors


def _stored(stored: Mapping[str, Any]) -> tuple[str, str, str | None, list[float]]:
    """What a dataset, which may be anybody's, says of its encoder."""
    name, sha256, path, probe = (stored.get(key) for key in ("name", "sha256", "path", "probe"))
    fits = isinstance(name, str) and isinstance(sha256, str) and (path is None or isinstance(path, str))
    fits &= isinstance(probe, list) and len(probe) <= PROBED
    if not fits or not all(isinstance(each, float) and math.isfinite(each) for each in probe or ()):
        raise FewnodeError("the stored encoder is not one that fewnode wrote")
    return str(name), str(sha256), path, list(probe or ())
