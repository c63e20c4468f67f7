"""Which kernel driver takes a device on a machine as it will be, by the rules that explain an
absent one.
"""

from __future__ import annotations

from probe_core.model.ids import driver_name, is_passthrough_driver
from probe_core.readiness.unbound import module_of, too_old_for, unbound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import DeviceDoc
    from probe_core.readiness.scene import Scene

__all__ = ["driver_at_boot"]

_NO_REFUSAL = ("no-driver", "amdgpu-refused")
"""Codes of a device that a loaded driver left alone for no reason that the files show."""

# Drivers that take a device where the vendor's own is not loaded: nouveau all that it knows,
# radeon what it had before, and one of Intel's the other's.
_OTHERS = {"nvidia": ("nouveau",), "intel": ("xe", "i915")}


def driver_at_boot(device: DeviceDoc, scene: Scene, now: Scene) -> str | None:
    """Return the driver that will be bound; None where none will.

    `scene` is the machine as it will be: its kernel, and as loaded modules those that can load;
    `now` is it as it is. The first that takes the device counts: the present driver, the vendor's
    own, then others. A driver whose module is not known stays, as in a recording without modules.
    """
    present = driver_name(device)
    if device["parent"] or not device["id"].startswith("pci:"):
        return present
    if present and is_passthrough_driver(present, device["vendor"]):
        return present
    own = [name for name in (present, module_of(device, now)) if name]
    if present and not any(s.modules.is_loaded(name) for s in (now, scene) for name in own):
        return present
    others = _OTHERS.get(device["vendor"] or "", ()) if device["kind"] == "gpu" else ()
    names = dict.fromkeys((present, module_of(device, scene), *others))
    return next((name for name in names if name and _takes(name, device, scene)), None)


def _takes(name: str, device: DeviceDoc, scene: Scene) -> bool:
    if not scene.modules.is_loaded(name):
        return False
    if name != module_of(device, scene):
        # Of a driver that has the device now a newer kernel's takes it, too.
        return name in (driver_name(device), "nouveau")
    code = unbound(device, scene)["code"]
    if name in ("i915", "xe") and code == "kernel-too-old":
        return too_old_for(device, scene, name) is None
    return code in _NO_REFUSAL
