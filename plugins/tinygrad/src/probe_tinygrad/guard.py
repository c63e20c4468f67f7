"""Refuses, inside tinygrad's process, what no probe may do: whatever version asks for it.

An audit hook cannot be removed and sees `os.open`, ``ctypes`` and ``subprocess`` alike. It is a
second line behind the chosen interfaces, not a sandbox.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Refused", "install", "refusal"]

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# Programs that raise rights, change the kernel's modules, or fetch files.
_PROGRAMS = ("sudo", "doas", "pkexec", "modprobe", "rmmod", "insmod", "curl", "wget")
_STARTS = ("subprocess.Popen", "os.posix_spawn", "os.exec", "os.spawn")


class Refused(PermissionError):
    """tinygrad tried what a probe may not do."""


def install() -> None:
    """Refuse from now on, for the remaining life of this process."""
    sys.addaudithook(_hook)


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    reason = refusal(event, arguments)
    if reason is not None:
        raise Refused(f"a probe may not {reason}")


def refusal(event: str, arguments: tuple[Any, ...]) -> str | None:
    """Return what the audited event would do that no probe may, or None."""
    if event == "open":
        return _opening(_text(arguments[0]), arguments[2])
    if event in _STARTS:
        return _starting(arguments)
    if event == "os.system":
        return f"run {_text(arguments[0])[:80]!r} in a shell"
    if event == "ctypes.dlopen" and "libusb" in _text(arguments[0]):
        return "open USB devices"  # its USB interface claims whatever bridge it sees
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        return "use the network"
    return None


def _opening(path: str, flags: object) -> str | None:
    if path.startswith(("/dev/mem", "/dev/vfio")):
        return f"open {path}"
    # Flags are None where the io module wraps a descriptor that was checked when it was opened.
    writes = isinstance(flags, int) and flags & _WRITES
    return f"write to {path}" if writes and path.startswith(("/sys/", "/proc/")) else None


def _starting(arguments: tuple[Any, ...]) -> str | None:
    command = arguments[1] if len(arguments) > 1 else ()
    # The first three, because the program may stand behind `env`, or in `sh -c "sudo …"`.
    parts = [command] if isinstance(command, (str, bytes)) else list(command or ())[:3]
    for name in (_text(part) for part in (arguments[0], *parts) if part):
        program = os.path.basename(name.split(" ")[0])
        if program in _PROGRAMS:
            return f"start {program}"
    return None


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else str(value)
