"""Reports Intel GPUs, NPUs and Gaudis from sysfs, opening no device and waking none."""

from __future__ import annotations

from probe_core.api import hookimpl, not_applicable
from probe_core.sysfs import nodes
from probe_intel import advice, functions, gaudi, gpu, npu

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from probe_core.api import Machine, NotApplicable, Request
    from probe_core.sysfs.pci import Function


@hookimpl
def probe_devices(request: Request) -> NotApplicable | Iterator[dict[str, Any]]:
    """Answer with Intel's devices, and findings on those that cannot be used."""
    kinds = functions.by_kind(request.machine, request.bus)
    if not any(kinds.values()):
        return not_applicable("no Intel GPU, NPU or Gaudi on the PCI bus")
    return _all(request.machine, kinds)


def _all(machine: Machine, kinds: dict[str, list[Function]]) -> Iterator[dict[str, Any]]:
    for kind, members in kinds.items():
        for function in members:
            for item in _device(machine, kind, function):
                yield item
                if "ids" in item:
                    paths = nodes.paths(item["node_index"])
                    yield from nodes.findings(machine, paths, function.id)
            if finding := advice.on_driver(kind, function):
                yield finding


def _device(machine: Machine, kind: str, function: Function) -> Iterator[dict[str, Any]]:
    if kind == "gpu":
        yield gpu.describe(machine, function)
    elif kind == "npu":
        yield npu.describe(machine, function)
    else:
        yield from gaudi.describe(machine, function)
