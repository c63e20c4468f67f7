"""Lists what the kernel numbers: tile0, tile1 …, card0, hwmon3; in the order of the numbers."""

from __future__ import annotations

from probe_core.machine import decimal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from probe_core.machine import Machine

__all__ = ["MAX_ENTRIES", "entries", "lowest", "number_of"]

MAX_ENTRIES = 4096
"""Names of one folder that are looked at: sixteen times the devices that a prober may report."""


def number_of(name: str, stem: str) -> int | None:
    """Return 3 of ``card3`` and the stem ``card``; None for ``card3-DP-1``, or another stem."""
    return decimal(name[len(stem) :]) if name.startswith(stem) else None


def entries(machine: Machine, folder: str, stem: str) -> list[tuple[int, str]]:
    """Return (number, path) of each entry of `folder` that is `stem` and a number."""
    numbers = (
        (number_of(name, stem), f"{folder}/{name}")
        for name in machine.listdir(folder)[:MAX_ENTRIES]
    )
    # Sorted as text, tile10 would come before tile2.
    return sorted((number, path) for number, path in numbers if number is not None)


def lowest(machine: Machine, folder: str, stems: Mapping[str, str]) -> dict[str, int]:
    """Return for each label of `stems` the lowest number of its stem in `folder`, if any.

    ``lowest(machine, f"{folder}/drm", {"drm_card": "card"})`` is ``{"drm_card": 1}``.
    """
    names = machine.listdir(folder)[:MAX_ENTRIES]
    minors: dict[str, int] = {}
    for label, stem in stems.items():
        numbers = [number for name in names if (number := number_of(name, stem)) is not None]
        if numbers:
            minors[label] = min(numbers)
    return minors
