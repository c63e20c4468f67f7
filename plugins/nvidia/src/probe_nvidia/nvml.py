"""NVML: the library's start, and one question at a time to a device."""

from __future__ import annotations

import ctypes
import sys

from probe_nvidia.causes import (
    LIBRARY_NOT_FOUND,
    LOST,
    MISSING,
    NO_PERMISSION,
    NOT_SUPPORTED,
    ORDINARY,
    Failure,
    code_of,
    name_of,
)
from probe_nvidia.client import SONAME, Client

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_nvidia.scene import Scene

    FieldValues = dict[int | tuple[int, int], int]
    """NVML's field, or field and scope (a link) → its value; what has none is left out."""


# Where drivers put the library outside the loader's own path: WSL, NixOS, GKE and other node
# installers. The loader is asked by soname, which an already loaded library satisfies.
_FOLDERS = (
    "/usr/lib/wsl/lib",
    "/run/opengl-driver/lib",
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
)


def start(scene: Scene, *, live: bool = False) -> Any:
    """Return what calls NVML, initialised; raises `Failure`.

    That is nvidia-ml-py where live figures are asked, where it is loaded already, and on Windows,
    where it finds nvml.dll in the folders of several drivers; else our client.
    """
    nvml: Any = Client()
    if live or "pynvml" in sys.modules or scene.machine.os != "linux":
        try:
            import pynvml
        except Exception as error:
            from probe_nvidia.wrong import no_client

            raise no_client(error) from None
        nvml = pynvml
    code = _initialise(nvml)
    if code == LIBRARY_NOT_FOUND and _load_from_folders(scene):
        code = _initialise(nvml)
    if code is not None:
        from probe_nvidia.wrong import library_failure  # what a driver that works never needs

        detail = _loader_error(scene) if code == LIBRARY_NOT_FOUND else None
        raise library_failure(code, scene, detail)
    return nvml


def _initialise(nvml: Any) -> int | None:
    """Return None on success, else NVML's code; raises `Failure` where there is none."""
    try:
        nvml.nvmlInit()
    except Exception as error:
        code = code_of(error)
        if code is None:
            raise Failure(f"nvidia-ml-py fails in nvmlInit: {error!r}") from None
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
        # PyInstaller (6) puts its own error, "most likely not found", over the loader's.
        return str(error.__cause__ or error)
    return None


CONSTANTS = frozenset(
    {
        "nvmlDeviceGetCudaComputeCapability",
        "nvmlDeviceGetMaxClockInfo",
        "nvmlDeviceGetMemoryBusWidth",
        "nvmlDeviceGetNumGpuCores",
        "nvmlDeviceGetPowerManagementDefaultLimit",
        "nvmlDeviceGetPowerManagementLimitConstraints",
        "nvmlDeviceGetVirtualizationMode",
    }
)
"""What the design of a board decides: equal boards of a node are asked once. A vGPU has a subsystem
id and a name of its own. What equal boards do not support is asked once, too."""

_SHARED_LACKS = CONSTANTS | {
    "nvmlDeviceGetEccMode",
    "nvmlDeviceGetEnforcedPowerLimit",
    "nvmlDeviceGetMigMode",
    "nvmlDeviceGetPowerManagementLimit",
    "nvmlDeviceGetRemappedRows",
}


class Asker:
    """Asks NVML about one device handle: an answer, or the reason why there is none.

    No figure depends on another: a driver that does not know one call still answers the others.

    `unknown` maps fields to reasons; `faults` maps fields to the codes that a healthy device does
    not answer; `lost` is the reason once the device is gone: then nothing more is asked.
    `answers` counts what it answered about itself, `refused` are the functions that this process
    may not call. `board` is what equal boards answered about their design, or the exception.
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
        self.board: dict[tuple[Any, ...], Any] = {}

    def get(self, field: str | None, call: str, *arguments: Any) -> Any:
        """Return what the NVML function `call` answers; None, with a reason for `field`, if not.

        Without a `field` the lack is not worth a word (a card without NVLink has no links). The
        code of the last failure stays in `code`.
        """
        self.code = None
        if self.lost:
            return self._note(field, self.lost)
        known = self.board.get((call, *arguments)) if call in _SHARED_LACKS else None
        if known is not None:
            return self._fail(field, call, known) if isinstance(known, Exception) else known
        function = getattr(self.nvml, call, None)
        if function is None:
            return self._note(field, f"this nvidia-ml-py has no {call}")
        try:
            answer = function(self.handle, *arguments)
            if call in CONSTANTS:
                self.board[call, *arguments] = answer
            else:
                self.answers += 1
            return answer
        except UnicodeDecodeError as error:
            self.answers += 1
            return error.object  # a name that is not UTF-8: nvidia-ml-py decodes strictly
        except Exception as error:
            if call in _SHARED_LACKS and code_of(error) == NOT_SUPPORTED:
                self.board[call, *arguments] = error
            return self._fail(field, call, error)

    def values(self, *fields: int | tuple[int, int]) -> FieldValues | None:
        """Return NVML's field values, each a field or (field, scope), in one call.

        What the driver or the device does not have is left out. None where the driver has none.
        """
        values = self.get(None, "nvmlDeviceGetFieldValues", fields)
        if values is None:
            return None
        pairs = zip(fields, values, strict=True)
        return {field: value.value.uiVal for field, value in pairs if value.nvmlReturn == 0}

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
