"""tinygrad's own process: opens each backend, runs one kernel on it, and writes lines of JSON.

A line before each step, so that the parent knows which backend hung or crashed.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys

from probe_tinygrad.match import canonical

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType, ModuleType
    from typing import Any

    from probe_tinygrad.messages import About, Answer, Job, Line, Place, Style

    Send = Callable[[Line], None]


# Letters of an error's text; twice what a report shows of it.
_MESSAGE_LIMIT = 600


def main() -> None:
    """Do the job given as the first argument, and leave without tinygrad's exit handlers."""
    job: Job = json.loads(sys.argv[1])
    send = _channel()
    from probe_core import guard

    guard.install("a probe")
    try:
        _work(job, send)
    except BaseException as error:
        send({"event": "failed", "error": message(error)})
    sys.stderr.flush()
    os._exit(0)  # its exit handlers talk to devices, and may hang


def _channel() -> Send:
    """Keep the pipe for us, and send what tinygrad and its libraries print to standard error."""
    pipe = os.dup(1)
    os.dup2(2, 1)

    def send(line: Line) -> None:
        os.write(pipe, (json.dumps(line) + "\n").encode())

    return send


def _work(job: Job, send: Send) -> None:
    tinygrad = load_tinygrad()
    about = describe_tinygrad(tinygrad)
    send({"event": "hello", "about": about})
    order = about["order"]
    for backend in [*order, *(name for name in job["also"] if name not in order)]:
        if backend not in job["skip"]:
            send({"event": "try", "backend": backend})
            answer = _try(tinygrad, backend)
            send({"event": "tried", "backend": backend, "answer": answer})
    send({"event": "end"})


def _try(tinygrad: ModuleType, backend: str) -> Answer:
    """Open a backend's first device and run one kernel on it; say where its devices are."""
    try:
        device = tinygrad.Device[backend]
    except (Exception, SystemExit) as error:
        return {"opens": False, "error": message(error)}
    answer: Answer = {"opens": True, "executes": False}
    answer["places"] = places(canonical(backend), device)
    try:
        # The kernel that tinygrad's own `python -m tinygrad.device` runs.
        result = (tinygrad.Tensor([1, 2, 3], device=backend) * 2).tolist()
    except (Exception, SystemExit) as error:
        answer["error"] = message(error)
        return answer
    answer["executes"] = result == [2, 4, 6]
    if not answer["executes"]:
        answer["error"] = f"it computed {result} instead of [2, 4, 6]"
    return answer


def message(error: BaseException) -> str:
    """Return one line about an error; of a group, its members."""
    if isinstance(error, BaseExceptionGroup):
        text = "; ".join(dict.fromkeys(message(member) for member in error.exceptions))
    else:
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return " ".join(text.split())[:_MESSAGE_LIMIT]


# What the installed tinygrad is: version, backends, their order, how it chooses. Read from the
# package and not from a table of versions, so a new one that works alike needs nothing.


def load_tinygrad() -> ModuleType:
    """Import tinygrad; raises whatever it raises."""
    import tinygrad

    module: ModuleType = tinygrad
    return module


def describe_tinygrad(tinygrad: ModuleType) -> About:
    """Return version, backends and their order, how DEV is read, and the numeric variables."""
    return {
        "version": _version(os.path.dirname(os.path.abspath(str(tinygrad.__file__)))),
        "backends": list(tinygrad.Device._devices),
        "style": _style(tinygrad),
        "numbers": _numeric_variables(),
        "order": _order(tinygrad),
    }


def _order(tinygrad: ModuleType) -> list[str]:
    """Return the backends that tinygrad tries by itself, in its order.

    From 0.10.1 they are ``ALL_DEVICES``; before, a tuple in the code of the method that tries them.
    """
    from tinygrad import device

    names = getattr(device, "ALL_DEVICES", None)
    if names is None:
        names = next(_tuples(type(tinygrad.Device)), ())
    return [name for name in names if name in tinygrad.Device._devices]


def _tuples(kind: type) -> Iterator[tuple[str, ...]]:
    for name in ("get_available_devices", "DEFAULT"):
        code = _code(vars(kind).get(name))
        for constant in code.co_consts if code else ():
            if isinstance(constant, tuple) and "METAL" in constant:
                yield constant


def _code(member: object) -> CodeType | None:
    """Return the code of a function, property or cached property."""
    for attribute in ("func", "fget"):
        member = getattr(member, attribute, member)
    return getattr(member, "__code__", None)


def _style(tinygrad: ModuleType) -> Style:
    """Return how a backend is chosen: by ``DEV`` targets, by ``DEV`` names, or by ``CUDA=1``."""
    from tinygrad import helpers

    if hasattr(helpers, "Target"):
        return "targets"
    code = _code(vars(type(tinygrad.Device)).get("DEFAULT"))
    return "names" if code is not None and "DEV" in code.co_consts else "flags"


def _numeric_variables() -> list[str]:
    """Return the variables that it reads as whole numbers on import, and fails on otherwise."""
    from tinygrad import helpers

    variables = getattr(helpers.ContextVar, "_cache", {})
    return sorted(
        name for name, variable in variables.items() if type(getattr(variable, "value", 0)) is int
    )


def _version(package: str) -> str | None:
    """Return the version from the metadata beside the package; importlib.metadata costs 40 ms."""
    for name in os.listdir(os.path.dirname(package)):
        if name.startswith("tinygrad-") and name.endswith((".dist-info", ".egg-info")):
            return name.removesuffix(".dist-info").removesuffix(".egg-info").split("-")[1]
    return None


# Where each device index of an opened backend is: its PCI address, vendor, or that it is a CPU.
# Everything is best effort: tinygrad has no interface for this, so what a version does not give
# stays unknown and the index is matched by vendor, or not at all.

_KFD = "/sys/devices/virtual/kfd/kfd/topology/nodes"
_CL_DEVICE_TYPE, _CL_DEVICE_VENDOR_ID, _CL_DEVICE_NAME = 0x1000, 0x1001, 0x102B
_CL_TYPE_CPU = 2
# cl_khr_pci_bus_info; cl_nv_device_attribute_query; cl_amd_device_attribute_query
_CL_PCI_BUS_INFO_KHR, _CL_PCI_BUS_NV, _CL_PCI_SLOT_NV, _CL_PCI_DOMAIN_NV = (
    0x410F, 0x4008, 0x4009, 0x400A,
)  # fmt: skip
_CL_TOPOLOGY_AMD = 0x4037
_MAX_DEVICES = 64  # devices of one backend: more than one machine holds


def places(backend: str, device: Any) -> list[Place]:
    """Return one mapping per device index: ``pci``, ``vendor_id``, ``cpu``, ``name``; or less."""
    locate = {
        "AMD": _amd, "NV": _nv, "CUDA": _cuda, "HIP": _hip, "CL": _cl, "METAL": _metal,
    }.get(backend)  # fmt: skip
    if locate is None:
        return [{}]
    try:
        return locate(device)[:_MAX_DEVICES] or [{}]
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
    for index in range(min(count.value, _MAX_DEVICES)):
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
