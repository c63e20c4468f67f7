"""Calls of the C library that Python does not offer: prctl(2) and inotify(7), by their numbers."""

from __future__ import annotations

__all__ = ["call"]


def call(name: str, *arguments: int | bytes) -> int:
    """Call a function of the C library with integers and bytes; -1 where there is none such."""
    try:
        import _ctypes  # a quarter of the time that ctypes takes

        loaded = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # None: this process itself
        return int(_ctypes.call_cdeclfunction(_ctypes.dlsym(loaded, name), arguments))
    except (ImportError, OSError, AttributeError):  # another system, or a Python without it
        return -1
