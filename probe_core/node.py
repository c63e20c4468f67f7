"""The node itself: system, model, and how much memory this process may really use."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_core.machine import Machine

__all__ = ["describe", "memory"]

_HUGE = 1 << 60
"""Control groups write "no limit" as "max" (v2) or as a number beyond any machine (v1)."""

_MODEL_FILES = (
    "/sys/firmware/devicetree/base/model",
    "/proc/device-tree/model",
    "/sys/class/dmi/id/product_name",
)
# What board makers leave in DMI when they do not fill it in.
_PLACEHOLDERS = ("to be filled by o.e.m.", "system product name", "default string", "none", "")


def describe(machine: Machine) -> dict[str, Any]:
    """Return the report's `node`: os, kernel, arch, model and memory (bytes)."""
    return {
        "os": machine.os,
        "kernel": _kernel(machine),
        "arch": machine.arch,
        "model": _model(machine),
        "memory": memory(machine),
    }


def _kernel(machine: Machine) -> str | None:
    text = machine.read("/proc/sys/kernel/osrelease", 256) if machine.os == "linux" else None
    if text:
        return text
    import os

    return os.uname().release if machine.live and hasattr(os, "uname") else None


def _model(machine: Machine) -> str | None:
    if machine.os == "darwin" and machine.live:
        from probe_core.probers.cpu_other import sysctl

        return sysctl("hw.model")
    for path in _MODEL_FILES:
        text = machine.read(path, 256)
        if text and text.lower() not in _PLACEHOLDERS:
            return text
    return None


def memory(machine: Machine) -> dict[str, int | None]:
    """Return total, available and limit in bytes; None for what cannot be known.

    `total` is the machine's, `limit` the smallest limit of the control groups this process is in,
    `available` what can be taken now without swapping, within that limit. NUMA totals are not
    used: in virtual machines they can be far off.
    """
    if machine.os != "linux":
        return _from_psutil(machine)
    info = _meminfo(machine)
    total, available = info.get("MemTotal"), info.get("MemAvailable")
    limit, used = _cgroup(machine)
    if limit is not None and total is not None and limit >= total:
        limit = None
    if limit is not None and available is not None and used is not None:
        available = max(0, min(available, limit - used))
    return {"total": total, "available": available, "limit": limit}


def _meminfo(machine: Machine) -> dict[str, int]:
    found = {}
    for line in (machine.read("/proc/meminfo", 16 << 10) or "").splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if name in ("MemTotal", "MemAvailable") and words and words[0].isdecimal():
            found[name] = int(words[0]) * 1024
    return found


def _cgroup(machine: Machine) -> tuple[int | None, int | None]:
    """Return (smallest limit, bytes used under it) on the way from this process's group upward."""
    best: tuple[int | None, int | None] = (None, None)
    for line in (machine.read("/proc/self/cgroup", 16 << 10) or "").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            root, names = "/sys/fs/cgroup", ("memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            root = "/sys/fs/cgroup/memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
        else:
            continue
        for folder in _upward(root, path):
            limit = machine.read_int(f"{folder}/{names[0]}")
            if limit is not None and limit < _HUGE and (best[0] is None or limit < best[0]):
                best = (limit, machine.read_int(f"{folder}/{names[1]}"))
    return best


def _upward(root: str, path: str) -> list[str]:
    """Return the group's folder and its ancestors; in a container the path may not exist there."""
    parts = [part for part in path.split("/") if part not in ("", ".", "..")][:32]
    return [root + "".join("/" + part for part in parts[:n]) for n in range(len(parts), -1, -1)]


def _from_psutil(machine: Machine) -> dict[str, int | None]:
    nothing: dict[str, int | None] = {"total": None, "available": None, "limit": None}
    if not machine.live:
        return nothing
    try:
        import psutil

        found = psutil.virtual_memory()
    except Exception:  # psutil raised on macOS 26 and 27 betas; a node must start all the same
        from probe_core.probers.cpu_other import sysctl

        total = sysctl("hw.memsize") if machine.os == "darwin" else None
        return nothing | {"total": int(total) if total and total.isdecimal() else None}
    return {"total": found.total, "available": found.available, "limit": None}
