"""The ways to misbehave: what a host must survive, made by hand for its tests."""

from __future__ import annotations

import os
import sys
import time

from probe_core.api import Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["BEHAVIOURS", "wait"]


def wait(seconds: float) -> None:
    """Sleep, as a slow driver does."""
    time.sleep(seconds)


def _hang() -> None:
    while True:
        time.sleep(3600)


def _spin() -> None:
    while True:
        pass


def _hold_the_gil() -> None:
    import ctypes

    # PyDLL, unlike CDLL, keeps the lock during the call, as many drivers' bindings do.
    ctypes.PyDLL(None).sleep(3600)


def _segfault() -> None:
    import ctypes

    ctypes.string_at(0)


def _raise() -> None:
    raise RuntimeError("the synthetic prober's file makes it raise")


def _unavailable() -> None:
    raise Unavailable(
        "the synthetic prober's file makes its hardware unavailable",
        code="synthetic",
        fix="take `then` out of the file",
    )


def _noise() -> None:
    print("noise on standard output", flush=True)
    for number in range(1000):
        print(f"noise {number} on standard error", file=sys.stderr)


def _daemon() -> None:
    if os.fork() == 0:
        # A session of its own, so that ending the prober's process group does not end it.
        os.setsid()
        _hang()


def _memory() -> None:
    blocks = []
    while True:
        # 16 MiB at a time: fast enough for a test, and slow enough to be stopped at a limit.
        blocks.append(b"x" * (16 << 20))


def _out_of_memory() -> None:
    raise MemoryError


BEHAVIOURS: dict[str, Callable[[], object]] = {
    "hang": _hang,
    "spin": _spin,
    "hold-the-gil": _hold_the_gil,
    "segfault": _segfault,
    "abort": os.abort,
    "exit": lambda: os._exit(3),
    "sys-exit": lambda: sys.exit(3),
    "raise": _raise,
    "unavailable": _unavailable,
    "out-of-memory": _out_of_memory,
    "use-memory": _memory,
    "noise": _noise,
    "daemon": _daemon,
    "close-all": lambda: os.closerange(3, 4096),
}
"""The values of ``then``, and what each does. ``noise`` and ``daemon`` end well."""
