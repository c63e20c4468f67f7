"""What does `probe doctor --json` cost beside `probe --json`, with a GPU and without?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from measure import Figure, costs
from place import Place

TARGET = 2.0
"""Times `probe --json`: the question is asked by hand, and answered within a blink."""


def run(place: Place) -> Iterator[Figure]:
    """Compare both commands, interleaved."""
    for name, arguments in (
        ("this machine", ()),
        ("a GPU", ("--machine", str(_machine(place.folder / "doctor", 1)))),
        ("8 GPUs", ("--machine", str(_machine(place.folder / "doctor-8", 8)))),
    ):
        base = [place.python, "-m", "probe_core"]
        commands = {
            "probe": [*base, "--json", *arguments],
            "doctor": [*base, "doctor", "--json", *arguments],
        }
        taken = costs(commands, place.rounds(20), place.environ)
        ratio = taken["doctor"].wall / taken["probe"].wall
        note = f"{taken['doctor'].wall * 1000:.1f} ms against {taken['probe'].wall * 1000:.1f} ms"
        yield Figure(f"probe doctor, {name}", ratio, "× probe --json", TARGET, note)


def _machine(root: Path, count: int) -> Path:
    """Write a healthy computer with GPUs of NVIDIA."""
    version = "580.95.05"
    files = {
        "proc/modules": "nvidia 1 0\nnvidia_uvm 1 0\n",
        "proc/driver/nvidia/version": f"NVRM version: NVIDIA UNIX x86_64  {version}  x\n",
        "proc/sys/kernel/osrelease": "6.8.0-60-generic",
        "proc/meminfo": "MemTotal: 65536000 kB\nMemAvailable: 60000000 kB\n",
        "proc/cpuinfo": "processor\t: 0\nmodel name\t: AMD Ryzen 9 7950X\n",
        "etc/os-release": "ID=ubuntu\n",
    }
    nodes = ["/dev/nvidiactl", "/dev/nvidia-uvm"]
    for number in range(count):
        address = f"0000:{number + 1:02x}:00.0"
        nodes.append(f"/dev/nvidia{number}")
        files |= {
            f"sys/bus/pci/devices/{address}/vendor": "0x10de",
            f"sys/bus/pci/devices/{address}/device": "0x2684",
            f"sys/bus/pci/devices/{address}/class": "0x030000",
            f"sys/bus/pci/devices/{address}/power/runtime_status": "active",
            f"proc/driver/nvidia/gpus/{address}/information": f"Device Minor: {number}\n",
        }
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (root / "sys/bus/pci/drivers/nvidia").mkdir(parents=True, exist_ok=True)
    for device in (root / "sys/bus/pci/devices").iterdir():
        (device / "driver").symlink_to("../../drivers/nvidia")
    about = {"os": "linux", "arch": "x86_64", "access": dict.fromkeys(nodes, "ok")}
    (root / "machine.json").write_text(json.dumps(about))
    return root
