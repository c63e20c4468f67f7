"""NVML: a client that starts quickly, the library's start, and one question at a time to a device.

On Linux the client of a probe is ours. It has the names, arguments and results of nvidia-ml-py, as
much of them as a probe asks. nvidia-ml-py stays the definition: tests compare each structure with
its own and run every faked driver through both. It defines 212 structures when it is imported, of
which a probe needs six. Against a driver that answers in no time, that is 11.6 of a child's 40 ms,
and a probe of eight GPUs takes 1.4 times as long. On the one H100 that was tried, `probe --json`
took 92 ms with this client, of which NVML itself took 33; with nvidia-ml-py it was not measured
there. A measure of both on a real GPU, wall and processor time, cold and warm, decides: below 10 %
this client goes.
"""

from __future__ import annotations

import ctypes
import sys
from ctypes import Structure, byref, c_char, c_ubyte, c_uint, c_ulonglong, c_void_p

from probe_core.api import Unavailable
from probe_nvidia import wrong
from probe_nvidia.causes import (
    FUNCTION_NOT_FOUND,
    INSUFFICIENT_SIZE,
    LIBRARY_NOT_FOUND,
    LOST,
    MISSING,
    NO_PERMISSION,
    ORDINARY,
    code_of,
    name_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from probe_nvidia.scene import Scene

SONAME = "libnvidia-ml.so.1"

# Where drivers put the library outside the loader's own path: WSL, NixOS, GKE and other node
# installers. The loader is asked by soname, which an already loaded library satisfies.
_FOLDERS = (
    "/usr/lib/wsl/lib",
    "/run/opengl-driver/lib",
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
)

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


class FabricInfo(Structure):
    """nvmlGpuFabricInfo_t, ours with either client because nvidia-ml-py 12 lays it out wrongly."""

    _fields_ = (
        ("cluster", c_ubyte * 16),
        ("status", c_uint),
        ("clique", c_uint),
        ("state", c_ubyte),
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
        if self._library is not None:
            setattr(self, name, call)
        return call

    def _function(self, symbol: str) -> Callable[..., int]:
        """Return the library's function; where it lacks it, one that answers so."""
        function: Callable[..., int] = getattr(self._library, symbol, _absent)
        return function

    def _call(self, symbol: str, *arguments: Any) -> None:
        _check(self._function(symbol)(*arguments))

    def nvmlInit(self) -> None:
        """Load and initialise the library."""
        if self._library is None:
            try:
                self._library = ctypes.CDLL(SONAME)
            except OSError:
                raise NvmlError(LIBRARY_NOT_FOUND) from None
        self._call("nvmlInitWithFlags", 0)

    def nvmlDeviceGetMemoryInfo(self, handle: Any, version: int = 0) -> Memory | MemoryV2:
        """Return the memory of a GPU or MIG instance, in bytes; with its `version` that of 2."""
        info = MemoryV2(version=version) if version else Memory()
        self._call(f"nvmlDeviceGetMemoryInfo{'_v2' if version else ''}", handle, byref(info))
        return info

    def nvmlDeviceGetFieldValues(self, handle: Any, fields: Sequence[int]) -> list[FieldValue]:
        """Return the values of fields, each with a code of its own."""
        values = (FieldValue * len(fields))()
        for value, field in zip(values, fields, strict=True):
            value.fieldId = field
        self._call("nvmlDeviceGetFieldValues", handle, len(fields), byref(values))
        return list(values)


def start(scene: Scene, *, live: bool = False) -> Any:
    """Return what calls NVML, initialised; raises `Unavailable`.

    That is nvidia-ml-py where live figures are asked, where it is loaded already, and on Windows,
    where it finds nvml.dll in the folders of several drivers; else our client.
    """
    nvml: Any = Client()
    if live or "pynvml" in sys.modules or scene.machine.os != "linux":
        try:
            import pynvml
        except Exception as error:
            raise wrong.no_client(error) from None
        nvml = pynvml
    code = _initialise(nvml)
    if code == LIBRARY_NOT_FOUND and _load_from_folders(scene):
        code = _initialise(nvml)
    if code is not None:
        detail = _loader_error(scene) if code == LIBRARY_NOT_FOUND else None
        raise wrong.library_failure(code, scene, detail)
    return nvml


def _initialise(nvml: Any) -> int | None:
    """Return None on success, else NVML's code; raises `Unavailable` for any other failure."""
    try:
        nvml.nvmlInit()
    except Exception as error:
        code = code_of(error)
        if code is None:
            raise Unavailable(f"nvidia-ml-py fails in nvmlInit: {error!r}") from None
        return code
    return None


def _load_from_folders(scene: Scene) -> bool:
    for folder in _FOLDERS:
        path = f"{folder}/{SONAME}"
        if scene.machine.exists(path):
            try:
                ctypes.CDLL(scene.machine.path(path))
            except OSError:
                continue
            return True
    return False


def _loader_error(scene: Scene) -> str | None:
    """Return the loader's own words ("file too short"), which nvidia-ml-py drops."""
    if scene.machine.os != "linux":
        return None
    try:
        ctypes.CDLL(SONAME)
    except OSError as error:
        return str(error)
    return None


class Asker:
    """Asks NVML about one device handle: an answer, or the reason why there is none.

    No figure depends on another: a driver that does not know one call still answers the others.

    `unknown` maps fields to reasons; `faults` maps fields to the codes that a healthy device does
    not answer; `lost` is the reason once the device is gone: then nothing more is asked.
    `answers` counts what was answered, `refused` are the functions that this process may not call.
    """

    def __init__(self, nvml: Any, handle: Any) -> None:
        self.nvml = nvml
        self.handle = handle
        self.unknown: dict[str, str] = {}
        self.faults: dict[str, int] = {}
        self.lost: str | None = None
        self.lost_code: int | None = None
        self.code: int | None = None
        self.answers = 0
        self.refused: set[str] = set()

    def get(self, field: str | None, call: str, *arguments: Any) -> Any:
        """Return what the NVML function `call` answers; None, with a reason for `field`, if not.

        Without a `field` the lack is not worth a word (a card without NVLink has no links). The
        code of the last failure stays in `code`.
        """
        self.code = None
        if self.lost:
            return self._note(field, self.lost)
        function = getattr(self.nvml, call, None)
        if function is None:
            return self._note(field, f"this nvidia-ml-py has no {call}")
        try:
            answer = function(self.handle, *arguments)
            self.answers += 1
            return answer
        except UnicodeDecodeError as error:
            self.answers += 1
            return error.object  # a name that is not UTF-8: nvidia-ml-py decodes strictly
        except Exception as error:
            return self._fail(field, call, error)

    def first(self, field: str | None, *calls: tuple[Any, ...]) -> Any:
        """Ask the newest of several calls, and an older one only where the newer is missing."""
        for call, *arguments in calls:
            value = self.get(field, call, *arguments)
            if value is not None:
                self.unknown.pop(field or "", None)
                return value
            if self.lost or (self.code is not None and self.code not in MISSING):
                return None
        return None

    def number(self, field: str, call: str, *arguments: Any) -> int | None:
        """Return a count or figure; 0 is no answer, for none of these can be 0."""
        value = self.get(field, call, *arguments)
        if value == 0:
            self.unknown[field] = f"{call} answered 0"
        return value or None

    def _fail(self, field: str | None, call: str, error: Exception) -> None:
        self.code = code = code_of(error)
        if code is None:
            return self._note(field, f"{call}: {type(error).__name__}: {str(error)[:120]}")
        reason = f"{name_of(code)} from {call}"
        if code in LOST:
            self.lost, self.lost_code = reason, code
        if code == NO_PERMISSION:
            self.refused.add(call)
        if code not in ORDINARY:
            self.faults[field or call] = code
        return self._note(field, reason)

    def _note(self, field: str | None, reason: str) -> None:
        if field:
            self.unknown[field] = reason


def text(value: Any) -> str | None:
    """Return a name or UUID as text: nvidia-ml-py may give bytes, and bytes may be no UTF-8."""
    if isinstance(value, (bytes, bytearray)):
        value = bytes(value).partition(b"\0")[0].decode("utf-8", "replace")
    return value.strip() or None if isinstance(value, str) else None
