"""Samples Intel GPUs and NPUs; of Gaudis the driver shows nothing in sysfs."""

from __future__ import annotations

from probe_core.api import each_card, not_applicable
from probe_core.sysfs import power
from probe_core.sysfs.drm_use import DrmUse
from probe_intel.bound import DRIVERS
from probe_intel.live_gpu import LiveGpu
from probe_intel.live_npu import LiveNpu

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from probe_core.api import NotApplicable, RawSample, SampleRequest
    from probe_core.sysfs.pci import Function

__all__ = ["Sampler"]

_FRESH = 60
"""Rounds after which the paths of sensors are looked up anew: a driver may be loaded again."""


class Sampler:
    """Intel's devices, between two rounds."""

    def __init__(self, request: SampleRequest, kinds: Mapping[str, Sequence[Function]]) -> None:
        self._machine = request.machine
        self._use = DrmUse(request.machine)
        self._gpus = [f for f in kinds.get("gpu", ()) if f.driver in DRIVERS["gpu"]]
        self._npus = [f for f in kinds.get("npu", ()) if f.driver in DRIVERS["npu"]]
        self._live_gpus: dict[str, LiveGpu] = {}
        self._live_npus: dict[str, LiveNpu] = {}

    def sample(self, request: SampleRequest) -> Iterator[RawSample] | NotApplicable:
        """Return the samples of a round."""
        if not (self._gpus or self._npus):
            return not_applicable("no device is driven by i915, xe or intel_vpu")
        return self._samples(request)

    def _samples(self, request: SampleRequest) -> Iterator[RawSample]:
        if self._gpus:
            self._use.refresh()
        for function, may_ask in each_card(request, self._gpus):
            if not may_ask:
                continue
            if power.asleep(power.status(self._machine, function.folder)):
                yield {"device": function.id, "status": "asleep", "reason": "it has fallen asleep"}
                continue
            gpu = self._live_gpus.get(function.id)
            if gpu is None or request.round % _FRESH == 0:
                gpu = self._live_gpus[function.id] = LiveGpu(self._machine, function)
            yield gpu.sample(self._use)
        for function in self._npus:
            # Its files answer from memory, also while it sleeps, as it does between two jobs.
            if function.id not in request.avoid:
                request.touching(function.id)
                npu = self._live_npus.setdefault(function.id, LiveNpu(self._machine, function))
                yield npu.sample()
