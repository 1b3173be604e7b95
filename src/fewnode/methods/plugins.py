"""A researcher's own method: a class, or its file and name, `path/to/my_method.py:MyMethod`.

Naming the file on the command line is consent to run it. A run directory may come from a stranger, so the file that
a run names is run only if this user, on this machine, trained that run with exactly that file: its manifest then
carries a signature of the file's place and of all bytes that are run. What is run are the bytes that were read and
compared: no file is read twice, and no compiled file at all.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import importlib.abc
import importlib.util
import inspect
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from fewnode.errors import FewnodeError, closest
from fewnode.machine.files import one_line, readable
from fewnode.machine.signing import is_signed, sign

PURPOSE = "plug-in"
MAX_BYTES = 1 << 20
"""Of a source file."""


def is_plugin(name: str) -> bool:
    return ".py:" in name


@dataclass(frozen=True)
class Plugin:
    """A method's file as it was read, and with it the files of its folder that it imports."""

    path: Path
    class_name: str
    sources: Mapping[str, bytes]
    """Of each module by its name; the method's own is one of them."""

    def __str__(self) -> str:
        return f"{self.path}:{self.class_name}"

    @property
    def sha256(self) -> str:
        """Of all that is run."""
        return hashlib.sha256(json.dumps(_digests(self.sources)).encode()).hexdigest()

    def signed(self) -> dict[str, Any]:
        """For the manifest of a run: what will be run, and the signature of this user."""
        files = _digests(self.sources)
        return {"files": files, "signature": sign(PURPOSE, *_claim(str(self), files))}

    def load(self) -> type:
        """The class, from the bytes that were read."""
        try:
            module = _Modules(self).module(self.path.stem)
        except Exception as error:
            raise FewnodeError(f"{self.path}: cannot be imported: {type(error).__name__}: {one_line(error)}") from error
        found = getattr(module, self.class_name, None)
        if not isinstance(found, type):
            classes = [key for key, value in vars(module).items() if isinstance(value, type)]
            raise FewnodeError(
                f"{self.path}: there is no class {self.class_name!r} in it{closest(self.class_name, classes)}"
            )
        return check_class(found, f"{self.path}: ")


def check_class(found: type, where: str = "") -> type:
    """Refuse a class that is no method."""
    for function in ("fit", "predict_proba"):
        if not callable(getattr(found, function, None)):
            raise FewnodeError(
                f"{where}class {found.__name__!r} has no {function}(); a method needs fit and predict_proba"
            )
    return found


def read(name: str) -> Plugin:
    """The plug-in that a person names as `file.py:Class`."""
    path, class_name = _parts(name)
    if not path.is_file():
        raise FewnodeError(f"{path}: no such file; a method of your own is named as path/to/file.py:Class")
    sources: dict[str, bytes] = {}
    waiting = [path.stem]
    while waiting:
        module = waiting.pop()
        file = path.with_name(f"{module}.py")
        sources[module] = _read_bytes(file)
        beside = [other for other in _imported(file, sources[module]) if _is_beside(other, path.parent)]
        waiting += [other for other in beside if other not in sources and other not in waiting]
    return Plugin(path, class_name, dict(sorted(sources.items())))


def recall(name: str, signed: object) -> Plugin | None:
    """The plug-in that a run names, if this user trained the run with it and no byte of it has changed since."""
    path, class_name = _parts(name)
    if not isinstance(signed, dict) or not isinstance(files := signed.get("files"), dict):
        return None
    if path.stem not in files or not is_signed(
        signed.get("signature"), PURPOSE, *_claim(f"{path}:{class_name}", files)
    ):
        return None
    try:
        sources = {module: _read_bytes(path.with_name(f"{module}.py")) for module in files}
    except (FewnodeError, OSError):
        return None
    return Plugin(path, class_name, sources) if _digests(sources) == files else None


def name_of(method: object) -> str:
    """How a method is named: built in, `file.py:Class` wherever the next command is started, or a class by itself."""
    if isinstance(method, type):
        file = _file_of(method)
        return f"{file}:{method.__name__}" if file else method.__qualname__
    if not isinstance(method, str | Plugin):
        raise FewnodeError(f"method is a {type(method).__name__}, expected a name, a class or FILE.py:CLASS")
    return str(method)


def read_class(method: type) -> Plugin:
    """The plug-in that a class is. One of a notebook, of a prompt or inside a function could not be found again."""
    if _file_of(method) is None:
        raise FewnodeError(
            f"{method.__qualname__} cannot be imported again from a file, so the model cannot be saved; "
            "move the class to the top level of a .py file"
        )
    return read(name_of(method))


def _file_of(method: type) -> Path | None:
    """The file that has the class under its name, if there is one."""
    try:
        file = Path(inspect.getfile(method)).resolve()
    except (TypeError, OSError):  # made at a prompt
        return None
    there = isinstance(getattr(sys.modules.get(method.__module__), method.__qualname__, None), type)
    return file if there and file.suffix == ".py" and file.is_file() else None


def _parts(name: str) -> tuple[Path, str]:
    """The file, wherever the next command is started and whatever link leads to it, and the class."""
    path, _, class_name = name.rpartition(":")
    try:
        found = Path(path).resolve()
    except (OSError, RuntimeError, ValueError):  # links in a circle, a NUL
        raise FewnodeError(f"{path}: no such file; a method of your own is named as path/to/file.py:Class") from None
    if found.suffix != ".py":
        raise FewnodeError(f"{path}: not a Python file")
    return found, class_name


def _claim(name: str, files: Mapping[str, str]) -> tuple[bytes, bytes]:
    return name.encode(), json.dumps(files, sort_keys=True).encode()


def _digests(sources: Mapping[str, bytes]) -> dict[str, str]:
    return {name: hashlib.sha256(blob).hexdigest() for name, blob in sorted(sources.items())}


def _read_bytes(path: Path) -> bytes:
    with readable(path) as file:
        blob = file.read(MAX_BYTES + 1)
    if len(blob) > MAX_BYTES:
        raise FewnodeError(f"{path}: larger than {MAX_BYTES >> 10:,} kB, too large for a method")
    return blob


def _imported(path: Path, source: bytes) -> list[str]:
    """The modules that are named anywhere in it, whether they are reached or not."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise FewnodeError(f"{path}: cannot be imported: {type(error).__name__}: {one_line(error)}") from None
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return sorted(names)


def _is_beside(name: str, folder: Path) -> bool:
    """Whether `import name` means a file of that folder. What Python itself has is never taken from there."""
    file = folder / f"{name}.py"
    if name in sys.stdlib_module_names or name == "fewnode" or not file.is_file():
        return False
    home = _home(name)
    if home is not None and home != folder:
        raise FewnodeError(f"{file}: there is a module {name!r} in {home} too; give one of the two another name")
    return True


def _home(name: str) -> Path | None:
    """The folder that Python would find a module in; nothing is imported."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    places = list(spec.submodule_search_locations or ()) or [spec.origin or ""]
    return Path(places[0]).resolve().parent


class _Modules:
    """The modules of one plug-in. Nobody else sees them, and no folder is searched for them."""

    def __init__(self, plugin: Plugin) -> None:
        self.plugin, self.made = plugin, dict[str, ModuleType]()

    def module(self, name: str) -> ModuleType:
        if name in self.made:
            return self.made[name]
        loader = _Loader(self.plugin.path.with_name(f"{name}.py"), self.plugin.sources[name])
        spec = ModuleSpec(f"fewnode_plugin_{self.plugin.sha256[:12]}_{name}", loader, origin=str(loader.path))
        module = importlib.util.module_from_spec(spec)
        vars(module).update(__file__=str(loader.path), __builtins__={**vars(builtins), "__import__": self.import_})
        self.made[name] = sys.modules[spec.name] = module  # dataclasses look their module up
        try:
            loader.exec_module(module)
        except BaseException:
            del self.made[name], sys.modules[spec.name]
            raise
        return module

    def import_(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,  # noqa: A002
        locals: Mapping[str, object] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """`import` in the plug-in: its own modules from the bytes that were read, all others as ever."""
        top = name.partition(".")[0]
        if level == 0 and name in self.plugin.sources:
            return self.module(name)
        known = top in sys.stdlib_module_names or top == "fewnode"
        if level == 0 and not known and (top in self.plugin.sources or _home(top) == self.plugin.path.parent):
            raise ModuleNotFoundError(f"{name!r} beside it is no single file that an import statement names", name=name)
        return builtins.__import__(name, globals, locals, fromlist or (), level)


class _Loader(importlib.abc.InspectLoader):
    """Runs the bytes that it was given. Python's own would look for a compiled file, and believe it."""

    def __init__(self, path: Path, source: bytes) -> None:
        self.path, self.source = path, source

    def get_source(self, fullname: str) -> str:
        return importlib.util.decode_source(self.source)

    def get_code(self, fullname: str) -> Any:
        return self.source_to_code(self.source, str(self.path))
