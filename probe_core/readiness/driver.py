"""Step `driver`: whether a kernel driver that programs can use is bound to the device."""

from __future__ import annotations

from probe_core.model.ids import is_passthrough_driver, pci_address
from probe_core.readiness.chain import broken, not_applicable, ok, unknown
from probe_core.readiness.scene import folder_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import DeviceDoc, StepDoc
    from probe_core.readiness.scene import Scene


_STEP = "driver"

# Drivers under which the vendor's compute runtime cannot open the device: CUDA needs the module
# nvidia, ROCm the compute interface of amdgpu, which radeon lacks.
_WITHOUT_COMPUTE = {
    ("nvidia", "nouveau"): "nouveau-bound",
    ("nvidia", "nova"): "nova-bound",
    ("nvidia", "nova_core"): "nova-bound",
    ("nvidia", "nova-core"): "nova-bound",
    ("amd", "radeon"): "radeon-bound",
}


# Architectures that i915 cannot start without the scheduler's firmware.
_WITH_GUC = ("xe-hpg", "xe-hpc")


def driver(device: DeviceDoc, scene: Scene) -> StepDoc:
    """Return the step."""
    name, folder = scene.driver(device), folder_of(device)
    if name is None:
        return _unbound(device, scene)
    place = f"{folder}/driver is {name}"
    if folder is None or "bus" not in device["seen_by"]:
        place = f"{device['sources'].get('driver.name', 'a prober')} reports the driver {name}"
    if is_passthrough_driver(name, device["vendor"]):
        return broken(_STEP, "reserved-for-vm", place)
    if code := _WITHOUT_COMPUTE.get((device["vendor"] or "", name)):
        if name == "radeon" and device["arch"] is None:  # amdgpu takes GCN, and no card before it
            return unknown(_STEP, f"{place}; whether amdgpu supports this card is not known")
        return broken(_STEP, code, place)
    if name == "nvidia" and device["id"] not in scene.answered:
        return _nvidia(device, scene, place)
    if name == "i915" and device["arch"] in _WITH_GUC:
        scene.load("drivers")
        from probe_core.readiness.unbound import guc_missing

        return guc_missing(scene) or ok(_STEP, place)
    return ok(_STEP, place)


def _unbound(device: DeviceDoc, scene: Scene) -> StepDoc:
    if device["parent"]:
        return not_applicable(_STEP, "a part uses the driver of its whole device")
    if not scene.linux or "bus" not in device["seen_by"]:
        return unknown(_STEP, "nothing reports which kernel driver it has")
    if device["id"].startswith("usb:"):
        return not_applicable(_STEP, "programs drive it themselves, through its node on the USB")
    # A folder that nobody recorded says nothing of its driver; `class` is what the bus was read of.
    scene.load("drivers")
    from probe_core.readiness.unbound import unbound

    return unbound(device, scene)


def _nvidia(device: DeviceDoc, scene: Scene, place: str) -> StepDoc:
    """Judge a GPU that NVIDIA's driver holds and that no library answered for."""
    scene.load("drivers")
    from probe_core.readiness.nvidia import problem

    fault = problem(device, scene) if pci_address(device) else None
    return fault or ok(_STEP, place)
