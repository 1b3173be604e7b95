"""Text encoders: whatever turns texts into vectors. A function, or a folder of model2vec or sentence-transformers.

Each text is encoded once, in batches of similar length. What a folder's encoder made of a text is kept in the user's
own cache, which may be deleted at any time. Files of a folder are data: JSON and safetensors. Pickled weights and code
in it are never opened, and nothing is downloaded.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import numpy as np
from pydantic import BaseModel, Field, FiniteFloat, ValidationError

from fewnode._system.files import cache_directory, one_line, read_text, readable
from fewnode.errors import FewnodeError
from fewnode.interchange import plain_array
from fewnode.tables.columns import Vectors
from fewnode.tables.encode import MAX_LENGTH

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
MAX_WEIGHTS = 1 << 33
MAX_CONFIG = 1 << 27
MAX_FILES = 100
_MODULE = re.compile(r"sentence_transformers\.((base|sentence_transformer)\.modules\.|models\.)[\w.]+")


class StoredEncoder(BaseModel, extra="forbid", strict=True):
    """What a dataset keeps of the encoder that its texts went through."""

    name: str
    sha256: str
    """Of its files; of a function, of what it makes of a sentence."""
    path: str | None = None
    """The folder it was read from; a function has none."""
    probe: Annotated[list[FiniteFloat], Field(max_length=PROBED)]


@dataclass(frozen=True, eq=False)
class Encoder:
    """A text encoder with what it goes by in a dataset."""

    encode: TextEncoder
    stored: StoredEncoder
    width: int

    @classmethod
    def of(cls, source: EncoderSource, expected: str | None = None) -> Encoder:
        """The encoder in a folder, whose SHA-256 may be `expected`, or that a function is."""
        path = None
        if isinstance(source, (str, os.PathLike)):
            path = Path(source).resolve()
            encode, sha256 = _open_folder(path, expected)
            name, probe = path.name, _checked(path.name, encode, [PROBE])[0]
        elif callable(source):
            encode, name = source, str(getattr(source, "__qualname__", type(source).__qualname__))[:200]
            probe = _checked(name, source, [PROBE])[0]
            sha256 = hashlib.sha256(np.round(probe, 3).tobytes()).hexdigest()
        else:
            raise FewnodeError(f"the encoder is a {type(source).__name__}, expected a function or a folder")
        stored = StoredEncoder(
            name=name, sha256=sha256, path=str(path) if path else None, probe=probe[:PROBED].tolist()
        )
        return cls(encode, stored, len(probe))

    @classmethod
    def of_dataset(cls, stored: Mapping[str, Any], given: EncoderSource | None, owner: str) -> Encoder:
        """The encoder that a dataset was made with: the given one if it is the same, or else that of its folder."""
        try:
            kept = StoredEncoder.model_validate(stored)
        except ValidationError:
            raise FewnodeError("the stored encoder is not one that fewnode wrote") from None
        name, sha256 = kept.name, kept.sha256
        if given is None:
            if kept.path is None:
                raise FewnodeError(f"texts of {owner} went through the function {name}; give it: encoder={name}")
            try:
                return cls.of(kept.path, sha256)
            except FewnodeError as error:
                raise FewnodeError(f"texts of {owner} went through {name}, which cannot be opened: {error}") from None
        encoder = cls.of(given)
        mine = encoder.stored
        close = len(mine.probe) == len(kept.probe) and np.allclose(mine.probe, kept.probe, rtol=1e-2, atol=1e-3)
        if mine.sha256 != sha256 and ((kept.path is not None and mine.path is not None) or not close):
            raise FewnodeError(
                f"texts of {owner} went through the encoder {name} ({sha256[:12]}), and {mine.name} "
                f"({mine.sha256[:12]}) is another one; give that one, or import the tables again"
            )
        return encoder

    def vectors(self, texts: Sequence[str], progress: Progress = lambda done, total: None) -> Vectors:
        """A row for each text, of NaN where it is blank."""
        wanted = list(dict.fromkeys(text for text in texts if text.strip()))
        with _cache(self.stored.sha256 if self.stored.path else None) as cache:
            known = {text: row for text, row in _kept(cache, wanted).items() if len(row) == self.width}
            todo = sorted((text for text in wanted if text not in known), key=len, reverse=True)
            for start in range(0, len(todo), BATCH):
                batch = todo[start : start + BATCH]
                made = _checked(self.stored.name, self.encode, batch, self.width)
                known |= zip(batch, made, strict=True)
                _keep(cache, batch, made)
                progress(len(known), len(wanted))
        rows = np.full((len(texts), self.width), np.nan, np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[:] = known.get(text, np.nan)
        return rows


def _checked(name: str, encode: TextEncoder, batch: list[str], width: int | None = None) -> Vectors:
    """What an encoder makes of some texts: finite numbers, a row for each."""
    try:
        made = np.asarray(plain_array(encode(list(batch))))
    except FewnodeError:
        raise
    except Exception as error:  # whatever a user's function raises
        raise FewnodeError(f"the encoder {name} failed ({type(error).__name__}: {one_line(error)})") from error
    if made.ndim != 2 or len(made) != len(batch) or made.dtype.kind not in "biuf":
        raise FewnodeError(
            f"the encoder {name} made {made.dtype} {made.shape} of {len(batch)} texts, expected a row of numbers each"
        )
    if not 0 < made.shape[1] <= MAX_LENGTH or made.shape[1] != (width or made.shape[1]):
        expected = f"{width:,} as before" if width else f"1 to {MAX_LENGTH:,}"
        raise FewnodeError(f"the encoder {name} made vectors of {made.shape[1]:,} numbers, expected {expected}")
    with np.errstate(over="ignore"):
        vectors = made.astype(np.float32)
    if not np.isfinite(vectors).all():
        row = int(np.argmin(np.isfinite(vectors).all(axis=1)))
        raise FewnodeError(f"the encoder {name} made numbers that are not finite of {batch[row][:60]!r}")
    return vectors


# --- a folder -----------------------------------------------------------------------------------------------------


def _open_folder(folder: Path, expected: str | None) -> tuple[TextEncoder, str]:
    """The encoder in a folder and the SHA-256 of its files. Files of another one than `expected` are not opened."""
    if not folder.is_dir():
        raise FewnodeError(f"{folder}: no such folder; an encoder is a folder on this machine, nothing is downloaded")
    files = sorted(path for pattern in ("*", "*/*") for path in folder.glob(pattern) if path.is_file())
    files = [path for path in files if path.suffix in (".json", ".txt", ".safetensors", ".model")]
    if len(files) > MAX_FILES:
        raise FewnodeError(f"{folder}: {len(files):,} files, expected at most {MAX_FILES}; this is no encoder")
    states = tuple((path, path.stat().st_size, path.stat().st_mtime_ns) for path in files)
    for path, size, _ in states:
        if size > (MAX_WEIGHTS if path.suffix == ".safetensors" else MAX_CONFIG):
            raise FewnodeError(f"{path}: {size >> 20:,} MB, too large for what it is")
    sha256 = _digest(folder, states)
    if expected not in (None, sha256):
        raise FewnodeError(f"{folder}: another encoder ({sha256[:12]}) than expected ({str(expected)[:12]})")
    return _opened(folder, frozenset(str(path.relative_to(folder)) for path in files), sha256), sha256


@lru_cache(maxsize=8)
def _digest(folder: Path, states: tuple[tuple[Path, int, int], ...]) -> str:
    """Of the files and their names, read again when one has changed."""
    digest = hashlib.sha256()
    for path, *_ in states:
        with readable(path) as file:
            digest.update(f"{path.relative_to(folder)}\0{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return digest.hexdigest()


@lru_cache(maxsize=2)
def _opened(folder: Path, files: frozenset[str], _sha256: str) -> TextEncoder:
    """The same object until the files change."""
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1")  # before the first import: read only then
    kinds = _module_kinds(folder / "modules.json") if "modules.json" in files else []
    library = None
    if "model.safetensors" in files and "tokenizer.json" in files and set(kinds) <= {"StaticEmbedding", "Normalize"}:
        library = "model2vec"
    elif kinds and any(name.endswith("model.safetensors") for name in files):
        library = "sentence_transformers"
    if library is None:
        raise FewnodeError(
            f"{folder}: no encoder that can be read; expected model.safetensors and tokenizer.json of model2vec, or "
            "modules.json and model.safetensors of sentence-transformers; weights in .bin files can run code: not read"
        )
    try:
        module = importlib.import_module(library)
    except ModuleNotFoundError:
        raise FewnodeError(f"this encoder needs {library}: pip install 'fewnode[text]'") from None
    try:
        if library == "model2vec":
            model = module.StaticModel.from_pretrained(str(folder), force_download=False)
        else:
            safe = {"local_files_only": True, "trust_remote_code": False, "model_kwargs": {"use_safetensors": True}}
            model = module.SentenceTransformer(str(folder), device="cpu", **safe)
    except BaseException as error:  # at files that are not theirs; tokenizers' panics are no `Exception`
        if not (isinstance(error, Exception) or "Panic" in type(error).__name__):
            raise
        raise FewnodeError(f"{folder}: cannot be read as an encoder ({one_line(error)})") from None
    return lambda texts: model.encode(texts, show_progress_bar=False)


def _module_kinds(path: Path) -> list[str]:
    """The types of a folder's modules; only those of the library itself are let in, and files of this folder."""
    try:
        modules = json.loads(read_text(path, 1 << 20))
    except (ValueError, RecursionError) as error:
        raise FewnodeError(f"{path}: not JSON ({one_line(error)})") from None
    if not isinstance(modules, list):
        raise FewnodeError(f"{path}: expected a list of modules")
    kinds = []
    for module in modules:
        kind, place = (str(module.get(key, "")) for key in ("type", "path")) if isinstance(module, dict) else ("", "")
        if ".." in place or os.path.isabs(place):
            raise FewnodeError(f"{path}: a module in {place[:60]!r}, which is outside of the folder")
        if not _MODULE.fullmatch(kind):
            raise FewnodeError(f"{path}: a module of type {kind[:60]!r}; only sentence-transformers' own run")
        kinds.append(kind.rpartition(".")[2])
    return kinds


# --- vectors of texts, kept between commands ----------------------------------------------------------------------


@contextmanager
def _cache(sha256: str | None) -> Iterator[sqlite3.Connection]:
    """One SQLite file for each encoder. Where it cannot be read or written, texts are encoded anew."""
    file = sqlite3.connect(":memory:")
    if sha256 is not None:
        with suppress(sqlite3.Error, OSError):
            folder = cache_directory("vectors")
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            file = sqlite3.connect(folder / f"{sha256}.sqlite", timeout=5)
            file.execute("PRAGMA synchronous = OFF")  # after a power cut a row may be damaged: each has a sum
            file.execute("CREATE TABLE IF NOT EXISTS vectors (text BLOB PRIMARY KEY, vector BLOB NOT NULL)")
    try:
        yield file
    finally:
        file.close()


def _kept(cache: sqlite3.Connection, texts: Sequence[str]) -> dict[str, Vectors]:
    """The vectors of those texts that are there, without those that are not what was written."""
    found = {}
    with suppress(sqlite3.Error):
        for text in texts:
            [blob] = cache.execute("SELECT vector FROM vectors WHERE text = ?", [_key(text)]).fetchone() or [b""]
            if isinstance(blob, bytes) and len(blob) % 4 == 0 and hashlib.sha256(blob[32:]).digest() == blob[:32]:
                found[text] = np.frombuffer(blob[32:], "<f4").astype(np.float32)
    return found


def _keep(cache: sqlite3.Connection, texts: Sequence[str], vectors: Vectors) -> None:
    numbers = [vector.astype("<f4").tobytes() for vector in vectors]
    rows = [(_key(t), hashlib.sha256(n).digest() + n) for t, n in zip(texts, numbers, strict=True)]
    with suppress(sqlite3.Error), cache:
        cache.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
