"""The only place that touches the registry: names of subkeys and values below SYSTEM.

`winreg` is imported when the first key is read, because other systems do not have it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Values = Mapping[str, object]
    """The values of one key by name, names in lower case; types as `winreg` gives them."""

ROOT = r"SYSTEM\CurrentControlSet"
DIRECTX = r"SOFTWARE\Microsoft\DirectX"
LIMIT = 4096
"""Subkeys or values read of one key at most: far more than a key of a real machine has."""


class Registry:
    """HKEY_LOCAL_MACHINE below a key, for reading alone.

    Raises `ImportError` when made on a system without a registry.
    """

    __slots__ = ("_root", "_winreg")

    def __init__(self, root: str = ROOT) -> None:
        self._root = root
        self._winreg: Any = __import__("winreg")

    def keys(self, path: str) -> list[str]:
        """Return the names of the subkeys of `path`; nothing when it cannot be read."""
        return [str(name) for name in self._all(path, "EnumKey")]

    def values(self, path: str) -> Values:
        """Return the values of `path`; empty when unreadable.

        The registry does not tell "DriverDesc" from "driverdesc".
        """
        rows = self._all(path, "EnumValue")
        return {str(name).lower(): value for name, value, _kind in rows}

    def _all(self, path: str, function: str) -> list[Any]:
        items: list[Any] = []
        try:
            place = f"{self._root}\\{path}".rstrip("\\")
            with self._winreg.OpenKey(self._winreg.HKEY_LOCAL_MACHINE, place) as key:
                while len(items) < LIMIT:
                    items.append(getattr(self._winreg, function)(key, len(items)))
        except OSError:  # no such key, no right to read it, or the end of the list
            pass
        return items


def text(value: object) -> str | None:
    """Return a REG_SZ, or the UTF-16 text that some drivers write as REG_BINARY."""
    if isinstance(value, bytes):
        value = value.decode("utf-16-le", "replace")
    return value.strip("\0 ") or None if isinstance(value, str) else None


def number(value: object) -> int | None:
    """Return a REG_QWORD or REG_DWORD, or one written as REG_BINARY of 4 or 8 bytes."""
    if isinstance(value, bytes):
        return int.from_bytes(value, "little") if len(value) in (4, 8) else None
    return value if type(value) is int else None
