"""The only place that touches the registry: names of subkeys and values below SYSTEM.

`winreg` is imported when the first key is asked for, because other systems do not have it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ROOT = r"SYSTEM\CurrentControlSet"
LIMIT = 4096
"""Subkeys or values read of one key at most: a bound alone, drivers write some hundred values."""


class Registry:
    """HKEY_LOCAL_MACHINE below SYSTEM\\CurrentControlSet, for reading alone.

    Raises `ImportError` when made on a system without a registry.
    """

    __slots__ = ("_winreg",)

    def __init__(self) -> None:
        self._winreg: Any = __import__("winreg")

    def keys(self, path: str) -> list[str]:
        """Return the names of the subkeys of `path`; nothing when it cannot be read."""
        return [str(name) for name in self._all(path, "EnumKey")]

    def values(self, path: str) -> dict[str, Any]:
        """Return the values of `path` by name, names in lower case; empty when unreadable.

        The registry does not tell "DriverDesc" from "driverdesc".
        """
        triples = self._all(path, "EnumValue")
        return {str(name).lower(): value for name, value, _kind in triples}

    def _all(self, path: str, function: str) -> list[Any]:
        entries: list[Any] = []
        try:
            with self._winreg.OpenKey(self._winreg.HKEY_LOCAL_MACHINE, f"{ROOT}\\{path}") as key:
                while len(entries) < LIMIT:
                    entries.append(getattr(self._winreg, function)(key, len(entries)))
        except OSError:  # no such key, no right to read it, or the end of the list
            pass
        return entries


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
