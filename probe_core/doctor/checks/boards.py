"""Boards with a device tree: accelerators that the tree has, switched off."""

from __future__ import annotations

from probe_core.doctor.causes import of_cause
from probe_core.doctor.check import check, failed, not_applicable, passed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_core.doctor.check import Request, ResultDoc
    from probe_core.machine import Machine

_ROOTS = ("/sys/firmware/devicetree/base", "/proc/device-tree")

# How the nodes of GPUs and NPUs are called ("gpu@fb000000", "npu@fdab0000"), by the device-tree
# specification's generic names and the bindings of Rockchip, Amlogic and MediaTek.
_NAMES = ("gpu", "npu", "rknpu", "vpu-npu")
_MAX_NODES = 256


@check("device-tree-disabled", step="driver", needs=_ROOTS)
def disabled(request: Request) -> ResultDoc:
    """Whether a GPU or NPU of the board is switched off, and none of its kind is there."""
    if _root(request.machine) is None:
        return not_applicable("this machine has no device tree")
    kinds = {device["kind"] for device in request.report["devices"]}
    off = [path for path, kind in disabled_nodes(request.machine).items() if kind not in kinds]
    if not off:
        return passed()
    return failed(of_cause(request, "device-tree-disabled", f"{off[0]}/status: disabled"))


def disabled_nodes(machine: Machine) -> dict[str, str]:
    """Return path to kind of the accelerators that the device tree switches off."""
    root = _root(machine)
    return {
        path: kind
        for path, kind in (_nodes(machine, root) if root else ())
        if machine.read(f"{path}/status", 32) == "disabled"
    }


def _root(machine: Machine) -> str | None:
    return next((path for path in _ROOTS if machine.listdir(path)), None)


def _nodes(machine: Machine, root: str) -> Iterator[tuple[str, str]]:
    """Yield (path, kind) of accelerators at the top of the tree and in its buses."""
    names = machine.listdir(root)[:_MAX_NODES]
    buses = [name for name in names if name.partition("@")[0] in ("soc", "bus")]
    folders = [root, *(f"{root}/{name}" for name in buses)]
    for folder in folders:
        for name in machine.listdir(folder)[:_MAX_NODES]:
            stem = name.partition("@")[0]
            if stem in _NAMES and "@" in name:
                yield f"{folder}/{name}", "gpu" if stem == "gpu" else "npu"


CHECKS = [disabled]
