"""Tiny text encoders as folders: the files that model2vec and ONNX exports consist of, written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from fewnode.storage.io import write_safetensors

TOKENS = ["[PAD]", "[UNK]", "mail", "vpn", "send", "filter", "the", "fox", "dog"]
TABLE = np.random.default_rng(0).normal(size=(len(TOKENS), 4)).astype(np.float32)


def write_tokenizer(folder: Path) -> None:
    """Lower-case words; one that is not in `TOKENS` is [UNK]."""
    vocabulary = {token: i for i, token in enumerate(TOKENS)}
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))


def static_folder(folder: Path, normalize: bool = False, **more: Any) -> Path:
    """As model2vec writes it: a vector for each token."""
    write_tokenizer(folder)
    (folder / "config.json").write_text(json.dumps({"normalize": normalize}))
    write_safetensors(folder / "model.safetensors", {"embeddings": TABLE, **more})
    return folder


def onnx_folder(
    folder: Path, inputs: tuple[str, ...] = ("input_ids", "attention_mask"), elsewhere: str | None = None
) -> Path:
    """A model that looks up the vector of each token: input_ids -> Gather(TABLE) -> last_hidden_state.

    Its table may be said to be in a file elsewhere.
    """
    write_tokenizer(folder)
    (folder / "model.onnx").write_bytes(_model(inputs, elsewhere))
    return folder


# --- ONNX is protobuf: a field is its number and wire type, then a varint or a length and bytes --------------------


def _varint(value: int) -> bytes:
    low, rest = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + _varint(rest) if rest else bytes([low])


def _field(number: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    blob = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(blob)) + blob


def _value(name: str, kind: int, axes: tuple[str, ...]) -> bytes:
    shape = b"".join(_field(1, _field(2, axis)) for axis in axes)
    return _field(1, name) + _field(2, _field(1, _field(1, kind) + _field(2, shape)))


def _model(inputs: tuple[str, ...], elsewhere: str | None) -> bytes:
    floats, longs = 1, 7
    table = b"".join(_field(1, size) for size in TABLE.shape) + _field(2, floats) + _field(8, "table")
    table += (
        _field(9, TABLE.tobytes()) if elsewhere is None else _field(13, _field(1, "location") + _field(2, elsewhere))
    )
    table += b"" if elsewhere is None else _field(14, 1)
    gather = _field(1, "table") + _field(1, "input_ids") + _field(2, "last_hidden_state") + _field(4, "Gather")
    graph = _field(1, gather) + _field(2, "lookup") + _field(5, table)
    graph += b"".join(_field(11, _value(name, longs, ("batch", "tokens"))) for name in inputs)
    graph += _field(12, _value("last_hidden_state", floats, ("batch", "tokens", "width")))
    return _field(1, 8) + _field(7, graph) + _field(8, _field(1, "") + _field(2, 13))
