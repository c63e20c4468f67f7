"""Says what a person should know about a device that cannot be used, and what would help."""

from __future__ import annotations

from probe_core.api import finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_core.sysfs.pci import Function

DRIVERS = {"gpu": ("xe", "i915"), "npu": ("intel_vpu",), "accelerator": ("habanalabs",)}
"""Kind of a device → the drivers that let programs compute on it, the newest first."""


def on_driver(kind: str, function: Function) -> dict[str, Any] | None:
    """Return a finding when a device of this `kind` has no driver, or one that reserves it."""
    drivers = DRIVERS[kind]
    if function.driver in drivers or function.owner:
        return None
    if not function.driver:
        return finding(
            "driver-not-loaded",
            device=function.id,
            step="driver",
            what=f"{function.id} has no driver",
            why=f"no kernel module is bound to this Intel {kind}",
            fix=f"load {' or '.join(drivers)}; a new device may need a newer kernel",
        )
    return finding(
        "device-passthrough",
        severity="info",
        device=function.id,
        step="driver",
        evidence=f"{function.folder}/driver: {function.driver}",
        what=f"{function.id} is bound to {function.driver}",
        why="another driver has reserved it, most often for a virtual machine (passthrough)",
        fix=f"bind it to {drivers[0]} to use it on this machine",
    )
