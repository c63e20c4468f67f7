"""Groups that have free memory and are near each other: memory first, in steps, then the links."""

from __future__ import annotations

from probe_core.selection.candidates import free_memory, load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_core.model.document import DeviceDoc

__all__ = ["roomiest_group"]

_MUCH, _HALF = 0.9, 0.5
"""Shares of the emptiest device's free memory down to which links decide: a tenth less does not
part two linked devices (a judgement); a device that is half full goes behind all that are not."""


def roomiest_group(
    devices: Sequence[DeviceDoc], size: int, among: Sequence[DeviceDoc] = ()
) -> list[DeviceDoc]:
    """Return the `size` devices that are closest together among those with the most memory free.

    Idle devices come before used ones. `among` are all that could have been had: what counts as
    much memory is measured by the emptiest of them.
    """
    from probe_core.selection.layout import best_group

    most = max((free_memory(device) or 0 for device in among or devices), default=0)
    classes = {device["id"]: _class(device, most) for device in devices}
    worst = sorted(classes.values())[size - 1]
    return best_group([device for device in devices if classes[device["id"]] <= worst], size)


def _class(device: DeviceDoc, most: int) -> tuple[int, bool, int]:
    used, unknown, _ = load(device)
    amount = free_memory(device) or 0
    return used, unknown, 0 if amount >= _MUCH * most else 1 if amount >= _HALF * most else 2
