"""Reports Intel GPUs, NPUs and Gaudis from sysfs, opening no device and waking none."""

from __future__ import annotations

from probe_core.api import hookimpl, not_applicable
from probe_intel import advice, gaudi, gpu, npu, pci

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from probe_core.api import Machine, NotApplicable, Request
    from probe_intel.pci import Function

# A Gaudi's firmware may hang: its cards come last, so that what was seen before is kept.
_ORDER = {"gpu": 0, "npu": 1, "accelerator": 2}


@hookimpl
def probe_devices(request: Request) -> NotApplicable | Iterator[dict[str, Any]]:
    """Answer with Intel's devices, and findings on those that cannot be used."""
    found = pci.functions(request.machine, request.bus)
    if not found:
        return not_applicable("no Intel GPU, NPU or Gaudi on the PCI bus")
    return _all(request.machine, sorted(found, key=lambda one: _ORDER[one.kind]))


def _all(machine: Machine, functions: list[Function]) -> Iterator[dict[str, Any]]:
    for function in functions:
        for said in _device(machine, function):
            yield said
            if "ids" in said:
                yield from advice.on_nodes(machine, said)
        if advised := advice.on_driver(function):
            yield advised


def _device(machine: Machine, function: Function) -> Iterator[dict[str, Any]]:
    if function.kind == "gpu":
        yield gpu.describe(machine, function)
    elif function.kind == "npu":
        yield npu.describe(machine, function)
    else:
        yield from gaudi.describe(machine, function)
