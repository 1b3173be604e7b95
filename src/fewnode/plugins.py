"""A researcher's own method: a class, or its file and name, `path/to/my_method.py:MyMethod`.

Naming the file on the command line is consent to run it. A run directory may come from a stranger, so the file that
a run names is run only if this user, on this machine, trained that run with exactly that file: its manifest then
carries a signature by a key that never leaves the user's home.
"""

from __future__ import annotations

import hashlib
import hmac
import importlib.util
import inspect
import os
import secrets
import sys
from pathlib import Path

from fewnode.errors import FewnodeError, closest
from fewnode.io import atomic_write, one_line

KEY_BYTES = 32


def is_plugin(name: str) -> bool:
    return ".py:" in name


def resolved(name: str | type) -> str:
    """The same method, wherever the next command is started; a name that is no file stays as it is.

    A class is named by its file, or by itself if none can be imported to have it again.
    """
    if isinstance(name, type):
        file = _file_of(name)
        return f"{file}:{name.__name__}" if file else name.__qualname__
    if not isinstance(name, str):
        raise FewnodeError(f"method is a {type(name).__name__}, expected a name, a class or FILE.py:CLASS")
    if not is_plugin(name):
        return name
    path, _, class_name = name.rpartition(":")
    return f"{Path(path).resolve()}:{class_name}"


def load_class(name: str) -> type:
    """The class that `file.py:Class` names, freshly imported."""
    path, _, class_name = name.rpartition(":")
    file = Path(path)
    if not file.is_file():
        raise FewnodeError(f"{path}: no such file; a method of your own is named as path/to/file.py:Class")
    spec = importlib.util.spec_from_file_location(f"fewnode_plugin_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise FewnodeError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise FewnodeError(f"{path}: cannot be imported: {type(error).__name__}: {one_line(error)}") from error
    found = getattr(module, class_name, None)
    if not isinstance(found, type):
        classes = [key for key, value in vars(module).items() if isinstance(value, type)]
        raise FewnodeError(f"{path}: there is no class {class_name!r} in it{closest(class_name, classes)}")
    return check_class(found, f"{path}: ")


def check_class(found: type, where: str = "") -> type:
    """Refuse a class that is no method."""
    for function in ("fit", "predict_proba"):
        if not callable(getattr(found, function, None)):
            raise FewnodeError(
                f"{where}class {found.__name__!r} has no {function}(); a method needs fit and predict_proba"
            )
    return found


def check_found_again(method: type) -> None:
    """Refuse a class that a saved model could not name: one of a notebook, of a prompt, or inside a function."""
    if _file_of(method) is None:
        raise FewnodeError(
            f"{method.__qualname__} cannot be imported again from a file, so the model cannot be saved; "
            "move the class to the top level of a .py file"
        )


def _file_of(method: type) -> Path | None:
    """The file that has the class under its name, if there is one."""
    try:
        file = Path(inspect.getfile(method)).resolve()
    except (TypeError, OSError):  # made at a prompt
        return None
    there = isinstance(getattr(sys.modules.get(method.__module__), method.__qualname__, None), type)
    return file if there and file.suffix == ".py" and file.is_file() else None


def sign(name: str) -> str:
    """What only this user can write for this file and class as they are now."""
    path, _, class_name = name.rpartition(":")
    try:
        digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""
    return hmac.new(_key(), f"{class_name} {digest}".encode(), "sha256").hexdigest()


def is_trusted(name: str, signature: object) -> bool:
    expected = sign(name)
    return bool(expected) and isinstance(signature, str) and hmac.compare_digest(expected, signature)


def _key() -> bytes:
    home = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "fewnode"
    path = home / "plugin.key"
    key = path.read_bytes() if path.exists() else b""
    if len(key) != KEY_BYTES:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        key = secrets.token_bytes(KEY_BYTES)
        with atomic_write(path, mode=0o600) as file:
            file.write(key)
    return key
