"""As root, run no code that somebody other than root could have written.

Isolation is no sandbox: a prober runs as the user who probes. So under sudo, a plugin in a user's
own site folder would be that user's way to root.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["allowed", "untrusted"]

MAX_FILES = 1024
"""Names of one package's folder that are looked at. A judgement: the largest of ours has 18."""

_CODE = (".py", ".pyc", ".so", ".json")


def untrusted(files: Iterable[str]) -> str | None:
    """Return why a file must not be used by root; None when it may, or when this is not root.

    Checks owner and mode of each file, of all folders above it and of all links on the way, and
    the code beside it in its packages.
    """
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return None
    checked: set[str] = set()
    for path in files:
        for name in (os.path.abspath(path), os.path.realpath(path)):
            if reason := _writable_by_others(name, checked):
                return f"running as root, and {reason}"
    return None


def _writable_by_others(path: str, checked: set[str]) -> str | None:
    """Check `path`, then the folder above it, up to the root."""
    while path not in checked:
        checked.add(path)
        try:
            status = os.lstat(path)
        except NotADirectoryError:  # a module in a zip archive, which is checked next
            path = os.path.dirname(path)
            continue
        except OSError as error:
            return f"{path} cannot be checked: {error.strerror}"
        if reason := _open_to_others(path, status) or _around(path, status, checked):
            return reason
        path = os.path.dirname(path)
    return None


def _around(path: str, status: os.stat_result, checked: set[str]) -> str | None:
    """Check where a link leads, and the code in a package."""
    if stat.S_ISLNK(status.st_mode):
        target = os.path.join(os.path.dirname(path), os.readlink(path))
        return _writable_by_others(os.path.normpath(target), checked)
    if stat.S_ISDIR(status.st_mode) and os.path.exists(f"{path}/__init__.py"):
        for file in _code_in(path):
            if reason := _open_to_others(file, os.lstat(file)):
                return reason
    return None


def _code_in(folder: str) -> Iterator[str]:
    for number, name in enumerate(os.listdir(folder)):
        if number > MAX_FILES:
            return
        if name.endswith(_CODE):
            yield f"{folder}/{name}"


def _open_to_others(path: str, status: os.stat_result) -> str | None:
    if status.st_uid != 0:
        return f"{path} belongs to user {status.st_uid}"
    # Whoever may write a sticky folder (/tmp) cannot replace what is root's own inside it; the
    # mode of a link means nothing.
    if stat.S_ISLNK(status.st_mode):
        return None
    if stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX:
        return None
    if status.st_mode & stat.S_IWOTH:
        return f"{path} is writable by everyone"
    if status.st_mode & stat.S_IWGRP and status.st_gid != 0:
        return f"{path} is writable by group {status.st_gid}"
    if status.st_mode & stat.S_IWGRP and _has_access_list(path):
        return f"{path} is writable by those on its access control list"
    return None


def _has_access_list(path: str) -> bool:
    """Return whether others have rights by a list, which `ls` shows as the group's rights."""
    try:
        return bool(os.getxattr(path, "system.posix_acl_access"))
    except (AttributeError, OSError):  # not Linux, or none
        return False


def allowed(distribution: str, version: str, allow: tuple[str, ...] | None) -> str | None:
    """Return why an allowlist leaves a distribution out; None when it may run.

    Entries are ``name`` or ``name==version``; names compare as package indexes compare them.
    """
    if allow is None:
        return None
    for entry in allow:
        name, _, pinned = entry.partition("==")
        if _normal(name) == _normal(distribution):
            if not pinned or pinned.strip() == version:
                return None
            return f"the allowlist wants {entry}, installed is {version or 'unknown'}"
    return f"{distribution or 'it'} is not on the allowlist"


def _normal(name: str) -> str:
    return name.strip().replace("_", "-").replace(".", "-").lower()
