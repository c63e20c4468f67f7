"""Describes the PCI functions that compute or display, by a dozen of the kernel's files each."""

from __future__ import annotations

from probe_core.probers.bus import FOLDER
from probe_core.sysfs import accel, drivers, drm, pci, pcie, power

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from probe_core.machine import Machine
    from probe_core.model.document import Sighting
    from probe_core.probers.bus import PciCandidate

    Minors = Mapping[str, dict[str, int]]


VENDORS = {
    "10de": "nvidia",
    "1002": "amd",
    "1022": "amd",
    "8086": "intel",
    "1da3": "intel",  # Habana Labs
    "106b": "apple",
    "13b5": "arm",
    "17cb": "qualcomm",
    "5143": "qualcomm",
    "1ae0": "google",
    "1ac1": "google",  # Global Unichip: Coral Edge TPU
    "1d0f": "amazon",
    "1e52": "tenstorrent",
    "1e60": "hailo",
    "19e5": "huawei",
    "1ed5": "moorethreads",
    "1d17": "zhaoxin",
    "1d94": "hygon",
    "1d95": "graphcore",
    "cabc": "cambricon",
    "10ee": "xilinx",
    "1e36": "enflame",
    "1e3e": "iluvatar",
    "1ed2": "furiosa",
    "1eff": "rebellions",
    "9999": "metax",
    "0731": "jingjia",
    "1a03": "aspeed",
    "102b": "matrox",
    "1013": "cirrus",
    "1234": "qemu",
    "1b36": "redhat",
    "1af4": "virtio",
    "15ad": "vmware",
    "1414": "microsoft",
    "80ee": "virtualbox",
    "18ca": "xgi",
    "126f": "silicon-motion",
    "5333": "s3",
    "1039": "sis",
}
"""PCI vendor ids of display and accelerator devices, as the PCI ID repository assigns them."""


def describe_pci(machine: Machine, candidate: PciCandidate, minors: Minors) -> Sighting | None:
    """Return the sighting of a function; None when its name in /sys is no PCI address.

    `minors` are the DRM and accel minors of all devices, by their real folders.
    """
    identity = pci.normal_id(candidate.address)
    if identity is None:
        return None
    folder = f"{FOLDER}/{candidate.address}"
    numbers = {"vendor": int(candidate.vendor, 16), "class": candidate.pci_class}
    if candidate.device:
        numbers["device"] = int(candidate.device, 16)
    status = power.status(machine, folder)

    def number(name: str) -> int | None:
        return numbers.get(name) or pci.hexadecimal(machine, f"{folder}/{name}")

    sighting: Sighting = {
        "ids": [identity],
        "kind": candidate.kind,
        "pci": pci.identity_of(number),
        "node_index": dict(minors.get(machine.realpath(folder), {})),
        "links": pcie.links(machine, folder, status),
    }
    if bridges := pcie.bridges(machine, folder):
        sighting["bridges"] = bridges
    if candidate.vendor in VENDORS:
        sighting["vendor"] = VENDORS[candidate.vendor]
    if driver := drivers.bound(machine, folder):
        sighting["driver"] = {"name": driver}
    if status in power.TOLD:
        sighting["power_state"] = status
    if (node := pci.numa_node(machine, folder)) is not None:
        sighting["numa_node"] = node
    return sighting


def minors_of(machine: Machine) -> dict[str, dict[str, int]]:
    """Return the DRM and accel minors of all devices, by their real folders in /sys."""
    minors = drm.by_device(machine)
    for folder, numbers in accel.by_device(machine).items():
        minors.setdefault(folder, {}).update(numbers)
    return minors
