"""Reports Intel GPUs, NPUs and Gaudis from sysfs, opening no device and waking none."""

from __future__ import annotations

from probe_core.api import hookimpl, not_applicable
from probe_intel import functions, gaudi, gpu, npu

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from probe_core.api import NotApplicable, RawSample, Request, SampleRequest
    from probe_core.sysfs.pci import Function
    from probe_intel.sampler import Sampler

_sampler: Sampler | None = None
"""What a process that samples has looked up."""


@hookimpl
def probe_devices(request: Request) -> NotApplicable | Iterator[dict[str, Any]]:
    """Answer with Intel's devices, driven or not."""
    kinds = functions.by_kind(request.machine, request.bus)
    if not any(kinds.values()):
        return not_applicable("no Intel GPU, NPU or Gaudi on the PCI bus")
    return _all(request, kinds)


def _all(request: Request, kinds: dict[str, list[Function]]) -> Iterator[dict[str, Any]]:
    describers = {"gpu": gpu.describe, "npu": npu.describe, "accelerator": gaudi.describe}
    for kind, members in kinds.items():
        for function in members:
            if function.id in request.avoid:
                yield gpu.passive(request.machine, function, kind)
            else:
                request.touching(function.id)
                yield describers[kind](request.machine, function)


@hookimpl
def sample_devices(request: SampleRequest) -> NotApplicable | Iterator[RawSample]:
    """Yield what every GPU and NPU with its driver does now."""
    global _sampler
    if _sampler is None:
        from probe_intel.sampler import Sampler

        _sampler = Sampler(request, functions.by_kind(request.machine, request.bus))
    return _sampler.sample(request)
