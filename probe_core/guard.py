"""Refuses, in a process made to run a foreign library, what no probe and no measurement needs.

Without a kernel driver tinygrad takes a PCI device itself: it unbinds drivers through /sys, maps
/dev/mem and loads firmware from the network (tinygrad/runtime/support/system.py). As root that
would succeed. An audit hook cannot be removed, and sees `os.open`, ``ctypes`` and ``subprocess``
alike. It is a second line behind the chosen interfaces, no sandbox.
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
_STARTS = ("subprocess.Popen", "os.posix_spawn", "os.exec", "os.spawn")
# Programs that raise rights, change the kernel's modules, or fetch files.
_PROGRAMS = ("sudo", "doas", "pkexec", "modprobe", "rmmod", "insmod", "curl", "wget")


class Refused(PermissionError):
    """A library tried what the process may not do."""


def install(purpose: str) -> None:
    """Refuse from now on, for the remaining life of this process, which is for a `purpose`.

    It is the subject of the sentences: "a probe" may not open /dev/mem.
    """

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        reason = refusal(event, arguments)
        if reason is not None:
            raise Refused(f"{purpose} may not {reason}")

    sys.addaudithook(hook)


def refusal(event: str, arguments: tuple[Any, ...]) -> str | None:
    """Return what the audited event would do that must not be done; None for all else."""
    if event == "open":
        return _opening(_text(arguments[0]), arguments[2])
    if event in _STARTS:
        return _starting(arguments)
    if event == "os.system":
        return f"run {_text(arguments[0])[:80]!r} in a shell"
    if event == "ctypes.dlopen" and "libusb" in _text(arguments[0]):
        return "open USB devices"  # tinygrad's USB interface claims whatever bridge it sees
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        return "use the network"
    return None


def _opening(path: str, flags: object) -> str | None:
    if path.startswith(_NODES):
        return f"open {path}"
    # Flags are None where the io module wraps a descriptor that was checked when it was opened.
    writes = isinstance(flags, int) and flags & _WRITES
    return f"write to {path}" if writes and path.startswith(("/sys/", "/proc/")) else None


def _starting(arguments: tuple[Any, ...]) -> str | None:
    # Of os.spawn the program, which its mode goes before; anybody may raise an event with less.
    command = arguments[1] if len(arguments) > 1 else ()
    # The first three, because the program may stand behind `env`, or in `sh -c "sudo …"`.
    parts = [command] if isinstance(command, (str, bytes)) else list(command or ())[:3]
    for name in (_text(part) for part in (arguments[0], *parts) if part):
        program = os.path.basename(name.split(" ")[0])
        if program in _PROGRAMS:
            return f"start {program}"
    return None


def _text(value: object) -> str:
    # A path of bytes is the same path.
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
