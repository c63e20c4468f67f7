"""AMD's own kernel driver (amdgpu-dkms) to the ROCm that it came with."""

from __future__ import annotations

# Its packages name both (6.12.12.60400).
_RELEASES: dict[tuple[int, ...], str] = {
    (6, 3): "6.0",
    (6, 7): "6.1",
    (6, 8): "6.2",
    (6, 10): "6.3",
    (6, 12): "6.4",
    (6, 14): "7.0",
    (6, 16): "7.1",
}


def release_of_driver(text: str) -> str | None:
    """Return "6.4" of "6.12.12", the text of /sys/module/amdgpu/version; None where unknown."""
    return _RELEASES.get(first_numbers(text))


def first_numbers(text: str) -> tuple[int, ...]:
    """Return (6, 4) of "6.4.1"; less than two numbers where a version does not begin so."""
    parts = text.strip().split(".")[:2]
    return tuple(int(part) for part in parts if part.isdecimal() and len(part) < 6)
