"""Which program a process runs, and since when, from one file of /proc.

Not from ``/proc/PID/cmdline``: reading that waits for the lock of the process's memory, which one
that hangs in a driver holds for ever (`ps` hangs so, too). Nor does it show what arguments hold.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from probe_core.wording import clean_text

__all__ = ["Program", "Programs"]

_LIMIT = 4096
_NAME_LIMIT = 64
_START = 19
"""Place of the start time behind the name: field 22 of proc(5), in ticks since boot."""


class Program(NamedTuple):
    """A program's name, and the seconds that the process runs; None where /proc does not say."""

    name: str
    seconds: float | None


class Programs:
    """Looks processes up below `root`, which tests replace."""

    def __init__(self, root: str = "/proc") -> None:
        self._root = root

    def of(self, pid: int) -> Program | None:
        """Return the program of a process; None where it is gone, or where there is no /proc."""
        head, _, rest = _read(f"{self._root}/{pid}/stat").rpartition(b")")
        name = head.partition(b"(")[2].decode("utf-8", "replace")
        fields = rest.split()
        if not name or len(fields) <= _START:
            return None
        return Program(clean_text(name, _NAME_LIMIT), self._age(fields[_START]))

    def _age(self, ticks: bytes) -> float | None:
        uptime = _read(f"{self._root}/uptime").partition(b" ")[0]
        try:
            return max(0.0, float(uptime) - int(ticks) / os.sysconf("SC_CLK_TCK"))
        except ValueError:
            return None


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(_LIMIT)
    except OSError:
        return b""
