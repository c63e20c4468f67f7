"""Finds the modules of our own packages where they are known to be; for processes of our own only.

importlib asks four finders for each module, lists each folder, and looks for five kinds of file.
Ours are plain files beside their package's `__init__`, and a command or a prober's process imports
a hundred of them to live for 30 ms. Found by its name each takes 0.15 million instructions less,
together an eighth of the command's own (149 modules, eight GPUs, CPython 3.11). A host's process
keeps its finders as they are.

What is not as expected here (a zip file, a module without its source, bytecode that is missing or
older than the source) is left to importlib, which the specs and modules made here equal.
"""

from __future__ import annotations

import os
import sys

# What importlib itself is: importing importlib to ask for these takes longer than it saves.
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import MAGIC_NUMBER, SourceFileLoader
from marshal import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType, ModuleType

__all__ = ["PACKAGES", "OwnModules", "install"]

PACKAGES = ("probe_core.", "probe_chipdb.")
"""How the names begin that are found here; others may have extension modules, or several folders.
"""

# The header of bytecode (PEP 552): magic number, no flags, then time and size of the source.
_CHECKED_BY_TIME = MAGIC_NUMBER + bytes(4)
_READ_BYTES = 64 << 10
"""Twice the largest of ours. Below the 128 KiB from which malloc asks the kernel for each block."""


class _Loader(SourceFileLoader):
    """Loads bytecode that is younger than its source, whose status is known already."""

    def __init__(self, name: str, path: str, cached: str, status: os.stat_result) -> None:
        super().__init__(name, path)
        self._cached = cached
        self._status = status

    def get_code(self, fullname: str) -> CodeType | None:
        time, size = int(self._status.st_mtime), self._status.st_size
        data = _read(self._cached)
        if data[:16] != _CHECKED_BY_TIME + _four_bytes(time) + _four_bytes(size):
            return super().get_code(fullname)
        code: CodeType = loads(memoryview(data)[16:])
        return code


class OwnModules:
    """The finder. Only modules inside of a package are asked for here."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module in a file or folder of its own; None leaves it to importlib.

        `path` is where its package lies.
        """
        if path is None or len(path) != 1 or not name.startswith(PACKAGES):
            return None
        (folder,) = path
        stem, inside = name.rpartition(".")[2], None
        try:
            status = os.stat(f"{folder}/{stem}.py")
        except OSError:
            folder = f"{folder}/{stem}"
            stem, inside = "__init__", [folder]
            try:
                status = os.stat(f"{folder}/__init__.py")
            except OSError:
                return None
        file = f"{folder}/{stem}.py"
        cached = f"{folder}/__pycache__/{stem}.{sys.implementation.cache_tag}.pyc"
        spec = ModuleSpec(name, _Loader(name, file, cached, status), origin=file)
        spec.submodule_search_locations = inside
        spec.has_location = True
        spec.cached = cached
        return spec


def install() -> None:
    """Have this process find our modules so; nothing is done where bytecode lies elsewhere."""
    plain = not (sys.flags.optimize or sys.pycache_prefix)
    if os.name == "posix" and plain and OwnModules not in sys.meta_path:
        sys.meta_path.insert(0, OwnModules)


def _four_bytes(number: int) -> bytes:
    return (number & 0xFFFFFFFF).to_bytes(4, "little")


def _read(path: str) -> bytes:
    """Return a file's content; nothing when it cannot be read, or is too large to be ours."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        data = os.read(fd, _READ_BYTES)
    except OSError:
        return b""
    finally:
        os.close(fd)
    return data if len(data) < _READ_BYTES else b""
