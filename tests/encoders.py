"""Tiny text encoders as folders: the files that model2vec writes, written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from fewnode.formats.directory import write_safetensors

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
