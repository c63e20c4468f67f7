"""How much of its peak a GPU reaches: GPM counters, the only source of that (Hopper and later)."""

from __future__ import annotations

from probe_core.sysfs.rates import NEEDS_TWO
from probe_nvidia.codes import code_of, name_of
from probe_nvidia.live_nvml import GpmMetricsGet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Activity"]

_METRICS = {"sm": 2, "tensor": 5, "memory": 10}
"""NVML_GPM_METRIC_{SM_UTIL, ANY_TENSOR_UTIL, DRAM_BW_UTIL}, in percent."""

_OLD = "this GPU has no counters of it (GPM, Hopper and later)"


class Activity:
    """The counters of one GPU, or of a GPU instance: (its GPU's handle, its number)."""

    __slots__ = ("_before", "_handle", "_instance", "_nvml", "_reason", "_spare")

    def __init__(self, nvml: Any, handle: Any, instance: tuple[Any, int] | None) -> None:
        self._nvml = nvml
        self._handle = handle if instance is None else instance[0]
        self._instance = instance
        self._before: Any = None
        self._spare: Any = None
        self._reason: str | None = None

    def read(self, unknown: dict[str, str]) -> dict[str, float] | None:
        """Return shares of the peak since the last call; None with the reason in `unknown`."""
        if self._reason is None:
            try:
                return self._read(unknown)
            except Exception as error:
                code = code_of(error)
                self._reason = _OLD if code in (None, 3, 13) else f"{name_of(code)} from GPM"
        unknown["activity"] = self._reason
        return None

    def _read(self, unknown: dict[str, str]) -> dict[str, float] | None:
        nvml = self._nvml
        if self._spare is None:
            if not nvml.nvmlGpmQueryDeviceSupport(self._handle).isSupportedDevice:
                self._reason = unknown["activity"] = _OLD
                return None
            self._spare = nvml.nvmlGpmSampleAlloc()
        now, before = self._spare, self._before
        if self._instance is None:
            nvml.nvmlGpmSampleGet(self._handle, now)
        else:
            nvml.nvmlGpmMigSampleGet(self._handle, self._instance[1], now)
        self._before, self._spare = now, before
        if before is None:
            self._spare = nvml.nvmlGpmSampleAlloc()
            unknown["activity"] = NEEDS_TWO
            return None
        return self._shares(before, now, unknown)

    def close(self) -> None:
        """Give the room of both readings back, which is the library's own."""
        for sample in (self._before, self._spare):
            if sample is not None:
                try:
                    self._nvml.nvmlGpmSampleFree(sample)
                except Exception:  # a driver that has gone: the end of the process frees it
                    continue
        self._before = self._spare = None

    def _shares(self, before: Any, now: Any, unknown: dict[str, str]) -> dict[str, float]:
        query = GpmMetricsGet(version=1, numMetrics=len(_METRICS), sample1=before, sample2=now)
        for metric, number in zip(query.metrics, _METRICS.values(), strict=False):
            metric.metricId = number
        self._nvml.nvmlGpmMetricsGet(query)
        shares: dict[str, float] = {}
        for metric, name in zip(query.metrics, _METRICS, strict=False):
            if metric.nvmlReturn == 0:
                shares[name] = metric.value / 100
            else:
                unknown[f"activity.{name}"] = name_of(metric.nvmlReturn)
        return shares
