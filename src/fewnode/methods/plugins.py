"""A researcher's own method: a class, or its file and name, `path/to/my_method.py:MyMethod`.

Naming a file is consent to run it, as it is now. No file is run because another file, such as a run, says so.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from importlib.machinery import FileFinder, SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import CodeType, ModuleType

from fewnode._system.files import one_line
from fewnode.errors import FewnodeError, closest


def is_plugin(name: str) -> bool:
    return ".py:" in name


def name_of(method: type) -> str:
    """How a class is named: `file.py:Class` wherever the next command is started, or by itself if it has no file."""
    try:
        return f"{Path(inspect.getfile(method)).resolve()}:{method.__qualname__}"
    except (TypeError, OSError):  # made at a prompt
        return method.__qualname__


def load_plugin(name: str) -> tuple[type, str]:
    """The class that a person names as `file.py:Class`, and the SHA-256 of the source that made it.

    At its top the file may import others of its folder. Each method has its own: they are read anew, and let go again.
    """
    file, _, class_name = name.rpartition(":")
    if not Path(file).is_file():
        raise FewnodeError(f"{file}: no such file; a method of your own is named as path/to/file.py:Class")
    path = Path(file).resolve()
    folder = str(path.parent)
    loader = _SourceAsItIs(f"own_method.{hashlib.sha256(str(path).encode()).hexdigest()}", str(path))
    module = sys.modules[loader.name] = module_from_spec(spec_from_loader(loader.name, loader))  # type: ignore[arg-type]
    before, paths = _take(path.parent), sys.path.copy()
    sys.path.append(folder)
    sys.path_importer_cache[folder] = FileFinder(folder, (_SourceAsItIs, [".py"]))
    try:
        loader.exec_module(module)
    except Exception as error:
        raise FewnodeError(f"{path}: cannot be imported: {type(error).__name__}: {one_line(error)}") from error
    finally:
        sys.path[:] = paths
        sys.path_importer_cache.pop(folder, None)
        beside = _take(path.parent)
        sys.modules.update(before)
    if not isinstance(method := getattr(module, class_name, None), type):
        classes = [key for key, value in vars(module).items() if isinstance(value, type)]
        raise FewnodeError(f"{path}: there is no class {class_name!r} in it{closest(class_name, classes)}")
    sources = [Path(str(each.__file__)).read_bytes() for each in (module, *beside.values())]
    return method, hashlib.sha256(b"\0".join(sources)).hexdigest()


class _SourceAsItIs(SourceFileLoader):
    """Believe no compiled file: it may be of another text of the same size, written within the same second."""

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)


def _take(folder: Path) -> dict[str, ModuleType]:
    """Take the modules of a folder out of those that are imported, all but the program itself."""
    files = {key: str(getattr(each, "__file__", "")) for key, each in sorted(sys.modules.items()) if "." not in key}
    inside = [key for key, file in files.items() if Path(file).parent == folder and key != "__main__"]
    return {key: sys.modules.pop(key) for key in inside}
