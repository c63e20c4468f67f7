"""Says whether a device sleeps, which is known before any file that could wake it is read.

Reading ``config``, hwmon files or PCIe link files of a runtime-suspended device resumes it:
``current_link_*`` and ``max_link_*`` since Linux 6.18 and its stable ports, 6.6.114 among them
("PCI/sysfs: Ensure devices are powered for config reads"). A laptop's GPU then needs two seconds to
come up and stays up for fifteen (btop#1831). ``power/runtime_status`` answers from memory.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.machine import Machine

__all__ = ["STATUSES", "TOLD", "asleep", "state", "status"]

STATUSES = ("active", "suspended", "suspending", "resuming", "unsupported", "error")
"""The kernel's words (rpm_status_show in drivers/base/power/sysfs.c)."""

TOLD = ("active", "suspended", "suspending", "resuming")
"""Those that a sighting tells; the others say nothing of whether it sleeps."""

# A resuming device is not up yet: a read waits for it, in the kernel, where no deadline reaches.
_ASLEEP = frozenset({"suspended", "suspending", "resuming"})

# "unsupported" is a device without runtime power management: it never sleeps (amdgpu_top#119).
_STATES = {
    "active": "active",
    "resuming": "active",
    "unsupported": "active",
    "suspended": "suspended",
    "suspending": "suspended",
}


def status(machine: Machine, folder: str) -> str | None:
    """Return the kernel's word for the device at `folder`, one of `STATUSES`; None without one."""
    text = machine.read(f"{folder}/power/runtime_status", 32)
    return text if text in STATUSES else None


def asleep(status: str | None) -> bool:
    """Return whether a device with this status must be left alone.

    An unknown status is no sleep: only a kernel with power management suspends, and it has the
    file.
    """
    return status in _ASLEEP


def state(status: str | None) -> str:
    """Return a sighting's ``power_state`` of a status: active, suspended or unknown."""
    return _STATES.get(status or "", "unknown")
