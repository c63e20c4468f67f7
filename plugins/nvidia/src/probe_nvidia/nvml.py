"""NVML's binary interface, as much of it as a probe asks: what nvidia-ml-py has, without its start.

nvidia-ml-py defines 212 structures when it is imported, of which a probe needs six: 11.6 of a
child's 40 ms. It stays the definition: tests compare each structure with its own and run every
faked driver through both. The functions here have its names, arguments and results.
"""

from __future__ import annotations

from probe_nvidia.c_types import (
    Library,
    Structure,
    Union,
    byref,
    c_char,
    c_uint,
    c_ulonglong,
    c_void_p,
)
from probe_nvidia.codes import FUNCTION_NOT_FOUND, INSUFFICIENT_SIZE, LIBRARY_NOT_FOUND, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

__all__ = [
    "SONAME",
    "Client",
    "FieldValue",
    "Memory",
    "MemoryV2",
    "NvmlError",
    "PciInfo",
    "writing_one",
]

SONAME = "libnvidia-ml.so.1"

_TEXT = 96
"""Bytes of a name or UUID, with the NUL at the end (NVML_DEVICE_UUID_V2_BUFFER_SIZE)."""

# Function → (symbol, type and number of what it writes). The arguments before are the handle and
# whole numbers.
_PLAIN: dict[str, tuple[str, Any, int]] = {
    **{
        name: (name, c_uint, 1)
        for name in (
            "nvmlDeviceGetComputeInstanceId",
            "nvmlDeviceGetComputeMode",
            "nvmlDeviceGetCurrPcieLinkGeneration",
            "nvmlDeviceGetCurrPcieLinkWidth",
            "nvmlDeviceGetEnforcedPowerLimit",
            "nvmlDeviceGetGpuInstanceId",
            "nvmlDeviceGetIndex",
            "nvmlDeviceGetMaxClockInfo",
            "nvmlDeviceGetMaxMigDeviceCount",
            "nvmlDeviceGetMaxPcieLinkGeneration",
            "nvmlDeviceGetMaxPcieLinkWidth",
            "nvmlDeviceGetMemoryBusWidth",
            "nvmlDeviceGetMinorNumber",
            "nvmlDeviceGetNumGpuCores",
            "nvmlDeviceGetNvLinkRemoteDeviceType",
            "nvmlDeviceGetNvLinkState",
            "nvmlDeviceGetPersistenceMode",
            "nvmlDeviceGetPowerManagementDefaultLimit",
            "nvmlDeviceGetPowerManagementLimit",
        )
    },
    "nvmlDeviceGetCount": ("nvmlDeviceGetCount_v2", c_uint, 1),
    "nvmlDeviceGetCudaComputeCapability": ("nvmlDeviceGetCudaComputeCapability", c_uint, 2),
    "nvmlDeviceGetCurrentClocksEventReasons": (
        "nvmlDeviceGetCurrentClocksEventReasons",
        c_ulonglong,
        1,
    ),
    "nvmlDeviceGetCurrentClocksThrottleReasons": (
        "nvmlDeviceGetCurrentClocksThrottleReasons",
        c_ulonglong,
        1,
    ),
    "nvmlDeviceGetEccMode": ("nvmlDeviceGetEccMode", c_uint, 2),
    "nvmlDeviceGetMigMode": ("nvmlDeviceGetMigMode", c_uint, 2),
    "nvmlDeviceGetPowerManagementLimitConstraints": (
        "nvmlDeviceGetPowerManagementLimitConstraints",
        c_uint,
        2,
    ),
    "nvmlDeviceGetRemappedRows": ("nvmlDeviceGetRemappedRows", c_uint, 4),
    "nvmlDeviceGetVirtualizationMode": ("nvmlDeviceGetVirtualizationMode", c_ulonglong, 1),
    "nvmlSystemGetCudaDriverVersion": ("nvmlSystemGetCudaDriverVersion", c_uint, 1),
    "nvmlSystemGetCudaDriverVersion_v2": ("nvmlSystemGetCudaDriverVersion_v2", c_uint, 1),
}

_PROCESSES = "nvmlDeviceGetComputeRunningProcesses"


class NvmlError(Exception):
    """NVML's answer is an error; `value` is its code, as nvidia-ml-py's exceptions have it."""

    def __init__(self, value: int) -> None:
        super().__init__(name_of(value))
        self.value = value


class PciInfo(Structure):
    """nvmlPciInfo_t, version 3."""

    _fields_ = (
        ("busIdLegacy", c_char * 16),
        ("domain", c_uint),
        ("bus", c_uint),
        ("device", c_uint),
        ("pciDeviceId", c_uint),
        ("pciSubSystemId", c_uint),
        ("busId", c_char * 32),  # 00000000:1B:00.0
    )


class Memory(Structure):
    """nvmlMemory_t."""

    _fields_ = (("total", c_ulonglong), ("free", c_ulonglong), ("used", c_ulonglong))


class MemoryV2(Structure):
    """nvmlMemory_v2_t."""

    _fields_ = (
        ("version", c_uint),
        ("total", c_ulonglong),
        ("reserved", c_ulonglong),
        ("free", c_ulonglong),
        ("used", c_ulonglong),
    )


class _Value(Union):
    """nvmlValue_t; the fields that a probe asks are unsigned."""

    _fields_ = (("uiVal", c_uint), ("ullVal", c_ulonglong))


class FieldValue(Structure):
    """nvmlFieldValue_t."""

    _fields_ = (
        ("fieldId", c_uint),
        ("scopeId", c_uint),
        ("timestamp", c_ulonglong),
        ("latencyUsec", c_ulonglong),
        ("valueType", c_uint),
        ("nvmlReturn", c_uint),
        ("value", _Value),
    )


# Function → (symbol, the structure that it writes), which is the answer.
_STRUCTURES: dict[str, tuple[str, Any]] = {
    "nvmlDeviceGetNvLinkRemotePciInfo": ("nvmlDeviceGetNvLinkRemotePciInfo_v2", PciInfo),
    "nvmlDeviceGetPciInfo": ("nvmlDeviceGetPciInfo_v3", PciInfo),
}


def _absent(*_arguments: Any) -> int:
    """Answer as NVML does for what its driver does not have."""
    return FUNCTION_NOT_FOUND


def writing_one(function: Callable[..., int], kind: Any) -> Callable[..., Any]:
    """Return a call of `function` that returns the number it writes: nearly all calls of a probe.

    Each call has a variable of its own: a driver that answers without writing must not repeat
    another GPU's figure.
    """

    def call(*arguments: Any) -> Any:
        result = kind()
        if code := function(*arguments, byref(result)):
            raise NvmlError(code)
        return result.value

    return call


def _writing(function: Callable[..., int], kind: Any, count: int) -> Callable[..., Any]:
    """Return a call of `function` that returns the `count` numbers it writes."""

    def call(*arguments: Any) -> Any:
        results = [kind() for _ in range(count)]
        if code := function(*arguments, *map(byref, results)):
            raise NvmlError(code)
        return [result.value for result in results]

    return call


def _writing_structure(function: Callable[..., int], kind: Any) -> Callable[..., Any]:
    """Return a call of `function` that returns the structure it writes, new for each call."""

    def call(*arguments: Any) -> Any:
        result = kind()
        if code := function(*arguments, byref(result)):
            raise NvmlError(code)
        return result

    return call


class Client:
    """Calls the library's functions by their names; raises `NvmlError`."""

    def __init__(self) -> None:
        self._library: Any = None

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return a function that takes plain numbers, and writes such or one structure.

        It is kept.
        """
        if name in _STRUCTURES:
            symbol, kind = _STRUCTURES[name]
            call = _writing_structure(self._function(symbol), kind)
        elif name in _PLAIN:
            symbol, kind, count = _PLAIN[name]
            function = self._function(symbol)
            call = writing_one(function, kind) if count == 1 else _writing(function, kind, count)
        else:
            raise AttributeError(name)
        if self._library is not None:
            setattr(self, name, call)
        return call

    def _call(self, symbol: str, *arguments: Any) -> None:
        if code := self._code(symbol, *arguments):
            raise NvmlError(code)

    def _code(self, symbol: str, *arguments: Any) -> int:
        code: int = getattr(self._library, symbol, _absent)(*arguments)
        return code

    def _function(self, symbol: str) -> Callable[..., int]:
        """Return the library's function; where it lacks it, one that answers so."""
        function: Callable[..., int] = getattr(self._library, symbol, _absent)
        return function

    def nvmlInit(self) -> None:
        """Load and initialise the library."""
        if self._library is None:
            try:
                self._library = Library(SONAME)
            except OSError:
                raise NvmlError(LIBRARY_NOT_FOUND) from None
        self._call("nvmlInitWithFlags", 0)

    def nvmlSystemGetDriverVersion(self) -> bytes:
        """Return the driver's version."""
        return self._text("nvmlSystemGetDriverVersion")

    def nvmlDeviceGetUUID(self, handle: Any) -> bytes:
        """Return the UUID of a GPU or MIG instance."""
        return self._text("nvmlDeviceGetUUID", handle)

    def nvmlDeviceGetName(self, handle: Any) -> bytes:
        """Return the name of a GPU or MIG instance."""
        return self._text("nvmlDeviceGetName", handle)

    def _text(self, symbol: str, *arguments: Any) -> bytes:
        buffer = (c_char * _TEXT)()
        self._call(symbol, *arguments, buffer, c_uint(_TEXT))
        return buffer.value

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Any:
        """Return the handle of a GPU."""
        return self._handle("nvmlDeviceGetHandleByIndex_v2", c_uint(index))

    def nvmlDeviceGetHandleByPciBusId(self, address: str) -> Any:
        """Return the handle of the GPU at a PCI address."""
        return self._handle("nvmlDeviceGetHandleByPciBusId_v2", address.encode("ascii"))

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: Any, index: int) -> Any:
        """Return the handle of a MIG instance of a GPU."""
        return self._handle("nvmlDeviceGetMigDeviceHandleByIndex", handle, c_uint(index))

    def _handle(self, symbol: str, *arguments: Any) -> Any:
        handle = c_void_p()
        self._call(symbol, *arguments, byref(handle))
        return handle

    def nvmlDeviceGetMemoryInfo(self, handle: Any, version: int = 0) -> Memory | MemoryV2:
        """Return the memory of a GPU or MIG instance, in bytes; with its `version` that of 2."""
        if version:
            info = MemoryV2(version=version)
            self._call("nvmlDeviceGetMemoryInfo_v2", handle, byref(info))
            return info
        plain = Memory()
        self._call("nvmlDeviceGetMemoryInfo", handle, byref(plain))
        return plain

    def nvmlDeviceGetFieldValues(self, handle: Any, fields: Sequence[int]) -> list[FieldValue]:
        """Return the values of fields, each with a code of its own."""
        values = (FieldValue * len(fields))()
        for value, field in zip(values, fields, strict=True):
            value.fieldId = field
        self._call("nvmlDeviceGetFieldValues", handle, len(fields), byref(values))
        return list(values)

    def nvmlDeviceGetComputeRunningProcesses_v3(self, handle: Any) -> range:
        """Return as many numbers as there are processes; who they are is not asked."""
        return self._processes(f"{_PROCESSES}_v3", handle)

    def nvmlDeviceGetComputeRunningProcesses_v2(self, handle: Any) -> range:
        """Return the same of drivers before 510."""
        return self._processes(f"{_PROCESSES}_v2", handle)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: Any) -> range:
        """Return the same of drivers before 450."""
        return self._processes(_PROCESSES, handle)

    def _processes(self, symbol: str, handle: Any) -> range:
        count = c_uint(0)
        code = self._code(symbol, handle, byref(count), None)
        if code not in (0, INSUFFICIENT_SIZE):
            raise NvmlError(code)
        return range(count.value)

    def nvmlDeviceGetGpuFabricInfo(self, handle: Any, info: Any) -> None:
        """Write the state of a GPU's NVSwitch fabric to `info`."""
        self._call("nvmlDeviceGetGpuFabricInfo", handle, info)

    def nvmlDeviceGetAttributes(self, handle: Any) -> Any:
        """Return what a MIG instance has of its GPU."""
        from probe_nvidia.mig_attributes import Attributes

        attributes = Attributes()
        self._call("nvmlDeviceGetAttributes_v2", handle, byref(attributes))
        return attributes
