"""Where each device index of an opened backend is: its PCI address, vendor, or that it is a CPU.

Runs in tinygrad's process. Everything is best effort: tinygrad has no interface for this, so what
a version does not tell stays unknown and the index is matched by vendor, or not at all.
"""

from __future__ import annotations

import ctypes
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Place = dict[str, Any]

__all__ = ["places"]

_KFD = "/sys/devices/virtual/kfd/kfd/topology/nodes"
_CL_DEVICE_TYPE, _CL_DEVICE_VENDOR_ID, _CL_DEVICE_NAME = 0x1000, 0x1001, 0x102B
_CL_TYPE_CPU = 2
# cl_khr_pci_bus_info; cl_nv_device_attribute_query; cl_amd_device_attribute_query
_CL_PCI_BUS_INFO_KHR, _CL_PCI_BUS_NV, _CL_PCI_SLOT_NV, _CL_PCI_DOMAIN_NV = (
    0x410F, 0x4008, 0x4009, 0x400A,
)  # fmt: skip
_CL_TOPOLOGY_AMD = 0x4037
_MAX = 64


def places(backend: str, device: Any) -> list[Place]:
    """Return one mapping per device index: ``pci``, ``vendor_id``, ``cpu``, ``name``; or less."""
    find = {
        "AMD": _amd, "NV": _nv, "CUDA": _cuda, "HIP": _hip, "CL": _cl, "METAL": _metal,
    }.get(backend)  # fmt: skip
    if find is None:
        return [{}]
    try:
        return find(device)[:_MAX] or [{}]
    except Exception as error:  # another version's internals: unknown, with the reason
        return [{"reason": f"{type(error).__name__}: {error}"[:200]}]


def _address(domain: int, bus: int, slot: int, function: int) -> str:
    return f"{domain:04x}:{bus:02x}:{slot:02x}.{function:x}"


def _class(device: Any, name: str) -> Any:
    """Return the interface class beside the device's, or the device's own in older versions."""
    module = sys.modules[type(device).__module__]
    return getattr(module, name, type(device))


def _amd(device: Any) -> list[Place]:
    places = []
    for node in _class(device, "KFDIface").gpus:
        number = str(node).rstrip("/").rpartition("/")[2]
        with open(f"{_KFD}/{number}/properties", encoding="ascii") as file:
            pairs = dict(line.split()[:2] for line in file if len(line.split()) > 1)
        domain, place = int(pairs.get("domain", 0)), int(pairs["location_id"])
        places.append({"pci": _address(domain, place >> 8 & 255, place >> 3 & 31, place & 7)})
    return places


def _nv(device: Any) -> list[Place]:
    # Up to 0.12 the list is the driver's whole table, with empty rows.
    rows = [row for row in _class(device, "NVKIface").gpus_info if row.valid]
    infos = [row.pci_info for row in rows]
    return [{"pci": _address(info.domain, info.bus, info.slot, info.function)} for info in infos]


def _cuda(device: Any) -> list[Place]:
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    return _by_bus_id(ctypes.CDLL(name), "cuDeviceGetCount", "cuDeviceGetPCIBusId")


def _hip(device: Any) -> list[Place]:
    library = ctypes.CDLL("libamdhip64.so")
    return _by_bus_id(library, "hipGetDeviceCount", "hipDeviceGetPCIBusId")


def _by_bus_id(library: Any, count_name: str, bus_id_name: str) -> list[Place]:
    count = ctypes.c_int(0)
    if getattr(library, count_name)(ctypes.byref(count)) != 0:
        return []
    places: list[Place] = []
    for index in range(min(count.value, _MAX)):
        text = ctypes.create_string_buffer(32)
        status = getattr(library, bus_id_name)(text, 32, index)
        places.append({"pci": text.value.decode("ascii").lower()} if status == 0 else {})
    return places


def _cl(device: Any) -> list[Place]:
    ask = _ClQuestions(sys.modules[type(device).__module__].cl)
    return [_cl_place(ask, handle) for handle in type(device).device_ids]


def _cl_place(ask: _ClQuestions, device: Any) -> Place:
    place: Place = {"name": ask.text(device, _CL_DEVICE_NAME)}
    if (ask.number(device, _CL_DEVICE_TYPE, 8) or 0) & _CL_TYPE_CPU:
        return place | {"cpu": True}
    place["vendor_id"] = ask.number(device, _CL_DEVICE_VENDOR_ID, 4)
    address = _cl_address(ask, device)
    if address:
        return place | {"pci": address}
    raw = ask.raw(device, _CL_TOPOLOGY_AMD, 24)
    # There is no domain in it: true only when the bus has a device at that address.
    return place | ({"pci_guess": _address(0, *raw[21:24])} if raw else {})


def _cl_address(ask: _ClQuestions, device: Any) -> str | None:
    raw = ask.raw(device, _CL_PCI_BUS_INFO_KHR, 16)
    if raw is not None:
        numbers = [int.from_bytes(raw[at : at + 4], sys.byteorder) for at in (0, 4, 8, 12)]
        return _address(*numbers)
    bus, slot = ask.number(device, _CL_PCI_BUS_NV, 4), ask.number(device, _CL_PCI_SLOT_NV, 4)
    if bus is not None and slot is not None:
        # The slot is device and function as PCI packs them.
        domain = ask.number(device, _CL_PCI_DOMAIN_NV, 4) or 0
        return _address(domain, bus, slot >> 3, slot & 7)
    return None


class _ClQuestions:
    """``clGetDeviceInfo`` of tinygrad's own binding."""

    __slots__ = ("_cl",)

    def __init__(self, cl: Any) -> None:
        self._cl = cl

    def raw(self, device: Any, query: int, size: int) -> bytes | None:
        """Return the answer's bytes; None when the question is unknown to the driver."""
        buffer = ctypes.create_string_buffer(size)
        status = self._cl.clGetDeviceInfo(device, query, size, buffer, None)
        return buffer.raw if status == 0 else None

    def number(self, device: Any, query: int, size: int) -> int | None:
        raw = self.raw(device, query, size)
        return int.from_bytes(raw, sys.byteorder) if raw is not None else None

    def text(self, device: Any, query: int) -> str | None:
        raw = self.raw(device, query, 256)
        return raw.split(b"\0")[0].decode("utf-8", "replace") if raw else None


def _metal(device: Any) -> list[Place]:
    name = device.sysdevice.name
    name = name() if callable(name) else name
    return [{"name": str(name)}]
