"""Reads a card's power limits: the one in force, the card's own, and the highest allowed.

hwmon's power1_cap files are in microwatts (amdgpu_pm.c); reading them wakes a sleeping card.
"""

from __future__ import annotations

from probe_core.sysfs.numbered import entries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.api import Machine
    from probe_core.sysfs.pci import Function
    from probe_core.sysfs.sighting import Draft

_FILES = {"limit_watts": "cap", "default_watts": "cap_default", "max_watts": "cap_max"}


def describe(machine: Machine, draft: Draft, card: Function) -> None:
    """Put the limits of an awake card into `draft`, and that it is below its default."""
    if card.asleep:
        return
    for _, folder in entries(machine, f"{card.folder}/hwmon", "hwmon")[:1]:
        limits = {
            field: microwatts / 1e6
            for field, name in _FILES.items()
            if (microwatts := machine.read_int(f"{folder}/power1_{name}")) and microwatts > 0
        }
        draft.put("power", limits)
        limit, default = limits.get("limit_watts"), limits.get("default_watts")
        if limit and default and limit < default:
            evidence = f"{folder}/power1_cap is {limit:g} W, its default {default:g} W"
            draft.fact("responding", "broken", evidence, "power-capped")
