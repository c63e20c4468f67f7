"""Keep a prober small: no core files, and bounded files."""

from __future__ import annotations

__all__ = ["FILE_SIZE_LIMIT", "stay_small"]

FILE_SIZE_LIMIT = 256 << 20
"""Bytes of a file that a prober writes: caches and logs of vendors' libraries fit, a flood not."""


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
