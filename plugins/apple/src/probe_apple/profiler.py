"""Reads the JSON of system_profiler; keys that a macOS release renames are missing, not fatal."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# First letter of the unit, in any language that macOS writes ("Go" in French) → power of two.
_UNITS = {"k": 10, "m": 20, "g": 30, "t": 40}


class Profile:
    """`hardware`: the facts of SPHardwareDataType; `displays`: one table per GPU."""

    __slots__ = ("displays", "hardware")

    def __init__(self, output: bytes | None) -> None:
        document = _parse(output)
        hardware = _tables(document.get("SPHardwareDataType"))
        self.hardware: Mapping[str, Any] = hardware[0] if hardware else {}
        self.displays = _tables(document.get("SPDisplaysDataType"))


def _parse(output: bytes | None) -> dict[str, Any]:
    import json

    try:
        document = json.loads(output or b"{}")
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _tables(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def first_text(table: Mapping[str, Any], *names: str) -> str | None:
    """Return the first of the named texts that is there and not empty."""
    for name in names:
        value = table.get(name)
        if isinstance(value, str) and value.strip():
            return value.strip()
    return None


def size(text: str | None) -> int | None:
    """Return "4 GB", "1536 MB" or "1,5 Go" in bytes; macOS counts memory in powers of two."""
    number, _, unit = (text or "").replace("\u00a0", " ").partition(" ")
    shift = _UNITS.get(unit.strip()[:1].lower())
    try:
        value = float(number.replace(",", "."))
    except ValueError:
        return None
    return int(value * (1 << shift)) if shift and 0 < value < 1 << 20 else None


def hexadecimal(text: str | None) -> str | None:
    """Return "0x7340" as "7340"; None for what is no PCI device id."""
    digits = (text or "").lower().removeprefix("0x")
    is_id = 0 < len(digits) <= 4 and set(digits) <= set("0123456789abcdef")
    return digits.rjust(4, "0") if is_id else None


def metal(table: Mapping[str, Any]) -> str | None:
    """Return the level of Metal: "metal3" of spdisplays_metal3, "mac2" of …mtlgpufamilymac2."""
    level = first_text(table, "spdisplays_mtlgpufamilysupport", "spdisplays_metalfamily")
    if not level:
        return None
    return level.lower().removeprefix("spdisplays_").removeprefix("mtlgpufamily") or None
