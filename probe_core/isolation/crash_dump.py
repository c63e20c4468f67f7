"""Read what Python itself writes to a child's standard error when it hangs or crashes.

The only foreign text that the core interprets: `faulthandler` has no other way to report. Its forms
are those of CPython's Python/traceback.c and Modules/faulthandler.c, as of 3.11:

    Timeout (0:00:00.400000)!
    Thread 0x00007f0000000000 (most recent call first):
      File "/path/prober.py", line 5 in probe_devices

    Fatal Python error: Segmentation fault
"""

from __future__ import annotations

from probe_core.fastpath import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["crash_headline", "has_timeout_dump", "location", "signal_name", "stuck_frame"]


def has_timeout_dump(tail: bytes) -> bool:
    """Return whether the watchdog that `confine.limit` sets began to write a stack."""
    return b"Timeout (" in tail


def stuck_frame(lines: Sequence[str]) -> str | None:
    """Return the innermost frame of the thread dumped last, which is the main one."""
    for index in reversed(range(len(lines))):
        if lines[index].startswith(("Current thread", "Thread ")):
            frames = (line.strip() for line in lines[index + 1 :] if "File " in line)
            return next(frames, None)
    return None


def location(frame: str) -> str:
    """Return ``/path/prober.py:5 in probe_devices`` of a dump's frame."""
    path, separator, place = frame.removeprefix('File "').rpartition('", line ')
    return f"{path}:{place}" if separator else frame


def crash_headline(lines: Sequence[str]) -> str | None:
    """Return the last ``Fatal Python error: …``."""
    headlines = (line for line in reversed(lines) if line.startswith("Fatal Python error"))
    return next(headlines, None)


def signal_name(number: int) -> str:
    """Return ``SIGSEGV`` for 11, ``signal 40`` for 40: without the enums that signal builds."""
    names = (n for n in dir(signal) if n.startswith("SIG") and n[3] != "_")
    return next((n for n in names if getattr(signal, n) == number), f"signal {number}")
