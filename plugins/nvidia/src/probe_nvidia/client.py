"""A client of NVML that starts quickly: what a probe calls on Linux.

It has the names, arguments and results of nvidia-ml-py, as much of them as a probe asks.
nvidia-ml-py stays the definition: tests compare each structure with its own and run every faked
driver through both. It defines 212 structures when it is imported, of which a probe needs six. On
an H200 (driver 580.159.04, 2026-11-27, 9 rounds, twice) `probe --json` took 100 and 95 ms with this
client, and 1.30 and 1.25 times as long with nvidia-ml-py, 1.29 and 1.23 times the processor time; a
first `probe()` 1.27 and 1.24 times; read from a cold disk 195 against 215 ms. `tests/bench/run.py
real` measures it: below 10 % this file goes.
"""

from __future__ import annotations

import ctypes
from ctypes import Structure, byref, c_char, c_uint, c_ulonglong, c_void_p

from probe_nvidia.causes import (
    FUNCTION_NOT_FOUND,
    INSUFFICIENT_SIZE,
    LIBRARY_NOT_FOUND,
    name_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

SONAME = "libnvidia-ml.so.1"

_ROOM = 96
"""Bytes of a name or UUID, with the NUL at the end (NVML_DEVICE_UUID_V2_BUFFER_SIZE)."""


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


class _Value(ctypes.Union):
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


class Attributes(Structure):
    """nvmlDeviceAttributes_t: what a MIG instance has."""

    _fields_ = (
        ("multiprocessorCount", c_uint),
        ("sharedCopyEngineCount", c_uint),
        ("sharedDecoderCount", c_uint),
        ("sharedEncoderCount", c_uint),
        ("sharedJpegCount", c_uint),
        ("sharedOfaCount", c_uint),
        ("gpuInstanceSliceCount", c_uint),
        ("computeInstanceSliceCount", c_uint),
        ("memorySizeMB", c_ulonglong),
    )


_ONE_NUMBER = """
    nvmlDeviceGetComputeInstanceId nvmlDeviceGetComputeMode nvmlDeviceGetCount
    nvmlDeviceGetCurrPcieLinkGeneration nvmlDeviceGetCurrPcieLinkWidth
    nvmlDeviceGetEnforcedPowerLimit nvmlDeviceGetGpuInstanceId nvmlDeviceGetIndex
    nvmlDeviceGetMaxClockInfo nvmlDeviceGetMaxMigDeviceCount nvmlDeviceGetMaxPcieLinkGeneration
    nvmlDeviceGetMaxPcieLinkWidth nvmlDeviceGetMemoryBusWidth nvmlDeviceGetMinorNumber
    nvmlDeviceGetNumGpuCores nvmlDeviceGetNvLinkRemoteDeviceType nvmlDeviceGetNvLinkState
    nvmlDeviceGetPersistenceMode nvmlDeviceGetPowerManagementDefaultLimit
    nvmlDeviceGetPowerManagementLimit nvmlSystemGetCudaDriverVersion
    nvmlSystemGetCudaDriverVersion_v2
""".split()

WRITES: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(_ONE_NUMBER, (c_uint,)),
    "nvmlDeviceGetAttributes": (Attributes,),
    "nvmlDeviceGetCudaComputeCapability": (c_uint, c_uint),
    "nvmlDeviceGetCurrentClocksEventReasons": (c_ulonglong,),
    "nvmlDeviceGetCurrentClocksThrottleReasons": (c_ulonglong,),
    "nvmlDeviceGetEccMode": (c_uint, c_uint),
    "nvmlDeviceGetGpuFabricInfo": (),  # the caller gives the structure
    "nvmlDeviceGetHandleByIndex": (c_void_p,),
    "nvmlDeviceGetHandleByPciBusId": (c_void_p,),
    "nvmlDeviceGetMigDeviceHandleByIndex": (c_void_p,),
    "nvmlDeviceGetMigMode": (c_uint, c_uint),
    "nvmlDeviceGetNvLinkRemotePciInfo": (PciInfo,),
    "nvmlDeviceGetPciInfo": (PciInfo,),
    "nvmlDeviceGetPowerManagementLimitConstraints": (c_uint, c_uint),
    "nvmlDeviceGetRemappedRows": (c_uint, c_uint, c_uint, c_uint),
    "nvmlDeviceGetVirtualizationMode": (c_ulonglong,),
}
"""Function → the types of what it writes; its arguments are the handle, numbers and bytes."""

TEXTS = ("nvmlDeviceGetName", "nvmlDeviceGetUUID", "nvmlSystemGetDriverVersion")
"""Functions that write a text."""

_PROCESSES = "nvmlDeviceGetComputeRunningProcesses"
COUNTED = (f"{_PROCESSES}_v3", f"{_PROCESSES}_v2", _PROCESSES)
"""Functions that list processes: of today's drivers, of those before 510, and before 450."""

_VERSIONS = {
    "nvmlDeviceGetAttributes": "_v2",
    "nvmlDeviceGetCount": "_v2",
    "nvmlDeviceGetHandleByIndex": "_v2",
    "nvmlDeviceGetHandleByPciBusId": "_v2",
    "nvmlDeviceGetNvLinkRemotePciInfo": "_v2",
    "nvmlDeviceGetPciInfo": "_v3",
}
"""Function → the version of the library's symbol, where nvidia-ml-py's name has none."""


def _absent(*_arguments: Any) -> int:
    """Answer as NVML does for what its driver does not have."""
    return FUNCTION_NOT_FOUND


def _writing(function: Callable[..., int], kinds: Sequence[Any]) -> Callable[..., Any]:
    """Return a call that returns what the function writes: a number, a structure or a list.

    Each call has variables of its own: a driver that answers without writing must not repeat
    another GPU's figure.
    """

    def call(*arguments: Any) -> Any:
        results = [kind() for kind in kinds]
        _check(function(*arguments, *map(byref, results)))
        values = [r.value if isinstance(r, (c_uint, c_ulonglong)) else r for r in results]
        return values[0] if len(values) == 1 else values

    return call


def _text(function: Callable[..., int]) -> Callable[..., bytes]:
    """Return a call that returns the text that the function writes."""

    def call(*handle: Any) -> bytes:
        buffer = (c_char * _ROOM)()
        _check(function(*handle, buffer, _ROOM))
        return buffer.value

    return call


def _counting(function: Callable[..., int]) -> Callable[..., range]:
    """Return a call that returns as many numbers as there are processes; who they are is not asked.

    nvidia-ml-py returns the processes.
    """

    def call(handle: Any) -> range:
        count = c_uint(0)
        code = function(handle, byref(count), None)
        _check(0 if code == INSUFFICIENT_SIZE else code)
        return range(count.value)

    return call


def _check(code: int) -> None:
    if code:
        raise NvmlError(code)


class Client:
    """Calls the library's functions by nvidia-ml-py's names; raises `NvmlError`."""

    def __init__(self) -> None:
        self._library: Any = None
        self._asked: dict[tuple[int | tuple[int, int], ...], Any] = {}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return a function of the tables above, which is kept."""
        function = self._function(name + _VERSIONS.get(name, ""))
        if name in WRITES:
            call = _writing(function, WRITES[name])
        elif name in TEXTS:
            call = _text(function)
        elif name in COUNTED:
            call = _counting(function)
        else:
            raise AttributeError(name)
        # Where one hangs, the stack names the call of NVML and not this file's function for all.
        call.__code__ = call.__code__.replace(co_name=name, co_qualname=name)
        if self._library is not None:
            setattr(self, name, call)
        return call

    def _function(self, symbol: str) -> Callable[..., int]:
        """Return the library's function; where it lacks it, one that answers so."""
        function: Callable[..., int] = getattr(self._library, symbol, _absent)
        return function

    def nvmlInit(self) -> None:
        """Load and initialise the library."""
        if self._library is None:
            try:
                self._library = ctypes.CDLL(SONAME)
            except OSError:
                raise NvmlError(LIBRARY_NOT_FOUND) from None
        _check(self._function("nvmlInitWithFlags")(0))

    def nvmlDeviceGetMemoryInfo(self, handle: Any, version: int = 0) -> Memory | MemoryV2:
        """Return the memory of a GPU or MIG instance, in bytes; with its `version` that of 2."""
        info = MemoryV2(version=version) if version else Memory()
        function = self._function(f"nvmlDeviceGetMemoryInfo{'_v2' if version else ''}")
        _check(function(handle, byref(info)))
        return info

    def nvmlDeviceGetFieldValues(
        self, handle: Any, fields: Sequence[int | tuple[int, int]]
    ) -> list[FieldValue]:
        """Return the values of fields, some with a scope, each with a code of its own."""
        key = (*fields,)
        if key not in self._asked:  # equal GPUs are asked for the same
            asked = (FieldValue * len(fields))()
            for value, field in zip(asked, fields, strict=True):
                value.fieldId, value.scopeId = field if isinstance(field, tuple) else (field, 0)
            self._asked[key] = asked  # whole: threads ask GPUs side by side
        values = (FieldValue * len(fields)).from_buffer_copy(self._asked[key])
        _check(self._function("nvmlDeviceGetFieldValues")(handle, len(fields), byref(values)))
        return list(values)
