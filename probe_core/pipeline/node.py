"""The node itself: system, model, and how much memory this process may really use."""

from __future__ import annotations

from probe_core.machine import decimal
from probe_core.machine.cgroups import memory_limits
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.machine import Machine
    from probe_core.model.document import NodeDoc, NodeMemoryDoc

__all__ = ["describe", "memory"]

_NODES = "/sys/devices/system/node/online"

_MODEL_FILES = (
    "/sys/firmware/devicetree/base/model",
    "/proc/device-tree/model",
    "/sys/class/dmi/id/product_name",
)
# What board makers leave in DMI when they do not fill it in.
_PLACEHOLDERS = ("to be filled by o.e.m.", "system product name", "default string", "none", "")


def describe(machine: Machine, anonymous: bool = False) -> NodeDoc:
    """Return the report's `node`: os, kernel, arch, model, memory (bytes) and network.

    `anonymous` leaves ids out of the links. Its identity and surroundings are still null:
    `node_identity.identify` adds them.
    """
    node: NodeDoc = {
        "os": machine.os,
        "kernel": _kernel(machine),
        "arch": machine.arch,
        "model": _model(machine),
        "id": None,
        "host": None,
        "time": None,
        "container": None,
        "vm": None,
        "cgroup": None,
        "memory": memory(machine),
        "network": [],
    }
    if machine.os == "linux":
        from probe_core.pipeline.network import network

        node["network"] = network(machine, anonymous)
    return node


def _kernel(machine: Machine) -> str | None:
    text = machine.read("/proc/sys/kernel/osrelease", 256) if machine.os == "linux" else None
    if text:
        return clean_text(text)
    import os

    return os.uname().release if machine.live and hasattr(os, "uname") else None


def _model(machine: Machine) -> str | None:
    if machine.os == "darwin" and machine.live:
        from probe_core.probers.cpu_other import sysctl

        return sysctl("hw.model")
    for path in _MODEL_FILES:
        text = machine.read(path, 256)
        if text and text.lower() not in _PLACEHOLDERS:
            return clean_text(text)
    return None


def memory(machine: Machine) -> NodeMemoryDoc:
    """Return total, available and limit in bytes; None for what cannot be known.

    `total` is the machine's, `limit` the smallest limit of the control groups this process is in,
    `available` what can be taken now without swapping, within that limit. NUMA totals are not
    used: in virtual machines they can be far off.
    """
    if machine.os != "linux":
        return _from_psutil(machine)
    info = _meminfo(machine)
    total, available = info.get("MemTotal"), info.get("MemAvailable")
    limit, room, place = memory_limits(machine)
    memory: NodeMemoryDoc = {"total": total, "available": available, "limit": None}
    if "," in (nodes := machine.read(_NODES, 4096) or "") or "-" in nodes:
        from probe_core.pipeline import numa

        numa.correct(machine, memory)
        total, available = memory["total"], memory["available"]
    if limit is not None and (total is None or limit < total):
        memory["limit"], memory["limited_by"] = limit, place
        if room is not None and available is not None:
            memory["available"] = min(available, room)
    if "," in nodes or "-" in nodes:
        numa.limit(machine, memory)
    return memory


_WANTED = ("MemTotal:", "MemAvailable:")


def _meminfo(machine: Machine) -> dict[str, int]:
    sizes = {}
    for line in (machine.read("/proc/meminfo", 16 << 10) or "").splitlines():
        if line.startswith(_WANTED):  # of sixty: reading all of them doubles the time
            name, _, value = line.partition(":")
            number, *_ = [*value.split(), ""]
            size = decimal(number)
            if size is not None:
                sizes[name] = size * 1024  # the kernel writes "kB" and means KiB
    return sizes


def _from_psutil(machine: Machine) -> NodeMemoryDoc:
    unknown: NodeMemoryDoc = {"total": None, "available": None, "limit": None}
    if not machine.live:
        return unknown
    try:
        import psutil

        memory = psutil.virtual_memory()
    except Exception:  # psutil raised on macOS 26 and 27 betas; a node must start all the same
        from probe_core.probers.cpu_other import sysctl_int

        unknown["total"] = sysctl_int("hw.memsize") if machine.os == "darwin" else None
        return unknown
    return {"total": memory.total, "available": memory.available, "limit": None}
