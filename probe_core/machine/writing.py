"""Replaces a file in one step, so that nobody ever reads half of it.

What is written lies in the same folder until then (rename(2) crosses no file system), under a name
that collectors pass over: nfd-worker skips a leading dot, node_exporter takes what ends in `.prom`.
"""

from __future__ import annotations

import os
import stat
from errno import EACCES, ELOOP, EPERM

_MOST_LINKS = 40
"""Links behind one name that Linux follows (path_resolution(7))."""


def make_own_folder(folder: str, base: str) -> None:
    """Make a folder of this user's below `base`, his home; raises `OSError` with the reason.

    Under sudo HOME may be another user's. What root made there, that user could not change or
    remove, and his links would lead root elsewhere: root makes a folder below its own alone.
    """
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        _refuse_others_folder(folder, base)
    os.makedirs(folder, mode=0o700, exist_ok=True)


def _refuse_others_folder(folder: str, base: str) -> None:
    """Raise `PermissionError` where a folder between `base` and `folder` is not root's."""
    path, top = os.path.abspath(folder), os.path.abspath(base)
    while True:
        try:
            owner = os.stat(path).st_uid
        except FileNotFoundError:
            owner = None
        if owner:
            reason = f"root keeps nothing below {path}, which belongs to the user {owner}"
            raise PermissionError(EPERM, reason)
        above = os.path.dirname(path)
        # The folders above the home are the system's; of a home that is not there one decides.
        if above == path or (owner is not None and not path.startswith(f"{top}/")):
            return
        path = above


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
    create_file(beside, content, mode=0o666 if mode is None else mode)
    try:
        if mode is not None:
            os.chmod(beside, mode)
        os.replace(beside, path)
    except BaseException:
        _remove(beside)
        raise


def replace_named_file(path: str, content: bytes, *, mode: int | None = None) -> None:
    """As `replace_file`, for a file that a person named: a symbolic link stays, and is followed.

    A file of our own never goes through here: a link in its place is somebody else's work.
    """
    replace_file(path if _is_special(path) else _followed(path), content, mode=mode)


def _followed(path: str) -> str:
    """Return where the links behind `path` lead, be there a file or none; raises `OSError`."""
    for _ in range(_MOST_LINKS):
        try:
            target = os.readlink(path)
        except OSError:
            folder, name = os.path.split(path)
            return os.path.join(os.path.realpath(folder), name)
        _refuse_planted_link(path)
        path = os.path.join(os.path.dirname(path), target)
    raise OSError(ELOOP, os.strerror(ELOOP))


def _refuse_planted_link(path: str) -> None:
    """Raise `PermissionError` for a link that another user laid where all may write, as in /tmp.

    The kernel's fs.protected_symlinks (proc_sys_fs(5)) is no help: a rename follows no link.
    """
    folder = os.stat(os.path.dirname(path) or ".")
    everyones = stat.S_ISVTX | stat.S_IWOTH
    if folder.st_mode & everyones != everyones:
        return
    if os.lstat(path).st_uid not in (os.geteuid(), folder.st_uid):
        raise PermissionError(EACCES, "a link of another user in a folder of all is not followed")


def create_file(path: str, content: bytes, *, mode: int = 0o666) -> None:
    """Write `content` to a file that is new; raises `OSError`, and then no file stays."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    handle = os.open(path, flags, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            # Renamed before it is on the disk, a file can be empty after a loss of power.
            os.fsync(file.fileno())
    except BaseException:  # an interrupt, too, leaves nothing behind
        _remove(path)
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
