"""The calls of NVML that live figures need, beside those of a probe: nvidia-ml-py's names again."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_double, c_int, c_uint, c_ulonglong, c_void_p

from probe_nvidia.codes import INSUFFICIENT_SIZE
from probe_nvidia.nvml import Client, FieldValue, NvmlError, writing_one

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = [
    "GPM_MAX",
    "GpmMetric",
    "GpmMetricsGet",
    "GpmSupport",
    "LiveClient",
    "ProcessInfo",
    "Utilization",
]

_ROOM = 5
"""Processes that may have come between the call that counts them and the one that lists them."""

GPM_MAX = 477
"""NVML_GPM_METRIC_MAX of nvidia-ml-py 13.615. The library fills as many as it was asked for."""

_VERSION = 1
"""NVML_GPM_METRICS_GET_VERSION and NVML_GPM_SUPPORT_VERSION."""

# Names whose answer is one whole number, with nvidia-ml-py's argument after the handle.
_NUMBERS = frozenset(
    {"nvmlDeviceGetClockInfo", "nvmlDeviceGetPowerUsage", "nvmlDeviceGetTemperature"}
)


class Utilization(ctypes.Structure):
    """nvmlUtilization_t, in percent."""

    _fields_ = (("gpu", c_uint), ("memory", c_uint))


class ProcessInfo(ctypes.Structure):
    """nvmlProcessInfo_t of versions 2 and 3."""

    _fields_ = (
        ("pid", c_uint),
        ("usedGpuMemory", c_ulonglong),
        ("gpuInstanceId", c_uint),
        ("computeInstanceId", c_uint),
    )


class _Text(ctypes.Structure):
    """nvmlGpmMetric_t's names of a metric, which nobody reads here."""

    _fields_ = (("shortName", c_char_p), ("longName", c_char_p), ("unit", c_char_p))


class GpmMetric(ctypes.Structure):
    """nvmlGpmMetric_t."""

    _fields_ = (
        ("metricId", c_uint),
        ("nvmlReturn", c_int),
        ("value", c_double),
        ("metricInfo", _Text),
    )


class GpmMetricsGet(ctypes.Structure):
    """nvmlGpmMetricsGet_t."""

    _fields_ = (
        ("version", c_uint),
        ("numMetrics", c_uint),
        ("sample1", c_void_p),
        ("sample2", c_void_p),
        ("metrics", GpmMetric * GPM_MAX),
    )


class GpmSupport(ctypes.Structure):
    """nvmlGpmSupport_t."""

    _fields_ = (("version", c_uint), ("isSupportedDevice", c_uint))


class LiveClient(Client):
    """Calls the library's functions by their names; raises `NvmlError`."""

    def __getattr__(self, name: str) -> Any:
        """Return a function that answers with one number; it is kept."""
        if name not in _NUMBERS:
            return super().__getattr__(name)
        call = writing_one(self._function(name), c_uint)
        setattr(self, name, call)
        return call

    def nvmlShutdown(self) -> None:
        """Close the library, and with it every GPU."""
        self._call("nvmlShutdown")

    def nvmlDeviceGetUtilizationRates(self, handle: Any) -> Utilization:
        """Return the share of time in which a kernel ran, and the memory controller worked."""
        rates = Utilization()
        self._call("nvmlDeviceGetUtilizationRates", handle, byref(rates))
        return rates

    def nvmlDeviceGetFieldValues(self, handle: Any, fields: Sequence[Any]) -> list[FieldValue]:
        """Return the values of (field, scope) pairs, each with a code of its own."""
        values = (FieldValue * len(fields))()
        for value, (field, scope) in zip(values, fields, strict=True):
            value.fieldId, value.scopeId = field, scope
        self._call("nvmlDeviceGetFieldValues", handle, len(fields), byref(values))
        return list(values)

    def nvmlDeviceGetComputeRunningProcesses_v3(self, handle: Any) -> Any:
        """Return the processes with a compute context."""
        return self._listed("nvmlDeviceGetComputeRunningProcesses_v3", handle)

    def nvmlDeviceGetComputeRunningProcesses_v2(self, handle: Any) -> Any:
        """Return the same of drivers before 510."""
        return self._listed("nvmlDeviceGetComputeRunningProcesses_v2", handle)

    def nvmlDeviceGetGraphicsRunningProcesses_v3(self, handle: Any) -> Any:
        """Return the processes with a graphics context."""
        return self._listed("nvmlDeviceGetGraphicsRunningProcesses_v3", handle)

    def nvmlDeviceGetGraphicsRunningProcesses_v2(self, handle: Any) -> Any:
        """Return the same of drivers before 510."""
        return self._listed("nvmlDeviceGetGraphicsRunningProcesses_v2", handle)

    def _listed(self, symbol: str, handle: Any) -> list[ProcessInfo]:
        count = c_uint(0)
        code = self._code(symbol, handle, byref(count), None)
        if code == 0:
            return []
        if code != INSUFFICIENT_SIZE:
            raise NvmlError(code)
        processes = (ProcessInfo * (count.value + _ROOM))()
        count.value += _ROOM
        self._call(symbol, handle, byref(count), processes)
        return list(processes[: count.value])

    def nvmlGpmQueryDeviceSupport(self, handle: Any) -> GpmSupport:
        """Return whether a GPU counts what its units do (Hopper and later)."""
        support = GpmSupport(version=_VERSION)
        self._call("nvmlGpmQueryDeviceSupport", handle, byref(support))
        return support

    def nvmlGpmSampleAlloc(self) -> Any:
        """Return room for one reading of a GPU's counters."""
        sample = c_void_p()
        self._call("nvmlGpmSampleAlloc", byref(sample))
        return sample

    def nvmlGpmSampleFree(self, sample: Any) -> None:
        """Give the room of a reading back."""
        self._call("nvmlGpmSampleFree", sample)

    def nvmlGpmSampleGet(self, handle: Any, sample: Any) -> None:
        """Read a GPU's counters."""
        self._call("nvmlGpmSampleGet", handle, sample)

    def nvmlGpmMigSampleGet(self, handle: Any, instance: int, sample: Any) -> None:
        """Read the counters of a GPU instance."""
        self._call("nvmlGpmMigSampleGet", handle, c_uint(instance), sample)

    def nvmlGpmMetricsGet(self, metrics: GpmMetricsGet) -> None:
        """Compute metrics from two readings."""
        self._call("nvmlGpmMetricsGet", byref(metrics))
