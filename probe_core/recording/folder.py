"""Reads machine.json: the system, environment and origin of a folder that stands for a root."""

from __future__ import annotations

import os
import stat

from probe_core.recording.about import About
from probe_core.recording.errors import BadRecording, shown
from probe_core.recording.limits import MAX_ABOUT

__all__ = ["about"]


def about(root: str) -> About:
    """Return the folder's os, arch, environ and origin; raises `BadRecording` and `OSError`."""
    from probe_core.machine import Machine

    machine = Machine(root)
    path = f"{root.rstrip('/')}/machine.json"
    try:
        return About(_table(path), machine.read)
    except BadRecording as error:
        raise BadRecording(f"{shown(path)} cannot be used: {error}") from None


def _table(path: str) -> dict[str, object]:
    try:
        with open(path, "rb", opener=_unfollowing) as file:
            # A folder of somebody else's: a device or FIFO in it would block or have no end.
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise BadRecording("it is no regular file")
            raw = file.read(MAX_ABOUT + 1)
    except FileNotFoundError:
        return {}
    if len(raw) > MAX_ABOUT:
        raise BadRecording(f"it is longer than {MAX_ABOUT >> 10} KiB")
    from probe_core.recording.document import load_table

    return dict(load_table(raw))


def _unfollowing(path: str, flags: int) -> int:
    """Open neither a link, which could lead out of the folder, nor wait for a FIFO."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))
