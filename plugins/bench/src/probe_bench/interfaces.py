"""Keeps tinygrad to the kernel's drivers: its other interfaces take a PCI device from its driver.

Since 0.13 ``DEV`` holds targets, ``interface:indices+device:renderer``; before, each backend had a
variable for its interface, which later versions refuse (tinygrad/helpers.py, class Target).
"""

from __future__ import annotations

__all__ = ["KERNEL_INTERFACES", "bound", "variables"]

KERNEL_INTERFACES = {"NV": "NVK", "AMD": "KFD"}
"""Backend to its interface that goes through the kernel's driver."""

_TARGETS_SINCE = (0, 13)


def variables(version: str | None, dev: str) -> dict[str, str]:
    """Return what to set for a version of tinygrad; `dev` is the ``DEV`` that a lease asks for."""
    if _release(version) >= _TARGETS_SINCE:
        return {"DEV": bound(dev)}
    own = {f"{name}_IFACE": value for name, value in KERNEL_INTERFACES.items()}
    return {**own, "DEV": dev} if dev else own


def bound(dev: str) -> str:
    """Return a ``DEV`` whose NV and AMD go through the kernel's driver, indices kept."""
    targets = [target for target in dev.split(";") if target]
    parts = [_bound(name, targets) for name in KERNEL_INTERFACES]
    others = [target for target in targets if _device(target) not in ("", *KERNEL_INTERFACES)]
    return ";".join([*others, *parts])


def _bound(name: str, targets: list[str]) -> str:
    """Return the target of a backend: one without a device is meant for each."""
    own = next((target for target in targets if _device(target) in (name, "")), "")
    front, _, back = own.rpartition("+")
    indices = front.rpartition(":")[2] if ":" in front else ""
    suffix = back.partition(":")[2]
    shown = f"{KERNEL_INTERFACES[name]}:{indices}" if indices else KERNEL_INTERFACES[name]
    return f"{shown}+{name}:{suffix}" if suffix else f"{shown}+{name}"


def _device(target: str) -> str:
    return target.rpartition("+")[2].partition(":")[0].upper()


def _release(version: str | None) -> tuple[int, int]:
    """Return major and minor number; of an unknown version those of the newest."""
    parts = (version or "").split(".")[:2]
    if len(parts) < 2 or not all(part.isdecimal() for part in parts):
        return _TARGETS_SINCE
    return int(parts[0]), int(parts[1])
