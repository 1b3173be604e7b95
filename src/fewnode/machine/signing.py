"""What only this user can write: a signature by a key that never leaves their home directory.

A stranger can compute a checksum. They cannot sign, so what carries a signature was written here, by this user.
"""

from __future__ import annotations

import hmac
import os
import secrets
from pathlib import Path

from fewnode.machine import memory
from fewnode.machine.files import atomic_write

KEY_BYTES = 32


def sign(purpose: str, *parts: bytes | memoryview) -> str:
    """A signature of these bytes, for this purpose alone. The first one makes the key."""
    return _signature(_key() or _new_key(), purpose, parts)


def is_signed(signature: object, purpose: str, *parts: bytes | memoryview) -> bool:
    """Whether this user signed exactly these bytes for this purpose."""
    try:
        key = _key()
    except OSError:
        key = None
    if key is None or not isinstance(signature, str) or not signature.isascii():
        return False
    return hmac.compare_digest(_signature(key, purpose, parts), signature)


def _signature(key: bytes, purpose: str, parts: tuple[bytes | memoryview, ...]) -> str:
    digest = hmac.new(key, digestmod="sha256")
    for part in (purpose.encode(), *parts):
        digest.update(memoryview(part).nbytes.to_bytes(8, "little"))  # so that no byte can move to the next part
        digest.update(part)
        memory.keep()
    return digest.hexdigest()


def _path() -> Path:
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "fewnode" / "signing.key"


def _key() -> bytes | None:
    """The key, unless there is none yet or it was cut."""
    path = _path()
    key = path.read_bytes() if path.exists() else b""
    return key if len(key) == KEY_BYTES else None


def _new_key() -> bytes:
    path, key = _path(), secrets.token_bytes(KEY_BYTES)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with atomic_write(path, mode=0o600) as file:
        file.write(key)
    return key
