"""Bytes like given ones, but wrong: what runs in the tests, where no coverage leads the way."""

from __future__ import annotations

import random

WORDS = [
    *(
        b"",
        b"\x00",
        b"\xff" * 8,
        b"\r\n",
        b"\xef\xbb\xbf",
        b'"',
        b"'",
        b"\\",
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"=",
        b"\n",
    ),
    *(b"NaN", b"Infinity", b"1e999", b"-1", b"0", b"null", b"true", b"9" * 30, b"-9223372036854775808", b"\\ud800"),
    *((1 << shift).to_bytes(8, "little") for shift in (31, 32, 40, 62, 63)),
    *(
        b"[" * 2000,
        b"(" * 300,
        b"{'a':" * 200,
        b"#",
        b"..",
        b"\x1f\x8b",
        b"PK\x03\x04",
        b"\x93NUMPY",
        b"id,",
        b"[[case]]",
    ),
]


def mutated(seed: bytes, rng: random.Random) -> bytes:
    """One to four changes: flips, cuts, repeats, exchanges and words that parsers trip over."""
    blob = bytearray(seed)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(blob) + 1)
        end = min(len(blob), at + rng.choice((1, 2, 4, 8, 30)))
        match rng.randrange(7):
            case 0 if at < len(blob):
                blob[at] ^= 1 << rng.randrange(8)
            case 1 if at < len(blob):
                blob[at] = rng.randrange(256)
            case 2:
                del blob[at:end]
            case 3:
                blob[at:at] = rng.choice(WORDS)
            case 4:
                blob[at:end] = rng.choice(WORDS)
            case 5:
                blob[at:at] = blob[at:end] * rng.choice((1, 2, 50))
            case 6 if rng.random() < 0.2:
                del blob[at:]
    return bytes(blob)
