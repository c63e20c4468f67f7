"""Reports Intel GPUs, NPUs and Gaudis from sysfs, opening no device and waking none."""

from __future__ import annotations

from probe_core.api import ask_each, hookimpl, not_applicable
from probe_intel import functions, gpu

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from probe_core.api import Machine, NotApplicable, Request, SampleRequest
    from probe_core.sysfs.pci import Function
    from probe_intel.sampler import Sampler


@hookimpl
def probe_devices(request: Request) -> NotApplicable | Iterator[dict[str, Any]]:
    """Answer with Intel's devices, driven or not."""
    kinds = functions.by_kind(request.machine, request.bus)
    if not any(kinds.values()):
        return not_applicable("no Intel GPU, NPU or Gaudi on the PCI bus")
    return _all(request, kinds)


def _all(request: Request, kinds: dict[str, list[Function]]) -> Iterator[dict[str, Any]]:
    def ask(of_kind: tuple[str, Function], may_ask: bool) -> Iterator[dict[str, Any]]:
        kind, function = of_kind
        if may_ask:
            yield _describe(request.machine, kind, function)
        else:
            yield gpu.passive(request.machine, function, kind)

    members = [(kind, function) for kind, functions in kinds.items() for function in functions]
    yield from ask_each(request, members, ask, lambda of_kind: of_kind[1].id)


def _describe(machine: Machine, kind: str, function: Function) -> dict[str, Any]:
    # Most computers have GPUs alone.
    if kind == "npu":
        from probe_intel import npu

        return npu.describe(machine, function)
    if kind == "accelerator":
        from probe_intel import gaudi

        return gaudi.describe(machine, function)
    return gpu.describe(machine, function)


@hookimpl
def open_sampler(request: SampleRequest) -> Sampler:
    """Return what samples every GPU and NPU with its driver."""
    from probe_intel.sampler import Sampler

    return Sampler(request, functions.by_kind(request.machine, request.bus))
