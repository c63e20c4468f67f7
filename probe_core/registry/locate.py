"""Find where a prober's module lies without importing it.

`importlib.util.find_spec("a.b")` runs ``a/__init__.py``. A walk over the path does not.
"""

from __future__ import annotations

import os
import sys

from probe_core.fastpath import extension_suffixes
from probe_core.machine.trust import applies

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from importlib.machinery import ModuleSpec

    from probe_core.machine.trust import Trust

__all__ = [
    "Place",
    "find_module",
    "is_module_name",
    "locate",
    "locate_by_hooks",
    "top_level_exists",
]

_SUFFIXES = (".py", ".pyc")


class Place:
    """A module's own file (None for a namespace package) and the folder its data lies in."""

    __slots__ = ("file", "folder", "is_package")

    def __init__(self, file: str | None, folder: str, is_package: bool) -> None:
        self.file = file
        self.folder = folder
        self.is_package = is_package

    def code(self, module: str, trust: Trust) -> list[str]:
        """Return what root must look at: all that an import of `module` may run of its own.

        That is the folder of its top-level package, or of a single file the file itself, others of
        its name that an import prefers, and its bytecode, as `trust` has listed it.
        """
        parts = module.split(".")
        above = len(parts) - (1 if self.is_package else 2)
        if above >= 0:
            folder = self.folder
            for _ in range(above):
                folder = os.path.dirname(folder)
            return [self.file or self.folder, folder]
        stem = f"{self.folder}/{parts[0]}"
        # A folder of that name is no package yet, and its owner can make it one at any moment.
        variants = [stem + suffix for suffix in ("", *_SUFFIXES, *extension_suffixes())]
        present = [path for path in variants if path == self.file or os.path.lexists(path)]
        return present + trust.bytecode(self.folder, parts[0])

    def files(self, module: str, trust: Trust) -> list[str]:
        """Return what decides whether `module` may be used: all its code, where root is asked."""
        return self.code(module, trust) if applies() else [self.file or self.folder]


def is_module_name(name: str) -> bool:
    """Return whether `name` is a dotted Python name of reasonable length."""
    return len(name) <= 200 and all(part.isidentifier() for part in name.split("."))


def locate(
    module: str, first: str | None = None, paths: Iterable[str] | None = None
) -> Place | None:
    """Return where `module` lies, looking in `first` and then along the path; None if nowhere."""
    roots = [*([first] if first else []), *(sys.path if paths is None else paths)]
    for root in dict.fromkeys(root for root in roots if isinstance(root, str)):
        place = _below(root or os.curdir, module.split("."))
        if place:
            return place
    return None


def find_module(module: str, first: str | None = None) -> tuple[Place | None, bool]:
    """Return where `module` lies, on the path or else by hooks, as `locate_by_hooks` does."""
    place = locate(module, first)
    return (place, False) if place else locate_by_hooks(module)


def _below(folder: str, parts: list[str]) -> Place | None:
    *packages, last = parts
    # One look instead of seven: an editable checkout has a path entry for each distribution.
    if packages and not os.path.isdir(f"{folder}/{packages[0]}"):
        return None
    for package in packages:
        folder = f"{folder}/{package}"
    inner = f"{folder}/{last}"
    init = f"{inner}/__init__.py"
    if os.path.isfile(init):
        return Place(init, inner, True)
    for suffix in (*_SUFFIXES, *extension_suffixes()):
        if os.path.isfile(inner + suffix):
            return Place(inner + suffix, folder, False)
    return Place(None, inner, True) if os.path.isdir(inner) and packages else None


def locate_by_hooks(module: str) -> tuple[Place | None, bool]:
    """Ask the import hooks of this process (zip archives, editable installs, frozen programs).

    Only for the top level, which runs hooks but imports nothing. Returns the place, and whether
    the hook is one that a plain interpreter lacks before its ``site`` module ran.
    """
    from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder

    plain = (BuiltinImporter, FrozenImporter, PathFinder)
    top, _, inner = module.partition(".")
    for finder in list(sys.meta_path):
        try:
            spec = finder.find_spec(top, None)
            if spec is not None:
                place = _place_of(spec, inner.split(".") if inner else [])
                return place, finder not in plain
        except Exception:  # another package's hook; the import in the child reports what it breaks
            continue
    return None, False


def _place_of(spec: ModuleSpec, inner: list[str]) -> Place | None:
    folders = list(spec.submodule_search_locations or ())
    if inner:
        return next(filter(None, (_below(folder, inner) for folder in folders)), None)
    if folders:
        return Place(spec.origin, folders[0], True)
    if not spec.origin or not spec.has_location:
        return None
    return Place(spec.origin, os.path.dirname(spec.origin), False)


def top_level_exists(module: str) -> bool:
    """Return whether a top-level module can be imported; used by ``any_module``."""
    name = module.partition(".")[0]
    if not name.isidentifier():
        return False
    if name in sys.builtin_module_names or locate(name) is not None:
        return True
    # A namespace package is only a folder.
    folders = (path for path in sys.path if isinstance(path, str))
    if any(os.path.isdir(f"{folder or os.curdir}/{name}") for folder in folders):
        return True
    return locate_by_hooks(name)[0] is not None
