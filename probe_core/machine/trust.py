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

__all__ = ["Trust", "allowed", "applies", "untrusted"]

MAX_ENTRIES = 20_000
"""Entries of one package. A judgement: torch, the largest that people install, has 15,000. What has
more is refused, because nobody looked at the rest."""


def applies() -> bool:
    """Return whether the rule applies to this process: to root alone."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def untrusted(files: Iterable[str]) -> str | None:
    """Return why root must not use `files`; None when it may, or when this is not root."""
    return Trust().reason(files)


class Trust:
    """Says what root may use. Every path is looked at once, however many packages share it.

    A file: owner and mode of it, of all folders above it and of all links on the way. A folder: the
    same, and of everything in it, whatever its name: a package can run any of its files, and Python
    itself runs what lies in ``__pycache__``.
    """

    __slots__ = ("_bytecode", "_folders", "_trees", "_verdicts")

    def __init__(self) -> None:
        self._bytecode: dict[str, dict[str, list[str]]] = {}
        self._verdicts: dict[str, str | None] = {}
        self._folders: set[str] = set()
        self._trees: dict[str, str | None] = {}

    def reason(self, files: Iterable[str]) -> str | None:
        """Return why one of `files` must not be used; None when they may, or this is not root."""
        if not applies():
            return None
        for path in files:
            if problem := self._with_tree(os.path.abspath(path)):
                return f"running as root, and {problem}"
        return None

    def bytecode(self, folder: str, module: str) -> list[str]:
        """Return the files of a folder's ``__pycache__`` that an import of `module` may run.

        Each is listed once: hundreds of modules may lie side by side in a site folder.
        """
        cache = f"{folder}/__pycache__"
        if cache not in self._bytecode:
            try:
                names = os.listdir(cache)
            except (FileNotFoundError, NotADirectoryError):  # most have none
                names = []
            except OSError:  # it is checked in place of its files, and refused
                return [cache]
            listed = self._bytecode[cache] = {}
            for name in names:
                # Python writes it under a longer name first: what is not whole is not run.
                if name.endswith(".pyc"):
                    listed.setdefault(name.partition(".")[0], []).append(f"{cache}/{name}")
        return self._bytecode[cache].get(module, [])

    def _with_tree(self, path: str) -> str | None:
        # A link's own folder is looked into where it leads, see `_target`.
        return self._chain(path) or (self._tree(path) if path in self._folders else None)

    def _chain(self, path: str) -> str | None:
        """Check `path`, where its links lead, and the folders above both, up to the root."""
        if path not in self._verdicts:
            self._verdicts[path] = None  # a link that leads to itself ends here
            above = os.path.dirname(path)
            self._verdicts[path] = self._own(path) or (
                self._chain(above) if above != path else None
            )
        return self._verdicts[path]

    def _own(self, path: str) -> str | None:
        try:
            status = os.lstat(path)
        except NotADirectoryError:  # a module in a zip archive, which is checked next
            return None
        except OSError as error:
            return f"{path} cannot be checked: {error.strerror}"
        if stat.S_ISDIR(status.st_mode):
            self._folders.add(path)
        return _open_to_others(path, status) or self._target(path, status)

    def _target(self, path: str, status: os.stat_result) -> str | None:
        if not stat.S_ISLNK(status.st_mode):
            return None
        try:
            hop = os.path.join(os.path.dirname(path), os.readlink(path))
        except OSError as error:
            return f"{path} cannot be checked: {error.strerror}"
        # Each hop may be a link again, which somebody else could turn to another place.
        hop = os.path.normpath(hop)
        return self._chain(hop) or self._with_tree(os.path.realpath(path))

    def _tree(self, folder: str) -> str | None:
        """Check everything below a folder."""
        if folder not in self._trees:
            self._trees[folder] = None  # a link that leads up again ends here
            self._trees[folder] = self._below(folder)
        return self._trees[folder]

    def _below(self, top: str) -> str | None:
        folders, count = [top], 0
        while folders:
            try:
                entries = list(os.scandir(folders.pop()))
            except FileNotFoundError:  # it was there a moment ago, see `_entry`
                continue
            except OSError as error:
                return f"{top} cannot be checked: {error.strerror}"
            count += len(entries)
            if count > MAX_ENTRIES:
                return f"{top} holds more than {MAX_ENTRIES} files, too many to check"
            for entry in entries:
                if problem := self._entry(entry, folders):
                    return problem
        return None

    def _entry(self, entry: os.DirEntry[str], folders: list[str]) -> str | None:
        """Check one entry; add it to `folders` when it is one.

        One that is gone is no risk: Python puts bytecode beside a module under a name that lasts
        for a moment, so that two starts after an installation see each other's.
        """
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return None
        except OSError as error:
            return f"{entry.path} cannot be checked: {error.strerror}"
        if entry.is_dir(follow_symlinks=False):
            folders.append(entry.path)
            # Into a sticky folder everybody may put a module, or bytecode for one.
            if status.st_mode & stat.S_IWOTH:
                return f"{entry.path} is writable by everyone"
        return _open_to_others(entry.path, status) or self._target(entry.path, status)


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
