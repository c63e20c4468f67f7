"""Says which node programs open of an NPU or another accelerator, and which module it lacks."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.machine import Machine
    from probe_core.model.document import Sighting

__all__ = ["add"]

# Drivers outside the kernel's accel class: (folder below the device, stem, node).
_OWN_CLASSES = (
    ("hailo_chardev", "hailo", "/dev/hailo{}"),  # hailo_pci
    ("apex", "apex_", "/dev/apex_{}"),  # gasket, Coral Edge TPU
    ("habanalabs", "hl", "/dev/hl{}"),  # habanalabs before it moved to the accel class
    ("neuron_device", "neuron", "/dev/neuron{}"),  # AWS Neuron
)

_MODULES = {"1e60": "hailo_pci", "1ac1": "apex", "1022": "amdxdna", "8086": "intel_vpu"}
"""PCI vendor of NPUs → the module that drives them."""


def add(machine: Machine, sighting: Sighting, folder: str) -> None:
    """Add `nodes`, or without a driver the step fact, to the sighting of the device at `folder`."""
    if "driver" in sighting:
        if nodes := _nodes(machine, sighting, folder):
            sighting["nodes"] = nodes
        return
    module = _MODULES.get(sighting["pci"].get("id", "")[:4])
    if sighting["kind"] == "npu" and module and not machine.exists(f"/sys/module/{module}"):
        evidence = f"{folder}/driver is absent, and so is /sys/module/{module}"
        sighting["step_facts"] = [
            {"step": "driver", "status": "broken", "evidence": evidence, "code": "npu-no-module"}
        ]


def _nodes(machine: Machine, sighting: Sighting, folder: str) -> list[str]:
    from probe_core.sysfs import nodes
    from probe_core.sysfs.numbered import entries

    if paths := nodes.paths(sighting.get("node_index") or {}):
        return paths
    return [
        node.format(number)
        for below, stem, node in _OWN_CLASSES
        for number, _ in entries(machine, f"{folder}/{below}", stem)[:1]
    ]
