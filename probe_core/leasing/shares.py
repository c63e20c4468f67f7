"""Whether a device's sharers leave room for another: those who reserve memory share out its sum."""

from __future__ import annotations

from probe_core.leasing.owners import living_sharers
from probe_core.selection.candidates import free_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_core.leasing.acquire import Terms
    from probe_core.leasing.owners import Owner
    from probe_core.model.document import DeviceDoc

__all__ = ["capacity", "shares_with"]


def capacity(device: DeviceDoc) -> int:
    """Return the bytes of a device that can be reserved in all; 0 where its memory is unknown."""
    memory = device["memory"]
    amounts = [amount for amount in (memory["total"], memory["usable"]) if amount is not None]
    return max(amounts, default=0)


def shares_with(device: DeviceDoc, owners: Sequence[Owner], terms: Terms) -> bool:
    """Return whether the owners of a device let a request that shares it on these terms in too.

    Who reserves a part and who takes what it gets do not mix: the second could use up the part.
    """
    living = living_sharers(owners)
    if terms.reserve is None:
        return all(owner.reserve is None for owner in living)
    if any(owner.reserve is None for owner in living):
        return False
    if not living:  # what else is on the device is no reserver's, and will not go away for one
        return terms.reserve <= (free_memory(device) or 0)
    reserved = sum(owner.reserve or 0 for owner in living)
    return reserved + terms.reserve <= capacity(device)
