"""Text encoders: whatever turns texts into vectors. A function, or a folder of model2vec or sentence-transformers.

Each text is encoded once, in batches of similar length. Files of a folder are data: JSON and safetensors. Pickled
weights and code in it are never opened, and nothing is downloaded.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import numpy as np
from pydantic import BaseModel, Field, FiniteFloat, TypeAdapter, ValidationError

from fewnode._system.files import atomic_write, cache_directory, one_line, read_text, readable
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
FEW = 64
"""Texts that are encoded each time anew: sentences that people write."""
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
    """The hash of its files; of a function, that of what it makes of a sentence."""
    path: str | None = None
    """The folder it was read from; a function has none."""
    probe: Annotated[list[FiniteFloat], Field(max_length=PROBED)]


class _Module(BaseModel):
    """A line of `modules.json`."""

    type: str
    path: str = ""


_MODULES = TypeAdapter(list[_Module])


@dataclass(frozen=True, eq=False)
class Encoder:
    """A text encoder with what it goes by in a dataset."""

    encode: TextEncoder
    stored: StoredEncoder
    width: int

    @classmethod
    def of(cls, source: EncoderSource) -> Encoder:
        """The encoder in a folder, or that a function is."""
        path, sha256 = None, ""
        if isinstance(source, (str, os.PathLike)):
            path = Path(source).resolve()
            (encode, sha256), name = _open_folder(path), path.name
        elif callable(source):
            encode, name = source, str(getattr(source, "__qualname__", type(source).__qualname__))[:200]
        else:
            raise FewnodeError(f"the encoder is a {type(source).__name__}, expected a function or a folder")
        probe = _checked(name, encode, [PROBE])[0]
        sha256 = sha256 or hashlib.sha256(np.round(probe, 3).tobytes()).hexdigest()
        place = None if path is None else str(path)
        stored = StoredEncoder(name=name, sha256=sha256, path=place, probe=probe[:PROBED].tolist())
        return cls(encode, stored, len(probe))

    @classmethod
    def of_dataset(cls, stored: Mapping[str, Any], given: EncoderSource | None, owner: str) -> Encoder:
        """The encoder that a dataset was made with: the given one if it is the same, or else that of its folder."""
        try:
            kept = StoredEncoder.model_validate(stored)
        except ValidationError:
            raise FewnodeError("the stored encoder is not one that fewnode wrote") from None
        source = kept.path if given is None else given
        if source is None:
            raise FewnodeError(f"texts of {owner} went through the function {kept.name}; give it: encoder={kept.name}")
        try:
            encoder = cls.of(source)
        except FewnodeError as error:
            raise FewnodeError(f"texts of {owner} went through {kept.name}, which cannot be opened: {error}") from None
        mine = encoder.stored
        alike = len(mine.probe) == len(kept.probe) and np.allclose(mine.probe, kept.probe, rtol=1e-2, atol=1e-3)
        if mine.sha256 != kept.sha256 and ((kept.path is not None and mine.path is not None) or not alike):
            raise FewnodeError(
                f"texts of {owner} went through the encoder {kept.name} ({kept.sha256[:12]}), and {mine.name} "
                f"({mine.sha256[:12]}) is another one; give that one, or import the tables again"
            )
        return encoder

    def vectors(self, texts: Sequence[str], progress: Progress = lambda done, total: None) -> Vectors:
        """A row for each text, of NaN where it is blank. What a folder's encoder made is kept in the user's cache."""
        wanted = {text: i for i, text in enumerate(dict.fromkeys(text for text in texts if text.strip()))}
        key = hashlib.sha256("\0".join([self.stored.sha256, *wanted]).encode("utf-8", "surrogatepass")).hexdigest()
        cache = cache_directory("vectors") / f"{key}.npy" if self.stored.path and len(wanted) > FEW else None
        made = None if cache is None else _kept(cache, (len(wanted), self.width))
        if made is None:
            made, todo = np.empty((len(wanted), self.width), np.float32), sorted(wanted, key=len, reverse=True)
            for start in range(0, len(todo), BATCH):
                batch = todo[start : start + BATCH]
                made[[wanted[text] for text in batch]] = _checked(self.stored.name, self.encode, batch, self.width)
                progress(start + len(batch), len(todo))
            if cache is not None:
                with suppress(OSError), atomic_write(cache) as file:
                    np.save(file, made)
        place = np.array([wanted.get(text, -1) for text in texts], np.int64)
        rows = np.full((len(texts), self.width), np.nan, np.float32)
        rows[place >= 0] = made[place[place >= 0]]
        return rows


def _kept(cache: Path, shape: tuple[int, int]) -> Vectors | None:
    """What is in a file of the cache, if it is whole."""
    with suppress(OSError, ValueError, EOFError):
        vectors = np.load(cache)
        if vectors.shape == shape and vectors.dtype == np.float32 and np.isfinite(vectors).all():
            return np.asarray(vectors)
    return None


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


def _open_folder(folder: Path) -> tuple[TextEncoder, str]:
    """The encoder in a folder and the SHA-256 of its files; the same object until a file changes."""
    if not folder.is_dir():
        raise FewnodeError(f"{folder}: no such folder; an encoder is a folder on this machine, nothing is downloaded")
    files = sorted(path for pattern in ("*", "*/*") for path in folder.glob(pattern) if path.is_file())
    files = [path for path in files if path.suffix in (".json", ".txt", ".safetensors", ".model")]
    if len(files) > MAX_FILES:
        raise FewnodeError(f"{folder}: {len(files):,} files, expected at most {MAX_FILES}; this is no encoder")
    states = []
    for path in files:
        state = path.stat()
        if state.st_size > (MAX_WEIGHTS if path.suffix == ".safetensors" else MAX_CONFIG):
            raise FewnodeError(f"{path}: {state.st_size >> 20:,} MB, too large for what it is")
        states.append((str(path.relative_to(folder)), state.st_size, state.st_mtime_ns))
    return _opened(folder, tuple(states))


@lru_cache(maxsize=2)
def _opened(folder: Path, states: tuple[tuple[str, int, int], ...]) -> tuple[TextEncoder, str]:
    """What a library makes of the files, as long as they are these."""
    digest, files = hashlib.sha256(), [name for name, *_ in states]
    for name in files:
        with readable(folder / name) as file:
            digest.update(f"{name}\0{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
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
        if library == "model2vec":
            model = module.StaticModel.from_pretrained(str(folder), force_download=False)
        else:
            safe = {"local_files_only": True, "trust_remote_code": False, "model_kwargs": {"use_safetensors": True}}
            model = module.SentenceTransformer(str(folder), device="cpu", **safe)
    except ModuleNotFoundError:
        raise FewnodeError(f"this encoder needs {library}: pip install 'fewnode[text]'") from None
    except BaseException as error:  # at files that are not theirs; tokenizers' panics are no `Exception`
        if not (isinstance(error, Exception) or "Panic" in type(error).__name__):
            raise
        raise FewnodeError(f"{folder}: cannot be read as an encoder ({one_line(error)})") from None
    return lambda texts: model.encode(texts, show_progress_bar=False), digest.hexdigest()


def _module_kinds(path: Path) -> list[str]:
    """The types of a folder's modules; only those of the library itself are let in, and files of this folder."""
    try:
        modules = _MODULES.validate_json(read_text(path, 1 << 20))
    except ValidationError:
        raise FewnodeError(f"{path}: expected a list of modules, each with a type and a path") from None
    for module in modules:
        if ".." in module.path or os.path.isabs(module.path):
            raise FewnodeError(f"{path}: a module in {module.path[:60]!r}, which is outside of the folder")
        if not _MODULE.fullmatch(module.type):
            raise FewnodeError(f"{path}: a module of type {module.type[:60]!r}; only sentence-transformers' own run")
    return [module.type.rpartition(".")[2] for module in modules]
