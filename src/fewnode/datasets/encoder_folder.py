"""Text encoders in a local folder: model2vec, ONNX with a tokenizer, or sentence-transformers. Nothing is downloaded.

Files of the folder are data: JSON, safetensors and ONNX. Pickled weights and code in it are never opened.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from fewnode.datasets.standardise import Vectors
from fewnode.errors import FewnodeError
from fewnode.machine.files import one_line, read_text, readable
from fewnode.storage.io import read_safetensors

MAX_CONFIG = 1 << 20
MAX_TOKENIZER = 1 << 27
MAX_WEIGHTS = 1 << 33
MAX_FILES = 100
MAX_TOKENS = 512
"""Of a text: what is behind them is not read, as in the libraries that such folders are made by."""

_KINDS = (".json", ".txt", ".safetensors", ".onnx", ".model")
ONNX = ("model.onnx", "onnx/model.onnx")
EXPECTED = "model.safetensors with embeddings (model2vec), model.onnx, or modules.json (sentence-transformers)"
_MODULE = re.compile(r"sentence_transformers\.((base|sentence_transformer)\.modules\.|models\.)[\w.]+")
_ELSEWHERE = b"\x0a\x08location"
"""How an ONNX file says in which other file, anywhere, a tensor is."""
_MODES = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
_POOLED = {"Transformer", "Pooling", "Normalize"}


@dataclass(frozen=True, eq=False)
class FolderEncoder:
    """An encoder and the files it was read from."""

    name: str
    folder: Path
    sha256: str
    encode: Callable[[list[str]], Any]


def open_folder(path: Path, expected: str | None = None) -> FolderEncoder:
    """The encoder in a folder. One that was opened before, and whose files have not changed, is the same again.

    If a SHA-256 is `expected`, files that have another one are not opened: a dataset may name any folder.
    """
    folder = path.resolve()
    if not folder.is_dir():
        raise FewnodeError(f"{path}: no such folder; an encoder is a folder on this machine, nothing is downloaded")
    files = _known_files(folder)
    states = [(folder / name).stat() for name in files]
    for name, state in zip(files, states, strict=True):
        if state.st_size > MAX_WEIGHTS:
            raise FewnodeError(f"{folder / name}: larger than {MAX_WEIGHTS >> 30} GB, refused")
    now = tuple((state.st_size, state.st_mtime_ns) for state in states)
    sha256 = _digest(folder, files, now)
    if expected not in (None, sha256):
        raise FewnodeError(f"{folder}: another encoder ({sha256[:12]}) than expected ({str(expected)[:12]})")
    return FolderEncoder(folder.name, folder, sha256, _opened(folder, files, sha256))


def _known_files(folder: Path) -> tuple[str, ...]:
    """What encoders are made of, here and in the folders below; nothing else is looked at."""
    found = sorted(path for pattern in ("*", "*/*") for path in folder.glob(pattern) if path.is_file())
    kept = [str(path.relative_to(folder)) for path in found if path.suffix in _KINDS]
    kept = [name for name in kept if not name.endswith(".onnx") or name in ONNX]
    if len(kept) > MAX_FILES:
        raise FewnodeError(f"{folder}: {len(kept):,} files, expected at most {MAX_FILES}; this is no encoder")
    return tuple(kept)


@lru_cache(maxsize=8)
def _digest(folder: Path, files: Sequence[str], _states: tuple[tuple[int, int], ...]) -> str:
    digest = hashlib.sha256()
    for name in files:
        with readable(folder / name) as file:
            digest.update(f"{name}\0{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return digest.hexdigest()


@lru_cache(maxsize=2)
def _opened(folder: Path, files: tuple[str, ...], _sha256: str) -> Callable[[list[str]], Any]:
    tokenizer, weights, modules = (name in files for name in ("tokenizer.json", "model.safetensors", "modules.json"))
    if tokenizer and weights and (static := _static(folder)):
        return static
    if modules and weights and _has("sentence_transformers"):
        return _sentence_transformer(folder)
    if tokenizer and (model := next((name for name in ONNX if name in files), None)):
        return _onnx(folder, model)
    if modules:
        raise FewnodeError(
            f"{folder}: needs sentence-transformers (pip install sentence-transformers) and model.safetensors, "
            "or model.onnx and tokenizer.json in it; weights in .bin files, which can run code, are not read"
        )
    raise FewnodeError(f"{folder}: no encoder that can be read; expected tokenizer.json and {EXPECTED}")


# --- model2vec ----------------------------------------------------------------------------------------------------


def _static(folder: Path) -> Callable[[list[str]], Vectors] | None:
    """The mean of the vectors of a text's tokens. None if the folder has no matrix of them."""
    path = folder / "model.safetensors"
    tensors = read_safetensors(path)[1]
    held = next((tensors[name] for name in ("embeddings", "embedding.weight") if name in tensors), None)
    if held is None:
        return None
    if held.ndim != 2:
        raise FewnodeError(f"{path}: embeddings have shape {tuple(held.shape)}, expected a row for each token")
    table = held.astype(np.float32)
    tokenizer = _tokenizer(folder, special=False)
    n = tokenizer.get_vocab_size()
    row = tensors["mapping"].astype(np.int64) if "mapping" in tensors else np.arange(len(table))
    weight = tensors["weights"].astype(np.float32) if "weights" in tensors else np.ones(len(row), np.float32)
    if row.ndim != 1 or weight.shape != row.shape or len(row) < n or row.min(initial=0) < 0 or row.max() >= len(table):
        raise FewnodeError(f"{path}: {len(table):,} embeddings do not fit the {n:,} tokens of tokenizer.json")
    unit, unknown = bool(_config(folder / "config.json").get("normalize")), _unknown_token(tokenizer)

    def encode(texts: list[str]) -> Vectors:
        found = np.zeros((len(texts), table.shape[1]), np.float32)
        for i, tokens in enumerate(tokenizer.encode_batch(texts, add_special_tokens=False)):
            ids = [token for token in tokens.ids if token != unknown]
            if ids:
                found[i] = (table[row[ids]] * weight[ids, None]).mean(axis=0)
        return _unit_rows(found) if unit else found

    return encode


def _unknown_token(tokenizer: Any) -> int | None:
    token = getattr(tokenizer.model, "unk_token", None)
    return tokenizer.token_to_id(token) if isinstance(token, str) else None


# --- ONNX ---------------------------------------------------------------------------------------------------------


def _onnx(folder: Path, model: str) -> Callable[[list[str]], Vectors]:
    """A transformer whose token vectors are averaged, unless it makes one vector of a text itself."""
    runtime = _need("onnxruntime")
    first_token, unit = _pooling(folder)
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = _threads(), 3
    with readable(folder / model) as file:
        blob = file.read()
    if _ELSEWHERE in blob:
        raise FewnodeError(f"{folder / model}: its weights are in other files; save it as one file")
    with _failing(folder / model):
        session = runtime.InferenceSession(blob, options, providers=["CPUExecutionProvider"])
    asked = [each.name for each in session.get_inputs()]
    outputs = [each.name for each in session.get_outputs()]
    if unknown := [name for name in asked if name not in ("input_ids", "attention_mask", "token_type_ids")]:
        raise FewnodeError(f"{folder / model}: it asks for {unknown[0]!r}, expected input_ids and attention_mask")
    wanted = "sentence_embedding" if "sentence_embedding" in outputs else outputs[0]
    tokenizer = _tokenizer(folder, special=True)

    def encode(texts: list[str]) -> Vectors:
        tokens = tokenizer.encode_batch(texts)
        mask = np.array([each.attention_mask for each in tokens], np.int64)
        given = {
            "input_ids": np.array([each.ids for each in tokens], np.int64),
            "attention_mask": mask,
            "token_type_ids": np.array([each.type_ids for each in tokens], np.int64),
        }
        made = np.asarray(session.run([wanted], {name: given[name] for name in asked})[0], np.float32)
        if made.ndim == 3:
            counted = mask[:, :, None].astype(np.float32)
            made = made[:, 0] if first_token else (made * counted).sum(axis=1) / np.maximum(counted.sum(axis=1), 1)
        return _unit_rows(made) if unit else made

    return encode


def _pooling(folder: Path) -> tuple[bool, bool]:
    """Whether the first token's vector is that of the text, and whether vectors get unit length."""
    kinds = [_module_kind(folder, each) for each in _modules(folder)]
    if odd := [kind for kind in kinds if kind not in _POOLED]:
        raise FewnodeError(f"{folder / 'modules.json'}: {odd[0]!r} is not known here; it needs sentence-transformers")
    path = folder / "1_Pooling" / "config.json"
    pooling = _config(path)
    chosen = [_MODES.get(name, name) for name, used in pooling.items() if name in _MODES and used is True]
    chosen = [str(pooling["pooling_mode"])] if "pooling_mode" in pooling else chosen or ["mean"]
    if chosen not in (["mean"], ["cls"]):
        raise FewnodeError(f"{path}: pooling by {' and '.join(chosen)} needs sentence-transformers; here: mean or cls")
    return chosen == ["cls"], "Normalize" in kinds


def _modules(folder: Path) -> list[Any]:
    path = folder / "modules.json"
    found = _json(path) if path.is_file() else []
    if not isinstance(found, list):
        raise FewnodeError(f"{path}: expected a list of modules")
    return found


def _module_kind(folder: Path, module: Any) -> str:
    """The last word of a module's type; only those of the library itself are let in, and files of this folder."""
    kind, place = (str(module.get(key, "")) for key in ("type", "path")) if isinstance(module, dict) else ("", "")
    if ".." in place or os.path.isabs(place):
        raise FewnodeError(f"{folder / 'modules.json'}: a module in {place[:60]!r}, which is outside of the folder")
    if not _MODULE.fullmatch(kind):
        raise FewnodeError(
            f"{folder / 'modules.json'}: a module of type {kind[:60]!r}; only sentence-transformers' own run"
        )
    return kind.rpartition(".")[2]


# --- sentence-transformers ----------------------------------------------------------------------------------------


def _sentence_transformer(folder: Path) -> Callable[[list[str]], Any]:
    for module in _modules(folder):
        _module_kind(folder, module)
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1")  # before its first import: read only then
    library = _need("sentence_transformers")
    with _failing(folder):
        model = library.SentenceTransformer(
            str(folder),
            device="cpu",
            local_files_only=True,
            trust_remote_code=False,
            model_kwargs={"use_safetensors": True},
        )

    def encode(texts: list[str]) -> Any:
        return model.encode(texts, show_progress_bar=False, convert_to_numpy=True)

    return encode


# --- files --------------------------------------------------------------------------------------------------------


def _tokenizer(folder: Path, special: bool) -> Any:
    path = folder / "tokenizer.json"
    library = _need("tokenizers")
    text = read_text(path, MAX_TOKENIZER)
    with _failing(path):
        tokenizer = library.Tokenizer.from_str(text)
        limit = _config(folder / "sentence_bert_config.json").get("max_seq_length")
        fits = isinstance(limit, int) and 0 < limit <= MAX_TOKENS
        tokenizer.enable_truncation(limit if special and fits else MAX_TOKENS)
        if special:
            pad = (tokenizer.padding or {}) if isinstance(tokenizer.padding, dict) else {}
            tokenizer.enable_padding(pad_id=pad.get("pad_id", 0), pad_token=pad.get("pad_token", "[PAD]"))
        else:
            tokenizer.no_padding()
    return tokenizer


def _config(path: Path) -> dict[str, Any]:
    """A table of settings; an empty one if there is no such file."""
    found = _json(path) if path.is_file() else {}
    if not isinstance(found, dict):
        raise FewnodeError(f"{path}: expected a table of settings")
    return found


def _json(path: Path) -> Any:
    try:
        return json.loads(read_text(path, MAX_CONFIG))
    except (ValueError, RecursionError) as error:
        raise FewnodeError(f"{path}: not JSON ({one_line(error)})") from None


def _need(library: str) -> Any:
    import importlib

    try:
        return importlib.import_module(library)
    except ModuleNotFoundError:
        raise FewnodeError(f"this encoder needs {library}: pip install 'fewnode[text]'") from None


def _has(library: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(library) is not None


def _threads() -> int:
    import torch

    return torch.get_num_threads()


@contextmanager
def _failing(path: Path) -> Iterator[None]:
    """What libraries raise at files that are not theirs; tokenizers' panics are no `Exception`."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, FewnodeError) or not (isinstance(error, Exception) or "Panic" in type(error).__name__):
            raise
        raise FewnodeError(f"{path}: cannot be read as an encoder ({one_line(error)})") from None


def _unit_rows(vectors: Vectors) -> Vectors:
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(length == 0, 1, length), np.float32)
