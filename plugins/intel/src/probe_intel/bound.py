"""Tells why no driver is bound to a device, as far as the prober alone can know.

Modules on disk, blacklists and passthrough are the core's to judge.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.api import Machine
    from probe_core.sysfs.pci import Function
    from probe_core.sysfs.sighting import Draft

DRIVERS = {"gpu": ("xe", "i915"), "npu": ("intel_vpu",), "accelerator": ("habanalabs",)}
"""Kind of a device → the drivers that let programs compute on it, the newest first."""


def add_fact(machine: Machine, draft: Draft, function: Function) -> None:
    """Say in `draft` why the device has no driver.

    A module that is loaded and leaves its vendor's GPU alone does not know the GPU's id yet, or
    wants force_probe for it (xe_pci.c: "not officially supported by xe"). A virtual function
    without a driver waits for a guest.
    """
    kind = draft.fields["kind"]
    if function.driver or function.owner:
        return
    loaded = [name for name in DRIVERS[kind] if machine.exists(f"/sys/module/{name}")]
    absent = f"{function.folder}/driver is absent"
    if kind == "gpu" and loaded:
        options = ", ".join(_force_probe(machine, name) for name in loaded)
        draft.fact("driver", "broken", f"{absent}; loaded: {options}", "kernel-too-old")
    elif kind == "npu" and not loaded:
        draft.fact(
            "driver", "broken", f"{absent}, and so is /sys/module/intel_vpu", "npu-no-module"
        )


def _force_probe(machine: Machine, module: str) -> str:
    option = machine.read(f"/sys/module/{module}/parameters/force_probe", 256)
    return f"{module} (force_probe is {option or 'empty'})"
