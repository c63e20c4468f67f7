"""Name the plugins that lie in zip archives on the path, where discovery does not read them.

Python imports from such an archive (a zipapp, an egg), so its plugins would be missing without a
word: their manifests and code could not be judged as files. A host may register a prober instead.
"""

from __future__ import annotations

import os
import stat

from probe_core.registry import FILE, FILE_LIMIT, Problem, identity_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_TAIL = 4 << 20
"""Bytes at an archive's end that are searched for names: its directory lies there, uncompressed
(APPNOTE.TXT of the zip format, 4.3.12), with some 100 bytes for each of its files."""

_ENDINGS = (f".dist-info/{FILE}", f".egg-info/{FILE}")
_EGG = f"EGG-INFO/{FILE}"
"""Where a zipped egg, one distribution, has it."""

MAX_NAMED = 64
"""Distributions of one archive that are named: a page of them says what is wrong."""


def left_out(archives: Iterable[str], stem: str) -> list[Problem]:
    """Return a problem for each distribution in the archives with a group that begins so."""
    problems: list[Problem] = []
    for path in archives:
        names = list(_distributions(path, stem))[:MAX_NAMED]
        reason = f"it lies in the archive {path}, and plugins are found in folders alone; unpack it"
        problems += [Problem(name, reason, path) for name in names]
    return problems


def _distributions(path: str, stem: str) -> Iterator[str]:
    if not _may_hold(path):
        return
    import zipfile  # 10 ms: for an archive that holds distributions alone

    try:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                # Only at its root is a distribution's metadata that of an installed one.
                own = name == _EGG or (name.count("/") == 1 and name.endswith(_ENDINGS))
                if own:
                    with archive.open(name) as file:
                        raw = file.read(FILE_LIMIT)
                    if stem.encode() in raw:
                        yield identity_of(path if name == _EGG else os.path.dirname(name))
    except Exception:  # a damaged archive, an unknown compression: Python imports nothing either
        return


def _may_hold(path: str) -> bool:
    """Return whether the end of the file names metadata; a pipe is not opened."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError):
        return False
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return False
        os.lseek(descriptor, max(0, status.st_size - _TAIL), os.SEEK_SET)
        tail = os.read(descriptor, _TAIL)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return any(name.encode() in tail for name in (*_ENDINGS, _EGG))
