"""Reads the highest clock of an Intel GPU's main engine, in MHz.

i915 keeps RP0 and the limits in memory (intel_rps_get_rp0_frequency and its siblings in
intel_rps.c), so its files answer for a sleeping GPU too. Every file of xe's ``freq0`` folder takes
the device out of its sleep (xe_pm_runtime_get in xe_gt_freq.c): those are for an awake one alone.
"""

from __future__ import annotations

from probe_core.sysfs.numbered import entries
from probe_intel.functions import ASLEEP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_core.api import Machine
    from probe_core.sysfs.pci import Function
    from probe_core.sysfs.sighting import Draft


def describe(machine: Machine, draft: Draft, function: Function) -> None:
    """Put the driver's maximum, an administrator's lower limit and the memory's clock in `draft`.

    The driver's maximum (RP0) is what the silicon may reach, not what a datasheet promises.
    """
    if function.driver == "xe" and function.asleep:
        draft.put("clocks.max_mhz", None, ASLEEP)
        return
    engines = list(_xe(machine, function.folder) or _i915(machine, function.folder))
    highest = max((rp0 for rp0, _ in engines if rp0 is not None and rp0 > 0), default=None)
    draft.put("clocks.max_mhz", highest, f"{function.driver} shows no RP0 frequency")
    limits = [limit for _, limit in engines if limit is not None and limit > 0]
    if highest and limits and max(limits) < highest:
        draft.put("clocks.limit_mhz", max(limits))
    # A question to the power controller (xe_vram_freq.c), which a sleeping card does not answer.
    if not function.asleep and (memory := _memory(machine, function.folder)) > 0:
        draft.put("clocks.memory_max_mhz", memory)


def _xe(machine: Machine, folder: str) -> list[tuple[int | None, int | None]]:
    """Return (RP0, limit) of each tile's first GT; the others are for media and run slower."""
    engines = []
    for _, tile in entries(machine, folder, "tile"):
        for _, gt in entries(machine, tile, "gt")[:1]:
            rp0 = machine.read_int(f"{gt}/freq0/rp0_freq")
            engines.append((rp0, machine.read_int(f"{gt}/freq0/max_freq")))
    return engines


def _i915(machine: Machine, folder: str) -> Iterator[tuple[int | None, int | None]]:
    """Yield (RP0, limit) of GT 0, or of the card where the kernel has no GT folders.

    The card's own files give the maximum over all GTs, media included.
    """
    for _, card in entries(machine, f"{folder}/drm", "card"):
        for stem in (f"{card}/gt/gt0/rps_", f"{card}/gt_"):
            if rp0 := machine.read_int(f"{stem}RP0_freq_mhz"):
                yield rp0, machine.read_int(f"{stem}max_freq_mhz")
                return


def _memory(machine: Machine, folder: str) -> int:
    """Return the clock of stacked memory; Ponte Vecchio alone has these files (xe_vram_freq.c)."""
    for _, tile in entries(machine, folder, "tile"):
        if mhz := machine.read_int(f"{tile}/memory/freq0/max_freq"):
            return mhz
    for _, card in entries(machine, f"{folder}/drm", "card"):
        if mhz := machine.read_int(f"{card}/gt/gt0/mem_RP0_freq_mhz"):
            return mhz
    return 0
