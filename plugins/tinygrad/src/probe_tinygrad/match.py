"""Puts tinygrad's backends onto the devices that the bus shows; they never make a device.

By PCI address where the backend gives it, by vendor where the bus has one device of that vendor,
the CPU's onto the CPU. Anything else stays unmatched, with the reason.

What each backend runs on, under its names of all versions: tinygrad/runtime/ops_*.py and
ALL_DEVICES of device.py at 0.9.2 to 0.14.0.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from probe_tinygrad.messages import Kind, Place

    Device = Mapping[str, Any]
    """A sighting of the built-in bus prober, as `Request.bus` has them."""


_RENAMED = {"GPU": "CL", "CLANG": "CPU", "LLVM": "CPU"}
"""Old name to new: GPU became CL in 0.12, CLANG became CPU in 0.10.1, LLVM a renderer in 0.12."""

CPU = "CPU"

NOT_HARDWARE = frozenset({"DISK", "TINYFS", "NPY", "NULL", "PYTHON", "REMOTE", "CLOUD", "RDMA"})
"""Backends that are files, other machines or an interpreter: never queried."""

VENDORS = {
    "AMD": "amd",
    "HIP": "amd",
    "HSA": "amd",
    "NV": "nvidia",
    "CUDA": "nvidia",
    "METAL": "apple",
    "QCOM": "qualcomm",
    "DSP": "qualcomm",
}
"""The vendor of the hardware that a backend can run on. CL and WEBGPU run on anyone's."""


def canonical(backend: str) -> str:
    """Return the newest name of `backend` ("CL" for "GPU"); unknown names stay as they are."""
    return _RENAMED.get(backend, backend)


CPU_ID = "cpu:0"
_PCI_VENDORS = {
    0x10DE: "nvidia", 0x1002: "amd", 0x8086: "intel", 0x13B5: "arm", 0x5143: "qualcomm",
    0x106B: "apple", 0x1027F00: "apple", 0x14E4: "broadcom",
}  # fmt: skip
"""Vendor ids that OpenCL devices report: PCI's, and Apple's own."""


class Matched:
    """Where one index of one backend is: the device's id and kind, or why it is unknown."""

    __slots__ = ("backend", "id", "index", "kind", "reason")

    def __init__(
        self, backend: str, index: int, id: str | None, kind: Kind, reason: str = ""
    ) -> None:
        self.backend = backend
        self.index = index
        self.id = id
        self.kind = kind
        self.reason = reason


def accelerators(bus: Sequence[Device]) -> list[Device]:
    """Return the devices of the bus that can compute."""
    return [device for device in bus if device.get("kind") in ("gpu", "npu", "accelerator")]


def match(backend: str, places: Sequence[Place], bus: Sequence[Device]) -> list[Matched]:
    """Return where each index of `backend` is; `places` as `locate.places` returns them."""
    nowhere: list[Place] = [{}]
    return [
        _match(backend, index, place, bus, alone=len(places) == 1)
        for index, place in enumerate(places or nowhere)
    ]


def _match(
    backend: str, index: int, place: Place, bus: Sequence[Device], *, alone: bool
) -> Matched:
    if canonical(backend) == CPU or place.get("cpu"):
        return Matched(backend, index, CPU_ID, "cpu")
    devices = {identity: device for device in bus for identity in device["ids"]}
    identity = f"pci:{place.get('pci')}" if place.get("pci") else f"pci:{place.get('pci_guess')}"
    if place.get("pci") or identity in devices:
        return Matched(backend, index, identity, devices.get(identity, {}).get("kind", "gpu"))
    return _by_vendor(backend, index, place, bus, alone=alone)


def _by_vendor(
    backend: str, index: int, place: Place, bus: Sequence[Device], *, alone: bool
) -> Matched:
    vendor = VENDORS.get(backend) or _PCI_VENDORS.get(place.get("vendor_id") or 0)
    if vendor is None:
        return Matched(backend, index, None, "gpu", f"{backend} does not report a vendor")
    candidates = [device for device in accelerators(bus) if device.get("vendor") == vendor]
    if len(candidates) == 1 and alone:
        return Matched(backend, index, candidates[0]["ids"][0], candidates[0]["kind"])
    reason = f"{backend} does not report which of {len(candidates)} {vendor} devices it uses"
    if not candidates:
        reason = f"the bus shows no {vendor} device that {backend} could use"
    return Matched(backend, index, None, "gpu", reason)
