"""As root, run no code that somebody other than root could have written.

Isolation is no sandbox: a prober runs as the user who probes. So under sudo, a plugin in a user's
own site folder would be that user's way to root.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["allowed", "untrusted"]


def untrusted(files: Iterable[str]) -> str | None:
    """Return why a file must not be used by root; None when it may, or when this is not root."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return None
    for path in files:
        reason = _writable_by_others(os.path.realpath(path))
        if reason:
            return f"running as root, and {reason}"
    return None


def _writable_by_others(path: str) -> str | None:
    while True:
        try:
            status = os.lstat(path)
        except OSError as error:
            return f"{path} cannot be checked: {error.strerror}"
        if status.st_uid != 0:
            return f"{path} belongs to user {status.st_uid}"
        # A sticky folder (/tmp) lets nobody replace what is root's own inside it.
        sticky = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX
        if status.st_mode & stat.S_IWOTH and not sticky:
            return f"{path} is writable by everyone"
        if status.st_mode & stat.S_IWGRP and status.st_gid != 0 and not sticky:
            return f"{path} is writable by group {status.st_gid}"
        parent = os.path.dirname(path)
        if parent == path:
            return None
        path = parent


def allowed(distribution: str, version: str, allow: tuple[str, ...] | None) -> str | None:
    """Return why an allowlist leaves a distribution out; None when it may run.

    Entries are ``name`` or ``name==version``; names compare as package indexes compare them.
    """
    if allow is None:
        return None
    for entry in allow:
        name, _, wanted = entry.partition("==")
        if _normal(name) == _normal(distribution):
            if not wanted or wanted.strip() == version:
                return None
            return f"the allowlist wants {entry}, installed is {version or 'unknown'}"
    return f"{distribution or 'it'} is not on the allowlist"


def _normal(name: str) -> str:
    return name.strip().replace("_", "-").replace(".", "-").lower()
