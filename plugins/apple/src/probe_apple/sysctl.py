"""Reads macOS's sysctls through libc: starting the sysctl command would take longer.

Of a recorded machine they are lines of /recorded/sysctl.txt, as ``sysctl NAME …`` prints them:
``hw.memsize: 137438953472``.
"""

from __future__ import annotations

from probe_apple.commands import RECORDED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.api import Machine

LIMIT = 4096
"""Bytes of one value at most: those that are read here are numbers and names."""


class Sysctl:
    """The sysctls of one machine: `number` and `text` return None for what is not there."""

    __slots__ = ("_recorded",)

    def __init__(self, machine: Machine) -> None:
        self._recorded: dict[str, str] | None = None
        if not machine.live:
            lines = (machine.read(f"{RECORDED}/sysctl.txt") or "").splitlines()
            pairs = (line.partition(":") for line in lines)
            self._recorded = {name.strip(): value.strip() for name, _, value in pairs}

    def number(self, name: str) -> int | None:
        """Return an integer sysctl (hw.memsize has 8 bytes, iogpu.wired_limit_mb 4)."""
        if self._recorded is not None:
            value = self._recorded.get(name, "")
            # Twenty digits are what 64 bits have.
            is_number = value.isascii() and value.isdecimal() and len(value) <= 20
            return int(value) if is_number else None
        raw = _raw(name)
        return int.from_bytes(raw, "little") if raw and len(raw) in (4, 8) else None

    def text(self, name: str) -> str | None:
        """Return a text sysctl; None when it is empty."""
        if self._recorded is not None:
            return self._recorded.get(name) or None
        raw = _raw(name)
        return raw.split(b"\0")[0].decode("utf-8", "replace").strip() or None if raw else None


def _raw(name: str) -> bytes | None:
    import ctypes

    try:
        call = ctypes.CDLL(None).sysctlbyname
    except (OSError, AttributeError):  # AttributeError: a libc without it
        return None
    size = ctypes.c_size_t(0)
    key = name.encode()
    if call(key, None, ctypes.byref(size), None, ctypes.c_size_t(0)) != 0:
        return None
    if not 0 < size.value <= LIMIT:
        return None
    buffer = ctypes.create_string_buffer(size.value)
    if call(key, buffer, ctypes.byref(size), None, ctypes.c_size_t(0)) != 0:
        return None
    return buffer.raw[: size.value]
