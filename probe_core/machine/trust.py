"""As root, run no code that somebody other than root could have written.

Isolation is no sandbox: a prober runs as the user who probes. So under sudo, a plugin in a user's
own site folder would be that user's way to root.
"""

from __future__ import annotations

import os
import stat
from time import monotonic

from probe_core.machine import KERNELS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_KIND_AND_WRITERS = 0o170000 | _WRITABLE_BY_OTHERS
"""What of a mode tells a plain file that only its owner may write (S_IFMT, inode(7))."""
_NO_NAMES = frozenset({"", ".", ".."})

MAX_ENTRIES = 20_000
"""Entries of one package. A judgement: torch, the largest that people install, has 15,000. What has
more is refused, because nobody looked at the rest."""

MAX_S = 10.0
"""Seconds for one package, on a disk as slow as it may be: the same (a judgement)."""


def applies() -> bool:
    """Return whether the rule applies to this process: to root alone."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def untrusted(files: Iterable[str]) -> str | None:
    """Return why root must not use `files`; None when it may, or when this is not root."""
    return Trust().reason(files)


class Trust:
    """Says what root may use. Every path is looked at once, however many packages share it.

    A file: owner and mode of it, of all folders above it and of all links on the way, with the
    folders above where those lead. A folder: the same, and of everything in it, whatever its name:
    a package can run any of its files, and Python itself runs what lies in ``__pycache__``. A link
    on the way is no part of the package: only a link in it has its target looked into.
    """

    def __init__(self) -> None:
        self._bytecode: dict[str, dict[str, list[str]] | str] = {}
        self._names: dict[str, frozenset[str] | None] = {}
        self._verdicts: dict[str, str | None] = {}
        self._folders: dict[str, os.stat_result] = {}
        self._walked: set[str] = set()
        self._links: set[str] = set()
        self._trees: dict[str, str | None] = {}

    def reason(self, files: Iterable[str], *, trees: bool = True) -> str | None:
        """Return why one of `files` must not be used; None when they may, or this is not root.

        Without `trees` what lies in folders is not looked at: enough to read one of the files, and
        not to run what lies beside it.
        """
        if not applies():
            return None
        for path in files:
            # Most lie in a folder that was looked at: that path is a whole one already.
            folder, _, name = path.rpartition("/")
            is_whole = folder in self._folders and name not in _NO_NAMES
            if is_whole and folder in self._walked:  # with all that lies in it
                continue
            whole = path if is_whole else os.path.abspath(path)
            if problem := self._with_tree(whole) if trees else self._on_the_way(whole):
                return f"running as root, and {problem}"
        return None

    def above(self, path: str) -> str | None:
        """Return why others could replace `path`, or put a file into it; None where they cannot."""
        path = os.path.abspath(path)
        while not os.path.lexists(path):  # who owns the folder above can make it
            path = os.path.dirname(path)
        if problem := self._chain(path):
            return problem
        return _addable(path, os.stat(path))

    def present(self, folder: str, names: Iterable[str]) -> list[str]:
        """Return the paths of those names that are in a folder.

        It is listed once: hundreds of modules may lie side by side in a site folder.
        """
        if folder not in self._names:
            try:
                self._names[folder] = frozenset(os.listdir(folder))
            except OSError:  # that of a zip archive, or one that may be entered and not listed
                self._names[folder] = None
        listed = self._names[folder]
        if listed is not None:
            return [f"{folder}/{name}" for name in names if name in listed]
        return [path for path in (f"{folder}/{name}" for name in names) if os.path.lexists(path)]

    def bytecode(self, folder: str, module: str) -> list[str]:
        """Return the files of a folder's ``__pycache__`` that an import of `module` may run.

        Where others may put files there, it is the folder itself, which is refused then.
        """
        cache = f"{folder}/__pycache__"
        if cache not in self._bytecode:
            self._bytecode[cache] = self._bytecode_in(folder, cache)
        listed = self._bytecode[cache]
        return [listed] if isinstance(listed, str) else listed.get(module, [])

    def _bytecode_in(self, folder: str, cache: str) -> dict[str, list[str]] | str:
        """Return each module's files, or the folder that is to be checked in their place."""
        # Whoever may add to one of them can put bytecode there at any moment, also into an empty
        # one: the folder is refused then.
        for place in (cache, folder):
            if os.path.isdir(place) and self.above(place):
                return place
        try:
            names = os.listdir(cache)
        except (FileNotFoundError, NotADirectoryError):  # most have none
            return {}
        except OSError:
            return cache
        listed: dict[str, list[str]] = {}
        for name in names:
            # Python writes it under a longer name first: what is not whole is not run.
            if name.endswith(".pyc"):
                listed.setdefault(name.partition(".")[0], []).append(f"{cache}/{name}")
        return listed

    def _with_tree(self, path: str) -> str | None:
        if problem := self._chain(path):
            return problem
        if path in self._folders:
            return self._tree(path)
        real = os.path.realpath(path) if path in self._links else path
        return self._tree(real) if real != path and os.path.isdir(real) else None

    def _on_the_way(self, path: str) -> str | None:
        """Check a path, and if it is a folder's who may add to it."""
        problem, status = self._chain(path), self._folders.get(path)
        return problem or (None if status is None else _addable(path, status))

    def _chain(self, path: str) -> str | None:
        """Check `path`, where its links lead, and the folders above both, up to the root."""
        verdicts = self._verdicts
        if path not in verdicts:
            verdicts[path] = None  # a link that leads to itself ends here
            above = path.rpartition("/")[0] or "/"
            known = verdicts[above] if above in verdicts else self._chain(above)
            # The folder nearest to the root: what is wrong with it is so for all that lies below.
            verdicts[path] = known or self._own(path)
        return verdicts[path]

    def _own(self, path: str) -> str | None:
        try:
            status = os.lstat(path)
        except NotADirectoryError:  # a module in a zip archive, which is checked next
            return None
        except OSError as error:
            return f"{path} cannot be checked: {error.strerror}"
        if status.st_uid == 0 and status.st_mode & _KIND_AND_WRITERS == stat.S_IFREG:
            return None  # as most are
        if stat.S_ISDIR(status.st_mode):
            self._folders[path] = status
        elif stat.S_ISLNK(status.st_mode):
            self._links.add(path)
        return _open_to_others(path, status) or self._target(path, status)

    def _target(self, path: str, status: os.stat_result) -> str | None:
        if not stat.S_ISLNK(status.st_mode):
            return None
        try:
            target = os.readlink(path)
        except OSError as error:
            return f"{path} cannot be checked: {error.strerror}"
        hop = "/" if target.startswith("/") else os.path.dirname(path)
        for name in target.split("/"):
            if name == "..":  # of where the links before it lead: that is not the text before it
                if problem := self._chain(hop):
                    return problem
                hop = os.path.dirname(os.path.realpath(hop))
            elif name not in _NO_NAMES:
                hop = f"{hop.rstrip('/')}/{name}"
        if not os.path.lexists(hop):
            return self.above(hop)
        # Each hop may be a link again, which somebody else could turn to another place.
        return self._chain(hop)

    def _tree(self, folder: str) -> str | None:
        """Check everything below a folder."""
        if folder not in self._trees:
            self._trees[folder] = None  # a link that leads up again ends here
            self._trees[folder] = self._below(folder)
        return self._trees[folder]

    def _below(self, top: str) -> str | None:
        try:
            if problem := _addable(top, self._folders.get(top) or os.stat(top)):
                return problem
        except FileNotFoundError:
            return None
        folders, count, until = [top], 0, monotonic() + MAX_S
        for folder in folders:  # those that are found are added behind it
            if folder.startswith(KERNELS):
                return f"{folder} is a folder of the kernel's, which no package has"
            if monotonic() > until:
                return f"{top} could not be checked within {MAX_S:g} s"
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        count += 1
                        if problem := self._entry(entry, folders):
                            return problem
                        if count > MAX_ENTRIES:
                            return f"{top} holds more than {MAX_ENTRIES} files, too many to check"
            except FileNotFoundError:  # it was there a moment ago, see `_entry`
                continue
            except OSError as error:
                return f"{top} cannot be checked: {error.strerror}"
        self._walked.update(folders)
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
        mode = status.st_mode
        if status.st_uid == 0 and mode & _KIND_AND_WRITERS == stat.S_IFREG:
            return None  # as most are
        path = entry.path
        if stat.S_ISDIR(mode):
            folders.append(path)
            self._folders[path] = status
            if problem := _addable(path, status):
                return problem
        problem = _open_to_others(path, status) or self._target(path, status)
        if problem or not stat.S_ISLNK(mode):
            return problem
        real = os.path.realpath(path)
        return self._with_tree(real) if os.path.lexists(real) else None


def _open_to_others(path: str, status: os.stat_result) -> str | None:
    if status.st_uid == 0 and not status.st_mode & _WRITABLE_BY_OTHERS:
        return None
    if status.st_uid != 0 and not (status.st_uid == _OVERFLOW and _root_is_a_user()):
        return f"{path} belongs to user {status.st_uid}"
    # Whoever may write a sticky folder (/tmp) cannot replace what is root's own inside it; the
    # mode of a link means nothing.
    if stat.S_ISLNK(status.st_mode):
        return None
    if stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX:
        return None
    return _writable(path, status)


def _addable(path: str, status: os.stat_result) -> str | None:
    """Return who may put a module, or bytecode for one, into a folder, be it a sticky one."""
    return _writable(path, status) if stat.S_ISDIR(status.st_mode) else None


def _writable(path: str, status: os.stat_result) -> str | None:
    """Return who may write a file or folder besides its owner."""
    if status.st_mode & stat.S_IWOTH:
        return f"{path} is writable by everyone"
    if status.st_mode & stat.S_IWGRP and status.st_gid != 0:
        return f"{path} is writable by group {status.st_gid}"
    if status.st_mode & stat.S_IWGRP and _has_access_list(path):
        return f"{path} is writable by those on its access control list"
    return None


_OVERFLOW = 65534
"""The user of all files whose owner the user namespace has no number for (user_namespaces(7))."""

UID_MAP = "/proc/self/uid_map"


def _root_is_a_user() -> bool:
    """Return whether root of this user namespace is an ordinary user outside of it.

    As in rootless engines, `unshare -r` and Apptainer's `--fakeroot`: the host's own files have no
    owner there, and nobody inside can write them by owning them. A namespace that maps root to
    root ("0 0 1") may be that of the real one.
    """
    try:
        with open(UID_MAP, encoding="ascii") as file:
            rows = [line.split() for line in file.read(4096).splitlines()]
    except (OSError, ValueError):
        return False
    return any(row[:1] == ["0"] and row[1:2] != ["0"] for row in rows)


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
