"""What the firmware of an AMD GPU counts: amdgpu's binary file `gpu_metrics`.

Its layouts are kernel ABI (drivers/gpu/drm/amd/include/kgd_pp_interface.h): u16 size, u8 format,
u8 content, then figures at places that the two numbers fix. An unknown layout gives no figure.
"""

from __future__ import annotations

__all__ = ["LIMIT", "busy", "energy", "layout", "throttled"]

LIMIT = 4096
"""Bytes that are read: v1.6, the longest layout here, has fewer than 1,000."""

Layout = tuple[int, int]
"""Format and content revision."""

_ACTIVITY: dict[Layout, tuple[int, int]] = {
    (1, 1): (16, 100),
    (1, 2): (16, 100),
    (1, 3): (16, 100),
    (1, 4): (12, 100),
    (1, 5): (12, 100),
    (1, 6): (12, 100),
    (2, 1): (28, 10_000),
    (2, 2): (28, 10_000),
    (2, 3): (28, 10_000),
    (2, 4): (28, 10_000),
    (3, 0): (42, 100),
}
"""Place of `average_gfx_activity`, a u16, and what of it is all: APUs of v2 count hundredths of a
percent. v1.0 and v2.0 are not aligned, and differ between compilers."""

_REASONS: dict[Layout, int] = {(1, 3): 112, (2, 2): 120, (2, 3): 120, (2, 4): 120}
"""Place of `indep_throttle_status`, a u64 with the same bits for every chip."""

_ENERGY: dict[Layout, int] = {(1, 4): 24, (1, 5): 88, (1, 6): 16}
"""Place of `energy_accumulator`, a u64, in the layouts whose header gives its unit: 2^-16 J. Older
ones leave it to the chip."""

_ABSENT_16, _ABSENT_64 = 0xFFFF, (1 << 64) - 1
"""All ones: the firmware does not count it."""

_GROUPS = {
    "power": 0xFFFF,
    "current": 0xFFFF << 16,
    "thermal": 0xFF_FFFF << 32,
    "other": 0xFF << 56,
}
"""The bits of each kind of limit: SMU_THROTTLER_*_BIT in amdgpu_smu.h."""


def layout(raw: bytes) -> Layout | None:
    """Return format and content of a whole file; None of one that is cut or of another size."""
    if len(raw) < 4 or int.from_bytes(raw[:2], "little") != len(raw):
        return None
    return raw[2], raw[3]


def busy(raw: bytes) -> float | None:
    """Return the share of time that the graphics engine worked, 0 to 1; None where unknown."""
    place, whole = _ACTIVITY.get(layout(raw) or (0, 0), (0, 0))
    value = _number(raw, place, 2)
    if value is None or value == _ABSENT_16 or value > whole:
        return None
    return value / whole


def energy(raw: bytes) -> float | None:
    """Return the joules that the card has drawn since its firmware began; None where unknown."""
    count = _number(raw, _ENERGY.get(layout(raw) or (0, 0), 0), 8)
    return None if count is None or count == _ABSENT_64 else count / 65_536


def throttled(raw: bytes) -> list[str] | None:
    """Return what holds the clock down now: power, current, thermal, other; None where unknown."""
    mask = _number(raw, _REASONS.get(layout(raw) or (0, 0), 0), 8)
    if mask is None or mask == _ABSENT_64:
        return None
    return [kind for kind, bits in _GROUPS.items() if mask & bits]


def _number(raw: bytes, place: int, size: int) -> int | None:
    part = raw[place : place + size] if place else b""
    return int.from_bytes(part, "little") if len(part) == size else None
