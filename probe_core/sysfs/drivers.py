"""Names the kernel driver that is bound to a device, and whose version counts for it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.machine import Machine

__all__ = ["bound", "version"]


def bound(machine: Machine, folder: str) -> str | None:
    """Return the name of the driver that holds the device at `folder`; None when none does."""
    return machine.readlink(f"{folder}/driver").rpartition("/")[2] or None


def version(machine: Machine, *modules: str) -> dict[str, str]:
    """Return ``{"version": …, "version_of": "module" or "kernel"}`` for a sighting's ``driver``.

    Modules built outside the kernel's tree have a version of their own (amdgpu-dkms, mali_kbase);
    of the others the kernel's release is the version. Of several names the first loaded one counts.
    Nothing is returned when neither can be read.
    """
    for module in modules:
        if own := machine.read(f"/sys/module/{module}/version", 256):
            return {"version": own, "version_of": "module"}
    if release := machine.read("/proc/sys/kernel/osrelease", 256):
        return {"version": release, "version_of": "kernel"}
    return {}
