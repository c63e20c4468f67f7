"""NVML's return codes: their names, and which of them mean what to a probe.

The numbers are part of NVML's interface (nvmlReturn_t in NVIDIA's NVML API reference).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["LIBRARY_NOT_FOUND", "LOST", "MISSING", "ORDINARY", "code_of", "name_of"]

# nvmlReturn_t of nvml.h.
INVALID_ARGUMENT = 2
NOT_SUPPORTED = 3
NO_PERMISSION = 4
NOT_FOUND = 6
INSUFFICIENT_SIZE = 7
DRIVER_NOT_LOADED = 9
TIMEOUT = 10
IRQ_ISSUE = 11
LIBRARY_NOT_FOUND = 12
FUNCTION_NOT_FOUND = 13
GPU_IS_LOST = 15
RESET_REQUIRED = 16
OPERATING_SYSTEM = 17
VERSION_MISMATCH = 18
UNKNOWN = 999

_NAMES = {
    1: "UNINITIALIZED",
    2: "INVALID_ARGUMENT",
    3: "NOT_SUPPORTED",
    4: "NO_PERMISSION",
    5: "ALREADY_INITIALIZED",
    6: "NOT_FOUND",
    7: "INSUFFICIENT_SIZE",
    8: "INSUFFICIENT_POWER",
    9: "DRIVER_NOT_LOADED",
    10: "TIMEOUT",
    11: "IRQ_ISSUE",
    12: "LIBRARY_NOT_FOUND",
    13: "FUNCTION_NOT_FOUND",
    14: "CORRUPTED_INFOROM",
    15: "GPU_IS_LOST",
    16: "RESET_REQUIRED",
    17: "OPERATING_SYSTEM",
    18: "LIB_RM_VERSION_MISMATCH",
    19: "IN_USE",
    20: "MEMORY",
    21: "NO_DATA",
    22: "VGPU_ECC_NOT_SUPPORTED",
    23: "INSUFFICIENT_RESOURCES",
    24: "FREQ_NOT_SUPPORTED",
    25: "ARGUMENT_VERSION_MISMATCH",
    26: "DEPRECATED",
    27: "NOT_READY",
    28: "GPU_NOT_FOUND",
    29: "INVALID_STATE",
    30: "RESET_TYPE_NOT_SUPPORTED",
    999: "UNKNOWN",
}

LOST = frozenset({GPU_IS_LOST, RESET_REQUIRED})
"""The device is gone until a reset: asking on would cost seconds and say nothing."""

MISSING = frozenset({13, 25, 26})
"""The driver is older (or newer) than the call: an older form of the call may work."""

ORDINARY = frozenset({2, 3, 4, 6, 13, 21, 25, 26})
"""Answers of a healthy device to a question that it does not take: worth a reason, no alarm."""


def code_of(error: BaseException) -> int | None:
    """Return the NVML code that an exception of nvidia-ml-py carries; None for any other."""
    if type(error).__name__ == "NVMLLibraryMismatchError":
        return FUNCTION_NOT_FOUND  # nvidia-ml-py 13 says so of some functions, without a code
    value: Any = getattr(error, "value", None)
    return value if type(value) is int else None


def name_of(code: int) -> str:
    """Return the code's name as NVIDIA's documents write it ("NVML_ERROR_NOT_SUPPORTED")."""
    return f"NVML_ERROR_{_NAMES[code]}" if code in _NAMES else f"NVML error {code}"
