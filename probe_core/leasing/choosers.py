"""Which of the free devices a request takes: the emptiest, and among those the best linked."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_core.leasing.acquire import Choose
    from probe_core.model.document import DeviceDoc

__all__ = ["by_load", "first_group"]


def by_load(count: int, ranked: Sequence[DeviceDoc]) -> Choose:
    """Return what picks `count` of the devices that are free; `ranked` is the order of a few."""
    places = {device["id"]: place for place, device in enumerate(ranked)}

    def pick(free: Sequence[DeviceDoc]) -> Sequence[DeviceDoc] | None:
        if len(free) < count:
            return None
        if count == 1 or len(free) == count:
            return sorted(free, key=lambda device: places[device["id"]])[:count]
        from probe_core.selection.roomy import roomiest_group

        return roomiest_group(free, count, ranked)

    return pick


def first_group(groups: Sequence[Sequence[DeviceDoc]]) -> Choose:
    """Return what picks the first group of which every device is free."""

    def pick(free: Sequence[DeviceDoc]) -> Sequence[DeviceDoc] | None:
        ids = {device["id"] for device in free}
        return next((group for group in groups if all(d["id"] in ids for d in group)), None)

    return pick
