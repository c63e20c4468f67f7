"""A folder of its own for each run, below the user's cache: compilers' files, tinygrad's cache.

It is removed with the run. What a killed run left is removed by a later one.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from time import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["remove", "scratch"]

_PREFIX = "bench-"
_OLD_S = 3600
"""Seconds after which a folder belongs to no run: a device takes 30 s, a node has 16 or fewer."""


def scratch(environ: Mapping[str, str]) -> str:
    """Return a new folder; raises `OSError` where none can be made."""
    for base in _bases(environ):
        try:
            os.makedirs(base, mode=0o700, exist_ok=True)
            _clean(base)
            return tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=base)
        except OSError:  # read-only, or full: the system's place for such files is next
            continue
    return tempfile.mkdtemp(prefix=f"probe-{_PREFIX}")


def _bases(environ: Mapping[str, str]) -> list[str]:
    places = (("XDG_CACHE_HOME", ""), ("LOCALAPPDATA", ""), ("HOME", ".cache"))
    bases = [(environ.get(name, ""), below) for name, below in places]
    return [os.path.join(base, below, "probe-core") for base, below in bases if os.path.isabs(base)]


def _clean(base: str) -> None:
    for name in os.listdir(base):
        path = os.path.join(base, name)
        if name.startswith(_PREFIX) and time() - os.stat(path).st_mtime > _OLD_S:
            remove(path)


def remove(folder: str) -> None:
    """Remove a folder with all that is in it, as far as that is possible."""
    shutil.rmtree(folder, ignore_errors=True)
