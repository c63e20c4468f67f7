"""Find where a prober's module lies without importing it.

`importlib.util.find_spec("a.b")` runs ``a/__init__.py``. A walk over the path does not.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Place", "is_module_name", "locate", "top_level_exists"]

_SUFFIXES = (".py", ".pyc")


class Place:
    """A module's own file (None for a namespace package) and the folder its data lies in."""

    __slots__ = ("file", "folder", "is_package")

    def __init__(self, file: str | None, folder: str, is_package: bool) -> None:
        self.file = file
        self.folder = folder
        self.is_package = is_package


def is_module_name(name: str) -> bool:
    """Return whether `name` is a dotted Python name of reasonable length."""
    return len(name) <= 200 and all(part.isidentifier() for part in name.split("."))


def locate(
    module: str, first: str | None = None, paths: Iterable[str] | None = None
) -> Place | None:
    """Return where `module` lies, looking in `first` and then along the path; None if nowhere."""
    roots = [*([first] if first else []), *(sys.path if paths is None else paths)]
    for root in dict.fromkeys(roots):
        place = _below(root or os.curdir, module.split("."))
        if place:
            return place
    return None


def _below(folder: str, parts: list[str]) -> Place | None:
    *packages, last = parts
    for package in packages:
        folder = f"{folder}/{package}"
    inner = f"{folder}/{last}"
    init = f"{inner}/__init__.py"
    if os.path.isfile(init):
        return Place(init, inner, True)
    for suffix in (*_SUFFIXES, *_extension_suffixes()):
        if os.path.isfile(inner + suffix):
            return Place(inner + suffix, folder, False)
    return Place(None, inner, True) if os.path.isdir(inner) and packages else None


def _extension_suffixes() -> tuple[str, ...]:
    from _imp import extension_suffixes

    return tuple(extension_suffixes())


def top_level_exists(module: str) -> bool:
    """Return whether a top-level module can be imported; used by ``any_module``."""
    name = module.partition(".")[0]
    return name in sys.builtin_module_names or locate(name) is not None
