"""Whether a server answers for a file system: what every probe asks, and no prober's process.

`mounts` follows a path where there is such a file system; here is what rules that out at once.
"""

from __future__ import annotations

from io import FileIO

from probe_core.machine import KERNELS, READ_LIMIT, is_kernels, read_file

__all__ = ["SERVED", "has_served_mounts", "may_hang"]

SERVED = (
    "nfs", "cifs", "smb", "fuse", "9p", "virtiofs", "autofs", "ceph", "lustre", "gpfs", "beegfs",
    "afs", "glusterfs", "orangefs", "pvfs2", "ocfs2", "gfs2", "coda", "ncp",
)  # fmt: skip
"""How the types of file systems begin for which a server answers: those of mount(8) and of
clusters' own."""

_SERVED_TYPES = tuple(kind.encode() for kind in SERVED)
_KERNEL_MOUNTS = tuple(folder.encode() for folder in KERNELS)


def may_hang(path: str) -> bool:
    """Return whether looking at an absolute path may hang: a server answers for its file system.

    30 µs where no such file system is mounted.
    """
    if is_kernels(path) or not has_served_mounts():
        return False
    from probe_core.machine.mounts import Mounts

    return Mounts().may_hang(path)


def has_served_mounts(path: str = "/proc/self/mountinfo") -> bool:
    """Return whether any file system is mounted for which a server answers."""
    try:
        with FileIO(path) as file:
            data = read_file(file, READ_LIMIT)
    except OSError:  # not Linux, or no /proc
        return False
    for line in data.splitlines():
        before, _, after = line.partition(b" - ")
        # systemd mounts autofs on /proc/sys/fs/binfmt_misc everywhere, where no server answers.
        if after.startswith(_SERVED_TYPES):
            point = (before.split(b" ", 5) + [b""] * 5)[4]
            if not point.startswith(_KERNEL_MOUNTS):
                return True
    return False
