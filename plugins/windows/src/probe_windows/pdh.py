"""Windows' performance counters through pdh.dll: one query, read again and again.

The English names are asked for: on a German Windows "GPU Engine" has another one.
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_double, c_int32, c_size_t, c_uint32, c_void_p, c_wchar_p

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["PdhError", "Query"]

_LIBRARY = "pdh.dll"
_MORE_DATA = -0x7FFF_F82E  # PDH_MORE_DATA, 0x800007D2, of pdhmsg.h
_DOUBLE, _NO_CAP = 0x200, 0x8000
"""PDH_FMT_DOUBLE, and PDH_FMT_NOCAP100: shares of several processors may be above 100."""

_VALID = (0, 1)
"""PDH_CSTATUS_VALID_DATA and PDH_CSTATUS_NEW_DATA."""

_ROOM = 16 << 20
"""Bytes of one counter's instances at most: a hundred thousand of them."""


class PdhError(OSError):
    """A call failed; the message has its name and status."""


class _Item(ctypes.Structure):
    """PDH_FMT_COUNTERVALUE_ITEM_W with a double."""

    _fields_ = (("name", c_wchar_p), ("status", c_uint32), ("value", c_double))


class Query:
    """A query with counters, by their paths; raises `OSError`, also without the library."""

    def __init__(self, *paths: str) -> None:
        self._library: Any = ctypes.CDLL(_LIBRARY)
        for name in ("PdhOpenQueryW", "PdhAddEnglishCounterW", "PdhCollectQueryData"):
            getattr(self._library, name).restype = c_int32
        self._library.PdhGetFormattedCounterArrayW.restype = c_int32
        self._query = c_void_p()
        self._call("PdhOpenQueryW", None, c_size_t(0), byref(self._query))
        self._counters: dict[str, c_void_p] = {}
        for path in paths:
            counter = c_void_p()
            place = c_size_t(0)
            self._call("PdhAddEnglishCounterW", self._query, c_wchar_p(path), place, byref(counter))
            self._counters[path] = counter

    def collect(self) -> None:
        """Read all counters; a rate has a value from the second time on."""
        self._call("PdhCollectQueryData", self._query)

    def values(self, path: str) -> dict[str, float]:
        """Return the value of each instance of a counter that has one now."""
        size, count = c_uint32(0), c_uint32(0)
        read = self._library.PdhGetFormattedCounterArrayW
        place = (self._counters[path], c_uint32(_DOUBLE | _NO_CAP))
        status = read(*place, byref(size), byref(count), None)
        if status != _MORE_DATA or not 0 < size.value <= _ROOM:
            return {}
        buffer = ctypes.create_string_buffer(size.value)
        if read(*place, byref(size), byref(count), buffer):
            return {}
        items = ctypes.cast(buffer, ctypes.POINTER(_Item))
        return {
            str(items[number].name): float(items[number].value)
            for number in range(min(count.value, size.value // ctypes.sizeof(_Item)))
            if items[number].status in _VALID
        }

    def _call(self, name: str, *arguments: Any) -> None:
        status: int = getattr(self._library, name)(*arguments)
        if status:
            raise PdhError(f"{name} answered {status & 0xFFFF_FFFF:#010x}")
