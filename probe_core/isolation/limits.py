"""Keep a prober small: no core files, bounded files, and the first to go when memory runs out."""

from __future__ import annotations

import os

__all__ = ["FILE_SIZE_LIMIT", "go_first", "stay_small"]

FILE_SIZE_LIMIT = 256 << 20
"""Bytes of a file that a prober writes: caches and logs of vendors' libraries fit, a flood not."""

_OOM_SCORE_MAX = b"1000"
"""The largest value of oom_score_adj, see proc_pid_oom_score_adj(5)."""


def stay_small(pid: int = 0) -> None:
    """Limit the files of this process, or on Linux of `pid` and of what it will fork.

    What the system does not know or allow is left out.
    """
    try:
        import resource

        limits = ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, FILE_SIZE_LIMIT))
        for name, limit in limits:
            if pid:
                resource.prlimit(pid, name, (limit, limit))
            else:
                resource.setrlimit(name, (limit, limit))
    except (ImportError, AttributeError, OSError, ValueError):
        pass


def go_first(pid: int) -> None:
    """When memory runs out, have the kernel kill `pid` and not the host; Linux only."""
    try:
        fd = os.open(f"/proc/{pid}/oom_score_adj", os.O_WRONLY)
    except OSError:  # no /proc
        return
    try:
        os.write(fd, _OOM_SCORE_MAX)
    except OSError:
        pass
    finally:
        os.close(fd)
