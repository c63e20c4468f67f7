"""Finds the render nodes that pyamdgpuinfo may be given without crashing this process.

The library passes on what libdrm could not open: `GPUInfo` of a plain file, of a node that it may
not open, of another driver's node or of a dead card reads through a null pointer and the process
ends with SIGSEGV (seen with 2.1.8). So each node is queried here first, with the very ioctls that
libdrm's amdgpu_device_initialize depends on.
"""

from __future__ import annotations

import os
import stat

from probe_core.sysfs import drivers, drm, power
from probe_core.sysfs.numbered import entries
from probe_core.sysfs.pci import DEVICES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_core.api import Machine

NODES = "/dev/dri"
DRM_MAJOR = 226  # Linux's allocated devices (admin-guide/devices.txt)
DRM_INTERFACE = 3
"""Major version of the amdgpu interface, the only one that libdrm_amdgpu takes."""

_IOCTL_VERSION = 0xC0406400  # DRM_IOCTL_VERSION: read and write, 64 bytes (drm.h)
_IOCTL_INFO = 0x40206445  # DRM_IOCTL_AMDGPU_INFO: write, 32 bytes (amdgpu_drm.h)
_ACCEL_WORKING = 0  # AMDGPU_INFO_ACCEL_WORKING (amdgpu_drm.h)


class Node:
    """A render node of a PCI device that amdgpu drives."""

    __slots__ = ("address", "minor", "path", "sysfs")

    def __init__(self, minor: int, address: str) -> None:
        self.minor = minor
        self.address = address
        self.path = f"{NODES}/renderD{minor}"
        self.sysfs = f"{DEVICES}/{address}"

    @property
    def id(self) -> str:
        """The strong id that all probers of this card share."""
        return f"pci:{self.address}"


def render_nodes(machine: Machine) -> Iterator[Node]:
    """Yield amdgpu's render nodes as /sys lists them.

    Partitions of an MI300 have nodes too, on platform devices; those are for `probe-amd`.
    """
    for minor, path in entries(machine, drm.CLASS, "renderD"):
        address = machine.realpath(f"{path}/device").rpartition("/")[2]
        if drivers.bound(machine, f"{path}/device") == "amdgpu" and address.count(":") == 2:
            yield Node(minor, address)


def refusal(machine: Machine, node: Node) -> str | None:
    """Return why the library must not be given `node`, or None when it may."""
    if power.asleep(power.status(machine, node.sysfs)):
        return "suspended (power/runtime_status): opening its node would wake it"
    if not machine.exists(f"/sys/dev/char/{DRM_MAJOR}:{node.minor}/device/drm"):
        return "/sys/dev/char is not there, and libdrm needs it"
    try:
        return _query(node)
    except OSError as error:
        return f"{node.path}: {error.strerror or error}"


def _query(node: Node) -> str | None:
    """Open the node and query what libdrm will query; raises OSError."""
    # Before the open: no other device that may stand in this place is opened.
    status = os.stat(node.path)
    if not stat.S_ISCHR(status.st_mode) or os.major(status.st_rdev) != DRM_MAJOR:
        return f"{node.path} is not a DRM device"
    handle = os.open(node.path, os.O_RDWR | os.O_CLOEXEC)
    try:
        version = _version(handle)
        if version != DRM_INTERFACE:
            return f"{node.path} speaks interface {version}, libdrm_amdgpu wants {DRM_INTERFACE}"
        if not _accelerates(handle):
            return f"{node.path}: the driver reports that it cannot compute"
        return None
    finally:
        os.close(handle)


def _version(handle: int) -> int:
    """Return the driver's major version; the lengths in the request are 0, so no text comes."""
    import fcntl

    answer = bytearray(64)
    fcntl.ioctl(handle, _IOCTL_VERSION, answer)
    return int.from_bytes(answer[:4], "little", signed=True)


def _accelerates(handle: int) -> bool:
    """Return the answer to AMDGPU_INFO_ACCEL_WORKING."""
    import fcntl
    from array import array

    answer = array("I", [0])
    place, length = answer.buffer_info()
    numbers = array("Q", [place, (_ACCEL_WORKING << 32) | length * answer.itemsize, 0, 0])
    fcntl.ioctl(handle, _IOCTL_INFO, numbers)
    return answer[0] != 0
