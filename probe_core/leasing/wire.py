"""What front and keeper of a lease tell each other, and how both leave the caller's files."""

from __future__ import annotations

import fcntl
import os

from probe_core.isolation.start import discard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    Event = tuple[int, int, int]

__all__ = [
    "ENDED",
    "PASS_ON",
    "STARTED",
    "STOPPED",
    "WAKE",
    "Event",
    "Wire",
    "leave_files",
    "open_files",
    "pipe",
]

STARTED, STOPPED, ENDED, PASS_ON = range(4)
"""Kinds of events: a command started (value: its process), was stopped (the signal), has ended (its
wait status); a signal is to be passed on (its number)."""

WAKE = 35
"""The signal that tells the keeper to look at its wire: the second real-time signal that glibc does
not use itself (signal(7))."""

_NUMBERS = 1 << 16
"""Descriptors that are closed one by one where nothing lists them: 10 ms."""

_SIZE = 12
"""Bytes of an event: three numbers of four bytes. The module struct takes 0.2 ms to import."""


class Wire:
    """A pair of pipes for events: kind, number of the command, value."""

    __slots__ = ("files",)

    def __init__(self, reading: int, writing: int) -> None:
        self.files = (reading, writing)
        os.set_blocking(reading, False)

    def send(self, event: Event) -> None:
        """Send an event; nothing happens where the other end is gone."""
        try:
            os.write(self.files[1], b"".join(number.to_bytes(4, "little") for number in event))
        except OSError:
            return

    def receive(self) -> Iterator[Event]:
        """Yield the events that have come; each was written whole (PIPE_BUF, pipe(7))."""
        while True:
            try:
                data = os.read(self.files[0], _SIZE)
            except OSError:
                return
            if len(data) < _SIZE:
                return
            kind, number, value = (data[at : at + 4] for at in (0, 4, 8))
            yield (
                int.from_bytes(kind, "little"),
                int.from_bytes(number, "little"),
                int.from_bytes(value, "little"),
            )


def pipe() -> tuple[int, int]:
    """Make a pipe of which no end is a standard descriptor, which a caller may have closed."""
    ends = os.pipe()
    if min(ends) > 2:
        return ends
    moved = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 3) for end in ends]
    for end in ends:
        os.close(end)
    return moved[0], moved[1]


def leave_files(needed: Collection[int]) -> None:
    """Close everything but `needed`, point 0 to 2 at nothing, and leave the current folder.

    A pipe that the command closes would otherwise stay open here, and its reader wait for ever;
    a folder could not be unmounted.
    """
    discard((0,), os.O_RDONLY)
    discard((1, 2), os.O_WRONLY)
    for number in open_files():
        if number > 2 and number not in needed:
            try:
                os.close(number)
            except OSError:  # the listing's own
                continue
    os.chdir("/")


def open_files() -> Collection[int]:
    """Return the descriptors that this process may have open."""
    for folder in ("/proc/self/fd", "/dev/fd"):
        try:
            return [int(name) for name in os.listdir(folder)]
        except OSError:  # a container without it
            continue
    return range(min(os.sysconf("SC_OPEN_MAX"), _NUMBERS))
