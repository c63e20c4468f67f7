"""Describes an Intel Gaudi (Habana) accelerator from the files of its driver, habanalabs.

The driver tells the size of the memory to programs that open the device alone. The maximum clock
is a question to the card's firmware (hl_fw_get_frequency), so it is asked of an operational card
only; Gaudis do not sleep.
"""

from __future__ import annotations

from probe_core.sysfs.numbered import entries
from probe_intel import gpu

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_core.api import Machine
    from probe_core.sysfs.pci import Function
    from probe_core.sysfs.sighting import Draft


def describe(machine: Machine, function: Function) -> dict[str, Any]:
    """Return the sighting of a Gaudi, with its own word on whether it works."""
    draft = gpu.start(machine, function, "accelerator")
    draft.put("memory.kind", "dedicated")
    if function.driver != "habanalabs":
        for field in ("clocks.max_mhz", "memory.total"):
            draft.put(field, None, gpu.not_driven(function, ("habanalabs",)))
        return draft.sighting()
    if "nodes" not in draft.fields:  # before Linux 6.6 the driver had a class of its own
        own = entries(machine, f"{function.folder}/habanalabs", "hl")
        draft.put("nodes", [f"/dev/hl{number}" for number, _ in own[:1]])
    draft.fields["backends"] = ["habana"]
    draft.put("memory.total", None, "habanalabs gives it only to programs that open the device")
    status = _text(machine, function, "status")
    working = (status or "").lower() == "operational"
    clock = _text(machine, function, "clk_max_freq_mhz") if working else None
    mhz = int(clock) or None if clock and clock.isdecimal() and len(clock) <= 20 else None
    reason = "habanalabs gives no clock"
    if not working:
        reason = f"the card's status is {status or 'not reported'}"
    draft.put("clocks.max_mhz", mhz, reason)
    for name in ("device_type", "status"):
        draft.note(name, _text(machine, function, name))
    if firmware := _text(machine, function, "fw_os_ver"):
        draft.fields["driver"]["firmware"] = firmware
    _add_fact(draft, function, status, working)
    return draft.sighting()


def _text(machine: Machine, function: Function, name: str) -> str | None:
    """Return a file of the driver's: in the PCI folder, or beside the class device.

    Which of them depends on the driver's age (ABI: sysfs-driver-habanalabs names both
    /sys/class/habanalabs/hl<n> and /sys/class/accel/accel<n>/device).
    """
    folders = [function.folder]
    for group in ("accel", "habanalabs"):
        below = f"{function.folder}/{group}"
        # Beside each device the driver has a control device, which tells nothing.
        folders += [f"{below}/{node}" for node in machine.listdir(below) if "controlD" not in node]
    texts = (machine.read(f"{folder}/{name}", 256) for folder in folders)
    return next((text for text in texts if text), None)


def _add_fact(draft: Draft, function: Function, status: str | None, working: bool) -> None:
    if status:
        evidence = f"status of {function.address} in sysfs is {status!r}"
        code = None if working else "gaudi-not-operational"
        draft.fact("responding", "ok" if working else "broken", evidence, code)
