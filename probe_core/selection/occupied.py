"""Devices that processes outside any lease use, and which processes these are."""

from __future__ import annotations

import os

from probe_core.model.ids import pci_fact
from probe_core.proc import openers, program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from probe_core.model.document import DeviceDoc

_LEAST, _SHARE = 1 << 30, 0.05
"""Memory in use up to which a device counts as empty, in bytes and as a share of it. A CUDA context
takes 300 to 500 MiB, a desktop with a browser less than 1 GiB (judgements); the share covers what
the driver reserves on large cards."""

_WITHOUT_DISPLAY = "0302"
"""PCI class of GPUs that drive no display ("3D controller"): NVIDIA's data centre GPUs."""


def is_used(device: DeviceDoc) -> bool:
    """Return whether more is in use than of an idle device, or processes compute on it.

    A count of processes is enough of a GPU of NVIDIA's that drives no display: on an H100 a job
    that kept it busy held 874 MiB, less than what a large card's driver may reserve. Elsewhere the
    programs of a desktop count, too, and ROCm's processes on GPUs that they do not use.
    """
    memory = device["memory"]
    total, free = memory["total"], memory["free"]
    # Shared memory is the system's: who uses it says nothing of the device.
    if memory["kind"] in ("unified", "shared"):
        return False
    base = pci_fact(device, "class") or ""
    has_display = device["vendor"] != "nvidia" or not base.startswith(_WITHOUT_DISPLAY)
    if device.get("processes") and not has_display:
        return True
    if total is None or free is None:
        return False
    return total - free > max(_LEAST, int(_SHARE * total))


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
    nodes = _nodes(device, root)
    # As far as this user may look.
    found = [(pid, _name(root, pid)) for pid in openers(nodes, root)] if nodes else []
    named = [f"{name} ({pid})" for pid, name in found if name not in _IGNORED]
    if not named:
        # Others may not be seen from here (another container), but these are counted as well.
        others = (count or 0) - sum(name in _COUNTED for _, name in found)
        return f"{others} process{'es' * (others != 1)}" if others > 0 else ""
    shown = ", ".join(named[:_SHOWN])
    unlisted = max(count or 0, len(named)) - min(len(named), _SHOWN)
    return f"{shown} and {unlisted} more" if unlisted else shown


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


def _name(root: str, pid: int) -> str:
    text = program(pid, root) or "?"
    return "".join(char if char.isprintable() else "?" for char in text)
