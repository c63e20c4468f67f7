"""The text of the kernel's log, from files or the system call that dmesg uses; opens no device."""

from __future__ import annotations

from probe_core.machine import open_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.doctor.check import Request
    from probe_core.machine import Machine

__all__ = ["NEEDS", "KernelLog", "kernel_log"]

_FILES = ("/var/log/dmesg", "/var/log/kern.log", "/var/log/messages")
_RESTRICT = "/proc/sys/kernel/dmesg_restrict"
NEEDS = (*_FILES, _RESTRICT)

_TAIL = 1 << 20
"""Bytes of a log that are read, from its end: several boots of a busy server."""

_BOOT = "Linux version "
"""The first line that a kernel logs: what stands before it is an earlier boot's."""

_READ_ALL, _SIZE = 3, 10  # SYSLOG_ACTION_READ_ALL, SYSLOG_ACTION_SIZE_BUFFER of syslog(2)


class KernelLog:
    """The log since the machine started; `text` is None where it cannot be read, for `reason`."""

    __slots__ = ("reason", "text")

    def __init__(self, text: str | None, reason: str = "") -> None:
        self.text = text
        self.reason = reason


def kernel_log(request: Request) -> KernelLog:
    """Return the log, read once for all checks."""
    return request.once("kernel log", lambda: _read(request.machine))


def _read(machine: Machine) -> KernelLog:
    text = _by_call() if machine.live and machine.os == "linux" else None
    if text is None:
        texts = (_tail(machine, path) for path in _FILES)
        text = next((text for text in texts if text), None)
    if text is not None:
        return KernelLog(text[max(0, text.rfind(_BOOT)) :])
    if not machine.live:
        return KernelLog(None, "the recording has no kernel log")
    return KernelLog(None, "the kernel's log may be read by root alone here")


def _tail(machine: Machine, path: str) -> str | None:
    try:
        with open_regular(machine.path(path)) as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _TAIL))
            return file.read(_TAIL).decode("utf-8", "replace")
    except (OSError, ValueError):
        return None


def _by_call() -> str | None:
    """Return the kernel's ring buffer by syslog(2), which changes nothing in it."""
    try:
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        size = min(libc.klogctl(_SIZE, None, 0), _TAIL)
        if size <= 0:
            return None
        buffer = ctypes.create_string_buffer(size)
        length = libc.klogctl(_READ_ALL, buffer, size)
        return buffer.raw[:length].decode("utf-8", "replace") if length > 0 else None
    except (ImportError, OSError, AttributeError, ValueError):
        return None
