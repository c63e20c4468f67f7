"""Replaces a file in one step, so that nobody ever reads half of it.

What is written lies in the same folder until then (rename(2) crosses no file system), under a name
that collectors pass over: nfd-worker skips a leading dot, node_exporter takes what ends in `.prom`.
"""

from __future__ import annotations

import os
import stat

__all__ = ["replace_file"]


def replace_file(path: str, content: bytes, *, mode: int | None = None) -> None:
    """Write `content` to `path`; raises `OSError`, and then what was there stays.

    `mode` are the permissions of the new file whatever the umask says; None leaves them to it.
    A device or a pipe is written to, as it is.
    """
    if _is_special(path):
        _write_into(path, content)
        return
    folder, name = os.path.split(os.path.abspath(path))
    beside = os.path.join(folder, f".{name}.{os.urandom(4).hex()}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    handle = os.open(beside, flags, 0o666 if mode is None else mode)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            # Renamed before it is on the disk, a file can be empty after a loss of power.
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(beside, mode)
        os.replace(beside, path)
    except BaseException:  # an interrupt, too, leaves nothing behind
        _remove(beside)
        raise


def _is_special(path: str) -> bool:
    """Return whether it is a device, a pipe or a socket: root would rename a file over /dev/null.

    A folder is none: the rename refuses it, with the folder's own error.
    """
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _write_into(path: str, content: bytes) -> None:
    # A pipe without a reader blocks the open for ever, unless it is told not to: ENXIO then.
    handle = os.open(path, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0))
    if hasattr(os, "set_blocking"):
        os.set_blocking(handle, True)
    with os.fdopen(handle, "wb") as file:
        file.write(content)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
