"""Refuses, in the measuring child, what no measurement needs, whatever a library asks for.

Without a kernel driver tinygrad takes a PCI device itself: it unbinds drivers through /sys, maps
/dev/mem, loads firmware from the network (tinygrad/runtime/support/system.py). As root that would
succeed. An audit hook cannot be removed; it is a second line behind `interfaces`, no sandbox.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Refused", "install", "refusal"]

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_NODES = ("/dev/mem", "/dev/vfio", "/dev/bus/usb")
_STARTS = frozenset(("subprocess.Popen", "os.posix_spawn", "os.exec", "os.spawn"))
_PROGRAMS = frozenset("sudo doas pkexec modprobe rmmod insmod curl wget".split())


class Refused(PermissionError):
    """A library tried what a measurement may not do."""


def install() -> None:
    """Refuse from now on, for the remaining life of this process."""
    sys.addaudithook(_hook)


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    reason = refusal(event, arguments)
    if reason is not None:
        raise Refused(f"a measurement may not {reason}")


def refusal(event: str, arguments: tuple[Any, ...]) -> str | None:
    """Return what the audited event would do that no measurement may; None for all else."""
    if event == "open":
        return _opening(_text(arguments[0]), arguments[2])
    if event in _STARTS:
        program = os.path.basename(_text(arguments[0]))
        return f"start {program}" if program in _PROGRAMS else None
    if event == "os.system":
        return "run a shell"
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        return "use the network"
    if event == "ctypes.dlopen" and "libusb" in _text(arguments[0]):
        return "open USB devices"
    return None


def _opening(path: str, flags: object) -> str | None:
    if path.startswith(_NODES):
        return f"open {path}"
    writes = isinstance(flags, int) and flags & _WRITES
    return f"write to {path}" if writes and path.startswith(("/sys/", "/proc/")) else None


def _text(value: object) -> str:
    # A path of bytes is the same path.
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
