"""The first Linux whose driver takes a device without being forced: data, and one comparison."""

from __future__ import annotations

from probe_core.machine import decimal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import DeviceDoc
    from probe_core.readiness.scene import Scene

__all__ = ["FIRST", "XE_ALONE", "too_old_for"]

XE_ALONE = ("xe2", "xe3", "xe3p")
"""Architectures of Intel that i915 never takes."""

# Module and architecture ("" for all that it drives) to the first Linux. Alchemist: the README of
# intel-gpu-i915-backports; Xe2: Lunar Lake and Battlemage came without force_probe in 6.12;
# RDNA 3: gfx_v11_0.c came with 5.19, and 6.0 is what the RX 7900 needs; RDNA 3.5: Strix Point was
# sold from 6.10 on; RDNA 4: 6.8 does not know it (ROCm/legacy-rocm-build#5102), and it was sold
# from 6.13 on; amdxdna: Documentation/accel/amdxdna, merged for 6.14; intel_vpu:
# drivers/accel/ivpu, for 6.3.
FIRST = {
    ("i915", "xe-hpg"): (6, 2),
    ("xe", "xe2"): (6, 12),
    ("amdgpu", "rdna3"): (6, 0),
    ("amdgpu", "rdna3.5"): (6, 10),
    ("amdgpu", "rdna4"): (6, 12),
    ("amdxdna", ""): (6, 14),
    ("intel_vpu", ""): (6, 3),
}

# RHEL's kernels keep their number and take drivers of later ones.
_BACKPORTING = (".el8", ".el9", ".el10")


def too_old_for(device: DeviceDoc, scene: Scene, module: str | None) -> str | None:
    """Return "6.12" where the running kernel is older than the first that takes the device."""
    first = FIRST.get((module or "", device["arch"] or "")) or FIRST.get((module or "", ""))
    if first is None or any(mark in scene.release for mark in _BACKPORTING):
        return None
    parts = scene.release.split("-")[0].split(".")[:2]
    numbers = tuple(number for part in parts if (number := decimal(part)) is not None)
    return f"{first[0]}.{first[1]}" if len(numbers) == 2 and numbers < first else None
