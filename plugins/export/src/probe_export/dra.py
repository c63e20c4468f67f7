"""Kubernetes' dynamic resource allocation: the devices of a ResourceSlice, in the vendors' parts.

Vocabulary of the drivers gpu.nvidia.com, gpu.amd.com and gpu.intel.com, as JSON that a driver or a
webhook can take. A value has exactly one type; identifiers have at most 32 characters.
"""

from __future__ import annotations

from probe_core.commands import write_json_lines
from probe_core.model.ids import driver_fact, driver_name, driver_version, pci_address, pci_product
from probe_export.capacity import capacity, memory_of, partition_profile, stable_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import DeviceDoc, ReportDoc

    Value = dict[str, object]

_MAX_TEXT = 64
"""Bytes, not characters: the API server says "may not be more than 64 bytes"."""

_STANDARD = "resource.kubernetes.io"


def export(report: ReportDoc) -> str:
    """Return ``{"devices": […]}`` of all usable accelerators."""
    names = stable_names(report["devices"])
    cards = {device["id"]: device for device in report["devices"]}
    devices = []
    for device in capacity(report):
        # The vendors' drivers give a partition the product's name and the address of its card.
        card = cards.get(device["parent"] or "", device)
        own = {key: value for key, value in _attributes(device, card).items() if value is not None}
        amounts = {key: n for key, n in _capacities(device).items() if n is not None}
        devices.append(
            {
                "name": dns_label(names[device["id"]]),
                "attributes": own,
                "capacity": {key: {"value": str(n)} for key, n in amounts.items()},
            }
        )
    return write_json_lines({"devices": devices})


def dns_label(text: str) -> str:
    """Return a name of lower-case letters, digits and dashes, 63 at most."""
    plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in text.lower())
    return f"dev-{plain}"[:63].strip("-")


def _capacities(device: DeviceDoc) -> dict[str, int | None]:
    units = None
    if device["vendor"] == "amd":
        units = "computeUnits"
    elif device["vendor"] == "nvidia" and device["parent"]:
        units = "multiprocessors"
    return {"memory": memory_of(device), **({units: device["units"]} if units else {})}


def _attributes(device: DeviceDoc, card: DeviceDoc) -> dict[str, Value | None]:
    parts = _OF_VENDOR.get(device["vendor"] or "", _other)(device, card)
    return {f"{_STANDARD}/pciBusID": _text(pci_address(card)), **parts}


def _nvidia(device: DeviceDoc, card: DeviceDoc) -> dict[str, Value | None]:
    return {
        "type": _text("mig" if device["parent"] else "gpu"),
        "productName": _text(card["name"]),
        "architecture": _text((device["arch"] or "").capitalize() or None),
        "cudaComputeCapability": _version(device.get("compute_capability")),
        "driverVersion": _version(driver_version(device)),
        "cudaDriverVersion": _version(driver_fact(device, "cuda")),
        "profile": _text(partition_profile(device)),
    }


def _amd(device: DeviceDoc, card: DeviceDoc) -> dict[str, Value | None]:
    return {
        "type": _text("amdgpu-partition" if device["parent"] else "amdgpu"),
        "pciAddr": _text(pci_address(card)),
        "numaNode": _number(card.get("numa_node")),
        "renderIndex": _number((device.get("node_index") or {}).get("drm_render")),
        "deviceID": _text(_device_id(card)),
        "productName": _text(card["name"]),
        "driverVersion": _version(driver_version(device)),
        "partitionProfile": _text(partition_profile(device)),
    }


def _intel(device: DeviceDoc, card: DeviceDoc) -> dict[str, Value | None]:
    return {
        "type": _text("gpu"),
        "model": _text(device["name"]),
        "driver": _text(driver_name(device)),
        "pciId": _text(_device_id(device)),
    }


def _other(device: DeviceDoc, card: DeviceDoc) -> dict[str, Value | None]:
    return {
        "type": _text(device["kind"]),
        "vendor": _text(device["vendor"]),
        "productName": _text(device["name"]),
    }


_OF_VENDOR = {"nvidia": _nvidia, "amd": _amd, "intel": _intel}


def _device_id(device: DeviceDoc) -> str | None:
    number = pci_product(device)
    return f"0x{number}" if number else None


def _text(value: str | None) -> Value | None:
    cut = (value or "").encode("utf-8", "replace")[:_MAX_TEXT].decode("utf-8", "ignore")
    return {"string": cut} if cut else None


def _number(value: int | None) -> Value | None:
    return None if value is None else {"int": value}


def _version(value: str | None) -> Value | None:
    version = semver(value or "")
    return {"version": version} if version else None


def semver(text: str) -> str | None:
    """Return a strict semantic version: three numbers without leading zeros; None for others.

    ``550.163.01`` is none: ``550.163.1``. ``9.0`` becomes ``9.0.0``.
    """
    parts = text.split(".")
    if not 1 <= len(parts) <= 3 or not all(p.isascii() and p.isdecimal() for p in parts):
        return None
    numbers = [str(int(part[:9])) for part in parts] + ["0", "0"]
    return ".".join(numbers[:3])
