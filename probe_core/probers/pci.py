"""PCI devices that can compute or display, from /sys/bus/pci."""

from __future__ import annotations

from probe_core.model.ids import pci_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from probe_core.machine import Machine

    Nodes = Mapping[str, dict[str, int]]

__all__ = ["DISPLAY_ONLY", "VENDORS", "devices"]

FOLDER = "/sys/bus/pci/devices"
_DISPLAY, _ACCELERATOR, _COPROCESSOR = 0x03, 0x12, 0x0B40

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

DISPLAY_ONLY = frozenset("1a03 102b 1013 1234 1b36 1af4 15ad 1414 80ee 18ca 126f 1039".split())
"""Vendors whose displays cannot compute: board management controllers and virtual adapters.

Four well-known tools count a server's ASPEED as one more GPU.
"""

# Server displays of vendors whose other devices do compute (names as in pci.ids):
# Huawei iBMC; ATI ES1000, RN50 and Rage XL.
_DISPLAY_ONLY_DEVICES = frozenset(
    "19e5:1711 1002:515e 1002:5969 1002:474d 1002:474f 1002:4752".split()
)

# Vendors that file their accelerators under other classes than "processing accelerator".
_ACCELERATOR_VENDORS = {
    "1da3": "accelerator",
    "1e52": "accelerator",
    "1e60": "npu",
    "1ac1": "npu",
    "1d95": "accelerator",
    "cabc": "accelerator",
}

# Vendors that also make network and storage devices: only these ids are accelerators.
_ACCELERATOR_DEVICES = {
    # pci.ids: NeuronDevice (Inferentia 1 and 2, Trainium 1 to 3)
    "1d0f": ("accelerator", frozenset("7064 7164 7264 7364 7564 7565".split())),
    # jax/_src/hardware_utils.py: TPU v2 to v7
    "1ae0": ("accelerator", frozenset("0027 0056 005e 0062 0063 006f 0076".split())),
}
# AMD files its NPUs under "signal processing" (linux drivers/accel/amdxdna).
_NPUS = frozenset({"1022:1502", "1022:17f0"})
# Storage, network and bridges: companions on an accelerator's board.
_COMPANIONS = (0x01, 0x02, 0x06)


def devices(machine: Machine, nodes: Nodes) -> list[dict[str, Any]]:
    """Return a sighting for each PCI display, accelerator and coprocessor."""
    found = []
    for address in machine.listdir(FOLDER):
        sighting = _sighting(machine, address, nodes)
        if sighting:
            found.append(sighting)
    return found


def _sighting(machine: Machine, address: str, nodes: Nodes) -> dict[str, Any] | None:
    folder = f"{FOLDER}/{address}"
    pci_class = machine.read_int(f"{folder}/class")
    if pci_class is None:
        return None
    vendor = _hex(machine, folder, "vendor")
    device = _hex(machine, folder, "device")
    kind = _kind(pci_class, vendor, device)
    if kind is None or vendor is None:
        return None
    try:
        identity = pci_id(address)
    except ValueError:
        return None
    sighting: dict[str, Any] = {
        "ids": [identity],
        "kind": kind,
        "pci": _pci(machine, folder, vendor, device, pci_class),
        "node_index": dict(nodes.get(machine.realpath(folder), {})),
    }
    if vendor in VENDORS:
        sighting["vendor"] = VENDORS[vendor]
    sighting |= _state(machine, folder)
    # The kernel wakes a sleeping device to read its link (pci-sysfs.c, pci_config_pm_runtime_get).
    asleep = sighting.get("power_state", "active") != "active"
    return sighting | {"links": [] if asleep else _links(machine, folder)}


def _hex(machine: Machine, folder: str, name: str) -> str | None:
    """Return an id as sysfs writes it (0x10de) without its prefix; None when it is not one."""
    text = (machine.read(f"{folder}/{name}", 16) or "").lower().removeprefix("0x")
    return text if 1 <= len(text) <= 6 and set(text) <= set("0123456789abcdef") else None


def _kind(pci_class: int, vendor: str | None, device: str | None) -> str | None:
    """Return what a device is to us, or None when it neither computes nor displays."""
    base, sub, identity = pci_class >> 16, pci_class >> 8, f"{vendor}:{device}"
    if vendor in _ACCELERATOR_DEVICES:
        kind, ids = _ACCELERATOR_DEVICES[vendor]
        return kind if device in ids else None
    if identity in _NPUS:
        return "npu"
    if vendor in _ACCELERATOR_VENDORS and base not in _COMPANIONS:
        return _ACCELERATOR_VENDORS[vendor]
    if base == _DISPLAY:
        only = vendor in DISPLAY_ONLY or identity in _DISPLAY_ONLY_DEVICES
        return "display" if only else "gpu"
    if base == _ACCELERATOR:
        # Instinct cards report 0380 or 1200; Intel's NPUs 1200.
        return {"1002": "gpu", "8086": "npu"}.get(vendor or "", "accelerator")
    return "accelerator" if sub == _COPROCESSOR else None


def _pci(
    machine: Machine, folder: str, vendor: str, device: str | None, pci_class: int
) -> dict[str, str]:
    facts = {"id": f"{vendor}:{device}"} if device else {}
    sub_vendor = _hex(machine, folder, "subsystem_vendor")
    sub_device = _hex(machine, folder, "subsystem_device")
    if sub_vendor and sub_device and (sub_vendor, sub_device) != ("0000", "0000"):
        facts["subsystem"] = f"{sub_vendor}:{sub_device}"
    revision = _hex(machine, folder, "revision")
    if revision:
        facts["revision"] = revision
    return facts | {"class": f"{pci_class:06x}"}


def _state(machine: Machine, folder: str) -> dict[str, Any]:
    """Return driver, power state and NUMA node. None of these files wakes a sleeping device."""
    state: dict[str, Any] = {}
    driver = machine.realpath(f"{folder}/driver").rpartition("/")[2]
    if driver and machine.exists(f"{folder}/driver"):
        state["driver"] = {"name": driver}
    power = machine.read(f"{folder}/power/runtime_status", 32)
    if power in ("active", "suspended", "suspending", "resuming"):
        state["power_state"] = power
    numa = machine.read_int(f"{folder}/numa_node")
    if numa is not None and numa >= 0:  # -1: the firmware does not say
        state["numa_node"] = numa
    return state


def _links(machine: Machine, folder: str) -> list[dict[str, Any]]:
    """Return the PCIe link, current and maximum ("16.0 GT/s PCIe", "16")."""
    link: dict[str, Any] = {}
    for key, name in (("gts", "current_link_speed"), ("max_gts", "max_link_speed")):
        words = (machine.read(f"{folder}/{name}", 64) or "").split()
        try:
            link[key] = float(words[0])
        except (IndexError, ValueError):
            continue
    for key, name in (("width", "current_link_width"), ("max_width", "max_link_width")):
        width = machine.read_int(f"{folder}/{name}")
        if width and width < 255:  # 255 and 0: no link, as integrated devices say
            link[key] = width
    return [{"kind": "pcie", "peer": None, **link}] if "width" in link else []
