"""Asks udev for Mali GPUs: the second source, where plain sysfs found none or a check is wanted.

Importing pyudev and loading libudev costs twenty milliseconds where reading sysfs costs none.
`pyudev.Context` needs ldconfig or gcc to find the library (pyudev#83), picks a folder instead of
it under conda (#496), and containers have a udev without properties (#225): any of that is a
reason, not an error.
"""

from __future__ import annotations

from probe_mali.find import DRIVERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def folders() -> tuple[list[str], str | None]:
    """Return (real /sys folders of Mali platform devices, why udev could not be asked)."""
    try:
        import pyudev  # type: ignore[import-untyped, import-not-found, unused-ignore]

        context = pyudev.Context()
    except Exception as error:  # ImportError, OSError, and whatever ctypes makes of a bad library
        return [], f"udev cannot be queried: {error}"
    try:
        return sorted(_listed(context)), None
    except (OSError, ValueError) as error:
        return [], f"udev failed: {error}"


def _listed(context: Any) -> set[str]:
    paths = set()
    for device in context.list_devices(subsystem="misc", sys_name="mali*"):
        if device.sys_number and device.parent is not None:
            paths.add(str(device.parent.sys_path))
    for device in context.list_devices(subsystem="platform"):
        if device.driver in DRIVERS:
            paths.add(str(device.sys_path))
    return paths
