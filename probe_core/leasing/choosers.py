"""Which of the free devices a request takes: the emptiest, and among those the best linked."""

from __future__ import annotations

from probe_core.selection.candidates import free_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_core.leasing.acquire import Choose
    from probe_core.model.document import DeviceDoc

__all__ = ["by_load", "first_group", "load"]

_MUCH, _HALF = 0.9, 0.5
"""Shares of the emptiest device's free memory down to which links decide: a tenth less does not
part two linked devices (a judgement); a device that is half full goes behind all that are not."""


def load(device: DeviceDoc) -> tuple[int, bool, int]:
    """Rank a device: idle ones first, then those with more free memory; unknown behind known.

    In whole GiB, so that a few MiB of a desktop do not decide between equal cards. A driver that
    tells no free memory would otherwise pass for an empty device.
    """
    processes, memory = device.get("processes"), device["memory"]
    used = 1 if processes is None else 2 if processes else 0
    unknown = memory["free"] is None and memory["usable"] is None
    return used, unknown, -((free_memory(device) or 0) >> 30)


def by_load(count: int, ranked: Sequence[DeviceDoc]) -> Choose:
    """Return what picks `count` of the devices that are free; `ranked` is the order of a few."""
    places = {device["id"]: place for place, device in enumerate(ranked)}
    most = max((free_memory(device) or 0 for device in ranked), default=0)

    def pick(free: Sequence[DeviceDoc]) -> Sequence[DeviceDoc] | None:
        if len(free) < count:
            return None
        if count == 1 or len(free) == count:
            return sorted(free, key=lambda device: places[device["id"]])[:count]
        from probe_core.selection.layout import best_group

        return best_group(_emptiest(free, count, most), count)

    return pick


def _emptiest(free: Sequence[DeviceDoc], count: int, most: int) -> list[DeviceDoc]:
    """Return the devices of the best classes that together are enough, in their own order."""
    classes = {device["id"]: _class(device, most) for device in free}
    worst = sorted(classes.values())[count - 1]
    return [device for device in free if classes[device["id"]] <= worst]


def _class(device: DeviceDoc, most: int) -> tuple[int, bool, int]:
    used, unknown, _ = load(device)
    amount = free_memory(device) or 0
    return used, unknown, 0 if amount >= _MUCH * most else 1 if amount >= _HALF * most else 2


def first_group(groups: Sequence[Sequence[DeviceDoc]]) -> Choose:
    """Return what picks the first group of which every device is free."""

    def pick(free: Sequence[DeviceDoc]) -> Sequence[DeviceDoc] | None:
        ids = {device["id"] for device in free}
        return next((group for group in groups if all(d["id"] in ids for d in group)), None)

    return pick
