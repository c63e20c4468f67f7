"""Keep a prober small: no core files, bounded files, and the first to go when memory runs out."""

from __future__ import annotations

import os

__all__ = ["FILE_SIZE_LIMIT", "stay_small"]

FILE_SIZE_LIMIT = 256 << 20


def stay_small(pid: int = 0) -> None:
    """Limit process `pid`, or this one; what the system does not allow or know is left out."""
    try:
        import resource

        for what, limit in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, FILE_SIZE_LIMIT)):
            if pid:
                resource.prlimit(pid, what, (limit, limit))
            else:
                resource.setrlimit(what, (limit, limit))
    except (ImportError, OSError, ValueError):
        pass
    # When the machine runs out of memory, let the kernel take the prober and not the host.
    try:
        fd = os.open(f"/proc/{pid or 'self'}/oom_score_adj", os.O_WRONLY)
    except OSError:  # not Linux, or no /proc
        return
    try:
        os.write(fd, b"1000")
    except OSError:
        pass
    finally:
        os.close(fd)
