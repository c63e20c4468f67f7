"""The latency to a peer: how long a TCP connection takes to be made, measured beside the samples.

A connection is one round trip, needs no rights and no program at the other end but a port that
answers, refused or not. A thread measures, because looking a name up cannot be interrupted; it
ends with the process.
"""

from __future__ import annotations

import socket
import threading
import time

from probe_watch.figures import Figure

LIMIT_S = 1.0
"""Seconds that a connection may take: ten times the threshold that the alert has by default."""

_MAX_PORT = 65535


def place_of(text: str) -> tuple[str, int] | None:
    """Return host and port of ``desk:22`` or ``[::1]:22``; None of anything else."""
    host, _, port = text.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not host or not port.isdecimal() or len(port) > 5 or not 0 < int(port) <= _MAX_PORT:
        return None
    return host, int(port)


class Peer:
    """Measures one peer each `interval` seconds, from `start` on until `close`.

    `figure` is the last latency in milliseconds, or why there is none.
    """

    def __init__(self, place: tuple[str, int], interval: float) -> None:
        self.name = f"{place[0]}:{place[1]}"
        self.figure = Figure(None, f"{self.name} was not reached yet")
        self._place = place
        self._interval = interval
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="probe-watch-peer", daemon=True)

    def start(self) -> None:
        """Begin to measure; without room for a thread the latency stays unknown."""
        try:
            self._thread.start()
        except RuntimeError as error:
            self.figure = Figure(None, f"no thread can be started: {error}")

    def close(self) -> None:
        """End; a lookup of a name that hangs is left to the end of the process."""
        self._ended.set()

    def _run(self) -> None:
        addresses: list[tuple[int, tuple[object, ...]]] = []
        while not self._ended.is_set():
            began = time.monotonic()
            try:
                addresses = addresses or _addresses(self._place)
                self.figure = Figure(_connected(*addresses[0]) * 1000)
            except TimeoutError:
                # A bound: what takes longer than any sensible threshold has exceeded it.
                self.figure = Figure(LIMIT_S * 1000)
            # A name with an empty or too long label is a UnicodeError of Python's IDNA codec.
            except (OSError, UnicodeError) as error:
                reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
                self.figure = Figure(None, f"{self.name}: {reason}")
                addresses = []  # it may have moved: the name is looked up again
            self._ended.wait(max(0.0, self._interval - (time.monotonic() - began)))


def _addresses(place: tuple[str, int]) -> list[tuple[int, tuple[object, ...]]]:
    listed = socket.getaddrinfo(*place, type=socket.SOCK_STREAM)
    return [(family, address) for family, _, _, _, address in listed]


def _connected(family: int, address: tuple[object, ...]) -> float:
    """Return the seconds that a connection takes; raises `OSError` where there is no answer."""
    with socket.socket(family, socket.SOCK_STREAM) as connection:
        connection.settimeout(LIMIT_S)
        began = time.perf_counter()
        try:
            connection.connect(address)
        except ConnectionRefusedError:
            pass  # the refusal took the same way
        return time.perf_counter() - began
