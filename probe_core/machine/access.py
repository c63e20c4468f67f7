"""Says whether this process may open a device node, without opening it.

access(2) asks mode, access list, device cgroup and security module in the order of open(2)
(inode_permission in linux/fs/namei.c): EACCES is the mode's, the list's or the module's refusal,
EPERM the device cgroup's, of version 1 and 2 alike, for root too. `os.access` hides the number, so
it is looked for only after a refusal.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.machine import Machine

OK, MISSING, UNKNOWN = "ok", "missing", "unknown"

_READ_AND_WRITE = os.R_OK | os.W_OK


def access(machine: Machine, path: str) -> str:
    """Return how an attempt to open the node at `path` would end, as far as can be known.

    "ok"; "missing"; the name of an error number ("EACCES", "EPERM", …); "unknown" where a recording
    has nothing of it, and for what is no character device. Success promises no open: a node without
    a driver passes here and fails with ENXIO.
    """
    if path in machine.access:
        return machine.access[path]
    try:
        node = os.stat(machine.path(path))
    except OSError as error:
        return _without_node(machine, error)
    except ValueError:
        return UNKNOWN
    if not stat.S_ISCHR(node.st_mode):
        return UNKNOWN
    place = machine.path(path)
    if os.access(place, _READ_AND_WRITE):
        return OK
    return "EACCES" if _mode_refuses(place, node) else _refusal(place)


def status(machine: Machine, path: str) -> os.stat_result | None:
    """Return what stat(2) says of a character device; None of all else. It asks no cgroup."""
    try:
        result = os.stat(machine.path(path))
    except (OSError, ValueError):
        return None
    return result if stat.S_ISCHR(result.st_mode) else None


def number(node: os.stat_result) -> tuple[int, int]:
    """Return the (major, minor) of a device node."""
    return os.major(node.st_rdev), os.minor(node.st_rdev)


def _without_node(machine: Machine, error: OSError) -> str:
    """Return "missing", unless a folder above the node cannot be searched, or was not recorded."""
    if not (machine.live or machine.exists("/dev")):
        return UNKNOWN
    if isinstance(error, (FileNotFoundError, NotADirectoryError)):
        return MISSING
    return _name(error.errno)


def _mode_refuses(path: str, node: os.stat_result) -> bool:
    """Return whether mode, owner and groups alone explain a refusal, so that it is EACCES.

    They are asked before the cgroup. Where an access list is there, they do not decide.
    """
    if not hasattr(os, "getuid") or os.getuid() == 0:
        return False
    try:
        os.getxattr(path, "system.posix_acl_access")
    except (AttributeError, OSError):
        return not mode_allows(node, os.getuid(), {os.getgid(), *os.getgroups()})
    return False


def mode_allows(node: os.stat_result, user: int, groups: set[int]) -> bool:
    """Return whether the node's mode lets a user with these groups read and write."""
    shift = 6 if node.st_uid == user else 3 if node.st_gid in groups else 0
    return node.st_mode >> shift & 6 == 6


def _refusal(path: str) -> str:
    """Return the name of the error number that access(2) gives, by a call of our own."""
    try:
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        ctypes.set_errno(0)
        if libc.access(os.fsencode(path), _READ_AND_WRITE) == 0:
            return OK  # allowed a microsecond later: a cgroup was changed meanwhile
        return _name(ctypes.get_errno())
    except (ImportError, OSError, AttributeError, ValueError):
        return UNKNOWN


def _name(code: int | None) -> str:
    from errno import errorcode

    return errorcode.get(code or 0, UNKNOWN)
