"""Vectors of texts, kept between commands: encoding them takes long, and the next import has most of them again.

One SQLite file for each encoder, in the user's own cache folder. It can be deleted at any time. Where it cannot be read
or written, texts are encoded anew.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from fewnode.datasets.standardise import Vectors
from fewnode.machine.files import cache_directory

ASKED = 500
"""Texts of one question: SQLite takes a thousand."""


class VectorCache:
    """What the encoder with this hash made of texts before; nothing without a hash."""

    def __init__(self, sha256: str | None) -> None:
        self.sha256 = sha256
        self.file: sqlite3.Connection | None = None

    def __enter__(self) -> VectorCache:
        if self.sha256 is not None:
            with suppress(sqlite3.Error, OSError):
                folder = cache_directory("vectors")
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                self.file = sqlite3.connect(folder / f"{self.sha256}.sqlite", timeout=5)
                self.file.execute("PRAGMA synchronous = OFF")  # after a power cut a row may be damaged: each has a sum
                self.file.execute("CREATE TABLE IF NOT EXISTS vectors (text BLOB PRIMARY KEY, vector BLOB NOT NULL)")
        return self

    def __exit__(self, *_: object) -> None:
        if self.file is not None:
            self.file.close()

    def read(self, texts: Sequence[str]) -> dict[str, Vectors]:
        """The vectors of those texts that are there."""
        if self.file is None:
            return {}
        by_key = {_key(text): text for text in texts}
        keys, found = list(by_key), dict[bytes, object]()
        with suppress(sqlite3.Error):
            for start in range(0, len(keys), ASKED):
                some = keys[start : start + ASKED]
                asked = f"SELECT text, vector FROM vectors WHERE text IN ({','.join('?' * len(some))})"  # noqa: S608
                found |= dict(self.file.execute(asked, some))
        vectors = {by_key[key]: _vector(blob) for key, blob in found.items()}
        return {text: vector for text, vector in vectors.items() if vector is not None}

    def write(self, texts: Sequence[str], vectors: Vectors) -> None:
        if self.file is None:
            return
        rows = [(_key(text), _blob(vector)) for text, vector in zip(texts, vectors, strict=True)]
        with suppress(sqlite3.Error), self.file:
            self.file.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _blob(vector: Vectors) -> bytes:
    numbers = vector.astype("<f4").tobytes()
    return hashlib.sha256(numbers).digest() + numbers


def _vector(blob: object) -> Vectors | None:
    """Nothing if the file holds something else than what was written."""
    if not isinstance(blob, bytes) or hashlib.sha256(blob[32:]).digest() != blob[:32] or len(blob) % 4:
        return None
    return np.frombuffer(blob[32:], "<f4").astype(np.float32)
