"""What a process with a foreign library is kept from doing, and what it needs."""

from __future__ import annotations

import os
from typing import Any

import pytest

from probe_core.guard import refusal


@pytest.mark.parametrize(
    ("event", "arguments", "reason"),
    [
        ("open", ("/sys/bus/pci/devices/0000:01:00.0/driver/unbind", None, os.O_WRONLY),
         "write to /sys/bus/pci/devices/0000:01:00.0/driver/unbind"),
        ("open", ("/dev/vfio/vfio", None, os.O_RDWR), "open /dev/vfio/vfio"),
        ("open", ("/dev/mem", None, os.O_RDONLY), "open /dev/mem"),
        ("open", ("/sys/class/kfd/kfd/topology", "r", os.O_RDONLY), None),
        ("open", ("/dev/nvidiactl", None, os.O_RDWR), None),
        ("open", (5, "w", None), None),
        ("subprocess.Popen", ("/usr/bin/sudo", ["sudo", "sh"], None, None), "start sudo"),
        ("subprocess.Popen", ("clang", ["clang"], None, None), None),
        ("os.system", (b"id",), "run 'id' in a shell"),
        ("socket.connect", (None, ("192.0.2.1", 80)), "use the network"),
        ("socket.connect", (None, "/run/nvidia-persistenced/socket"), None),
        ("ctypes.dlopen", ("libusb-1.0.so.0",), "open USB devices"),
        ("ctypes.dlopen", (None,), None),
        ("import", ("os",), None),
        ("open", (b"/dev/mem", None, os.O_RDONLY), "open /dev/mem"),
        ("open", (b"/sys/x", None, os.O_RDWR), "write to /sys/x"),
        ("os.posix_spawn", ("/usr/bin/modprobe", ["modprobe", "vfio"], None), "start modprobe"),
        ("os.exec", (b"/usr/bin/sudo", [b"sudo"], None), "start sudo"),
        ("os.spawn", (0, "/usr/bin/curl", ["curl"], None), "start curl"),
        ("subprocess.Popen", ("/usr/bin/env", ["env", "-i", "sudo"], None, None), "start sudo"),
        ("subprocess.Popen", ("sh", ["sh", "-c", "sudo id"], None, None), "start sudo"),
        ("subprocess.Popen", ("sh", ["sh", "-c", "id", "sudo"], None, None), None),
        ("subprocess.Popen", ("sudo id", "sudo id", None, None), "start sudo"),
        ("subprocess.Popen", (None, "doas id", None, None), "start doas"),
        ("os.exec", ("sudo",), "start sudo"),
    ],
    ids=range(25),
)  # fmt: skip
def test_what_nothing_needs_is_refused(
    event: str, arguments: tuple[object, ...], reason: str | None
) -> None:
    assert refusal(event, arguments) == reason


@pytest.mark.parametrize(
    ("event", "arguments"),
    [
        ("open", ("/sys/class/drm", None, os.O_RDONLY)),
        ("open", ("/proc/self/maps", "r", os.O_RDONLY | os.O_CLOEXEC)),
        ("open", ("/dev/kfd", None, os.O_RDWR)),
        ("open", (b"/scratch/x", "w", os.O_WRONLY | os.O_CREAT)),
        ("open", (7, "r", None)),
        ("subprocess.Popen", ("clang", ["clang", "-shared"], None, None)),
        ("subprocess.Popen", ("/sbin/ldconfig", ["/sbin/ldconfig", "-p"], None, None)),
        ("ctypes.dlopen", ("libcuda.so.1",)),
        ("ctypes.dlopen", (None,)),
        ("socket.connect", (None, "/run/nvidia.sock")),
        ("import", ("json", None, None, None, None)),
    ],
)
def test_what_a_library_needs_is_allowed(event: str, arguments: tuple[Any, ...]) -> None:
    assert refusal(event, arguments) is None
