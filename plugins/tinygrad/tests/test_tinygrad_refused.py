"""What tinygrad attempts against `probe_core.guard` is its backend's error."""

from __future__ import annotations

from typing import Any

import pytest

UNBIND = "/sys/bus/pci/devices/0000:01:00.0/driver/unbind"


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("attempt", "reason"),
    [
        (f"import os; os.open({UNBIND!r}, os.O_WRONLY)", f"write to {UNBIND}"),
        (f"open({UNBIND!r}, 'w')", f"write to {UNBIND}"),
        ("import os; os.open('/proc/sys/vm/x', os.O_RDWR)", "write to /proc/sys/vm/x"),
        ("import os; os.open('/dev/vfio/vfio', os.O_RDWR)", "open /dev/vfio/vfio"),
        ("import os; os.system('modprobe vfio-pci')", "run 'modprobe vfio-pci' in a shell"),
        ("import subprocess; subprocess.run(['sudo', 'true'])", "start sudo"),
        ("import subprocess; subprocess.run('sudo true', shell=True)", "start sudo"),
        ("import os; os.posix_spawn('/sbin/modprobe', ['modprobe'], {})", "start modprobe"),
        ("import ctypes; ctypes.CDLL('libusb-1.0.so.0')", "open USB devices"),
        (
            "import socket; socket.create_connection(('127.0.0.1', 9), 0.1)",
            "use the network",
        ),
    ],
)
def test_an_attempt_is_the_backends_error(fake: Any, attempt: str, reason: str) -> None:
    fake.install("AMD", "CPU").write("open_AMD", attempt)
    answer = fake.probe({"ids": ["pci:0000:01:00.0"], "kind": "gpu", "vendor": "amd"})
    assert answer.finding("tinygrad-on-cpu")["why"] == f"AMD: Refused: a probe may not {reason}"
