"""Devices that processes outside any lease use, and which processes these are."""

from __future__ import annotations

import os

from probe_core.leasing.memory import is_used
from probe_core.leasing.processes import processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from probe_core.model.document import DeviceDoc

__all__ = ["occupancy"]

_COUNTED = frozenset(
    (
        "Xorg Xwayland gnome-shell mutter mutter-x11-fram kwin_x11 kwin_wayland kwin_wayland_wr"
        " plasmashell sway weston Hyprland cosmic-comp labwc wayfire river niri cinnamon muffin"
        " marco xfwm4 picom gamescope gamescope-wl sddm sddm-greeter gdm-wayland-ses"
        " gdm-x-session lightdm nvidia-cuda-mps"
    ).split()
)
"""Names (as /proc/PID/comm has them, 15 characters) of compositors, display managers and MPS, whose
server stays when its last client ends. NVML may count them, and they are no job's."""

_IGNORED = _COUNTED | frozenset(
    "nvidia-persiste nvidia-powerd nv-hostengine nvidia-smi nvtop".split()
)
"""The same and vendors' daemons and monitors, which open a device and compute nothing."""

_SHOWN = 4
"""Processes that a sentence names; their number is told besides."""


def occupancy(devices: Iterable[DeviceDoc], root: str = "") -> dict[str, str]:
    """Return the devices that processes outside any lease occupy, each with what is known of them.

    A device's own count of compute processes decides; where its driver gives none, the processes
    that have its device node open. A report alone never blocks a device: where no process is
    known, none is invented. `root` stands for / in tests.
    """
    return {
        device["id"]: f"{_used(device)}in use outside any lease, by {holders}"
        for device in devices
        if is_used(device) and (holders := _holders(device, root))
    }


def _used(device: DeviceDoc) -> str:
    """Return the memory in use, and a blank; "" where the driver does not tell it."""
    from probe_core.sizes import format_size

    memory = device["memory"]
    total, free, used = memory["total"], memory["free"], memory.get("used")
    if used is None and total is not None and free is not None:
        used = total - free
    return "" if used is None else f"{format_size(used)} "


def _holders(device: DeviceDoc, root: str) -> str:
    """Return who occupies the device, for a sentence; "" for nobody."""
    count = device.get("processes")
    if count == 0:
        return ""
    openers = _openers(device, root)
    named = [f"{name} ({pid})" for pid, name in openers if name not in _IGNORED]
    if not named:
        # Others may not be seen from here (another container), but these are counted as well.
        others = (count or 0) - sum(name in _COUNTED for _, name in openers)
        return f"{others} process{'es' * (others != 1)}" if others > 0 else ""
    shown = ", ".join(named[:_SHOWN])
    unlisted = max(count or 0, len(named)) - min(len(named), _SHOWN)
    return f"{shown} and {unlisted} more" if unlisted else shown


def _openers(device: DeviceDoc, root: str) -> list[tuple[int, str]]:
    """Return the processes with one of the device's nodes open, as far as this user may look."""
    nodes = _nodes(device, root)
    if not nodes:
        return []
    return [
        (pid, _name(root, pid))
        for pid in processes(root)
        if nodes.intersection(_open_files(root, pid))
    ]


def _nodes(device: DeviceDoc, root: str) -> frozenset[str]:
    """Return the paths of the nodes by which programs use a PCI device."""
    addresses = [name[4:] for name in device["ids"] if name.startswith("pci:")]
    nodes: list[str] = []
    for address in addresses:
        folder = f"{root}/sys/bus/pci/devices/{address}/drm"
        nodes += [f"/dev/dri/{name}" for name in _names(folder) if name[:1] in "cr"]
        minor = _minor(f"{root}/proc/driver/nvidia/gpus/{address}/information")
        nodes += [f"/dev/nvidia{minor}"] if minor else []
    return frozenset(nodes)


def _minor(path: str) -> str:
    """Return the number N of /dev/nvidiaN, which is not the index that tools print."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            lines = file.read(4096).splitlines()
    except OSError:
        return ""
    values = [line.partition(":")[2].strip() for line in lines if line.startswith("Device Minor")]
    return values[0] if values and values[0].isdecimal() else ""


def _names(folder: str) -> Sequence[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return ()


def _open_files(root: str, pid: int) -> list[str]:
    files = []
    for number in _names(f"{root}/proc/{pid}/fd"):
        try:
            files.append(os.readlink(f"{root}/proc/{pid}/fd/{number}"))
        except OSError:  # just closed
            continue
    return files


def _name(root: str, pid: int) -> str:
    try:
        with open(f"{root}/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            text = file.read(64).strip()
    except OSError:
        return "?"
    return "".join(char if char.isprintable() else "?" for char in text)
