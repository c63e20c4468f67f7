"""Where each device index of an opened backend is: its PCI address, vendor, or that it is a CPU.

Runs in tinygrad's process. Everything is best effort: tinygrad has no interface for this, so what
a version does not give stays unknown and the index is matched by vendor, or not at all.
"""

from __future__ import annotations

import ctypes
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_tinygrad.messages import Place

__all__ = ["places"]

_KFD = "/sys/devices/virtual/kfd/kfd/topology/nodes"
_CL_DEVICE_TYPE, _CL_DEVICE_VENDOR_ID, _CL_DEVICE_NAME = 0x1000, 0x1001, 0x102B
_CL_TYPE_CPU = 2
# cl_khr_pci_bus_info; cl_nv_device_attribute_query; cl_amd_device_attribute_query
_CL_PCI_BUS_INFO_KHR, _CL_PCI_BUS_NV, _CL_PCI_SLOT_NV, _CL_PCI_DOMAIN_NV = (
    0x410F, 0x4008, 0x4009, 0x400A,
)  # fmt: skip
_CL_TOPOLOGY_AMD = 0x4037
_MAX = 64  # devices of one backend: more than one machine holds


def places(backend: str, device: Any) -> list[Place]:
    """Return one mapping per device index: ``pci``, ``vendor_id``, ``cpu``, ``name``; or less."""
    locate = {
        "AMD": _amd, "NV": _nv, "CUDA": _cuda, "HIP": _hip, "CL": _cl, "METAL": _metal,
    }.get(backend)  # fmt: skip
    if locate is None:
        return [{}]
    try:
        return locate(device)[:_MAX] or [{}]
    except Exception as error:  # another version's internals: unknown, with the reason
        return [{"reason": f"{type(error).__name__}: {error}"[:200]}]


def _address(domain: int, bus: int, slot: int, function: int) -> str:
    return f"{domain:04x}:{bus:02x}:{slot:02x}.{function:x}"


def _class(device: Any, name: str) -> Any:
    """Return the interface class beside the device's, or the device's own in older versions."""
    module = sys.modules[type(device).__module__]
    return getattr(module, name, type(device))


def _amd(device: Any) -> list[Place]:
    return [_kfd_place(str(node)) for node in _class(device, "KFDIface").gpus]


def _kfd_place(node: str) -> Place:
    number = node.rstrip("/").rpartition("/")[2]
    with open(f"{_KFD}/{number}/properties", encoding="ascii") as file:
        pairs = dict(line.split()[:2] for line in file if len(line.split()) > 1)
    domain, location = int(pairs.get("domain", 0)), int(pairs["location_id"])
    # As PCI packs an address: eight bits of bus, five of device, three of function.
    return {"pci": _address(domain, location >> 8 & 255, location >> 3 & 31, location & 7)}


def _nv(device: Any) -> list[Place]:
    # Up to 0.12 the list is the driver's whole table, with empty rows.
    rows = [row for row in _class(device, "NVKIface").gpus_info if row.valid]
    infos = [row.pci_info for row in rows]
    return [{"pci": _address(pci.domain, pci.bus, pci.slot, pci.function)} for pci in infos]


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
    located: list[Place] = []
    for index in range(min(count.value, _MAX)):
        text = ctypes.create_string_buffer(32)
        status = getattr(library, bus_id_name)(text, 32, index)
        located.append({"pci": text.value.decode("ascii").lower()} if status == 0 else {})
    return located


def _cl(device: Any) -> list[Place]:
    info = _ClInfo(sys.modules[type(device).__module__].cl)
    return [_cl_place(info, handle) for handle in type(device).device_ids]


def _cl_place(info: _ClInfo, handle: Any) -> Place:
    place: Place = {"name": info.text(handle, _CL_DEVICE_NAME)}
    if (info.number(handle, _CL_DEVICE_TYPE, 8) or 0) & _CL_TYPE_CPU:
        place["cpu"] = True
        return place
    place["vendor_id"] = info.number(handle, _CL_DEVICE_VENDOR_ID, 4)
    address = _cl_address(info, handle)
    topology = None if address else info.raw(handle, _CL_TOPOLOGY_AMD, 24)
    if address:
        place["pci"] = address
    elif topology:
        # There is no domain in it: true only when the bus has a device at that address.
        place["pci_guess"] = _address(0, *topology[21:24])
    return place


def _cl_address(info: _ClInfo, handle: Any) -> str | None:
    raw = info.raw(handle, _CL_PCI_BUS_INFO_KHR, 16)
    if raw is not None:
        numbers = [int.from_bytes(raw[at : at + 4], sys.byteorder) for at in (0, 4, 8, 12)]
        return _address(*numbers)
    bus, slot = info.number(handle, _CL_PCI_BUS_NV, 4), info.number(handle, _CL_PCI_SLOT_NV, 4)
    if bus is None or slot is None:
        return None
    # The slot is device and function as PCI packs them.
    domain = info.number(handle, _CL_PCI_DOMAIN_NV, 4) or 0
    return _address(domain, bus, slot >> 3, slot & 7)


class _ClInfo:
    """``clGetDeviceInfo`` of tinygrad's own binding."""

    __slots__ = ("_cl",)

    def __init__(self, cl: Any) -> None:
        self._cl = cl

    def raw(self, handle: Any, parameter: int, size: int) -> bytes | None:
        """Return the answer's bytes; None when the driver does not know the parameter."""
        buffer = ctypes.create_string_buffer(size)
        status = self._cl.clGetDeviceInfo(handle, parameter, size, buffer, None)
        return buffer.raw if status == 0 else None

    def number(self, handle: Any, parameter: int, size: int) -> int | None:
        raw = self.raw(handle, parameter, size)
        return int.from_bytes(raw, sys.byteorder) if raw is not None else None

    def text(self, handle: Any, parameter: int) -> str | None:
        raw = self.raw(handle, parameter, 256)
        return raw.split(b"\0")[0].decode("utf-8", "replace") if raw else None


def _metal(device: Any) -> list[Place]:
    name = device.sysdevice.name
    name = name() if callable(name) else name
    return [{"name": str(name)}]
