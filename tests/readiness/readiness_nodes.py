"""Machines with one GPU, healthy by default, that a test breaks at one place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reports import report_of

import probe_core
from probe_core.testing import Tree

PCI = "0000:01:00.0"
DEVICE = f"pci:{PCI}"
FOLDER = f"/sys/bus/pci/devices/{PCI}"
RELEASE = "6.8.0-60-generic"
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
NVIDIA_NODES = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm")
AMD_NODES = ("/dev/kfd", "/dev/dri/renderD128")
INTEL_NODES = ("/dev/dri/renderD128",)
VERSION = "580.95.05"
VERSION_TEXT = (
    f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {VERSION}  Tue Sep 23 10:11:16 UTC 2025\n"
    "GCC version:  gcc version 12.3.0\n"
)
OPEN_TEXT = VERSION_TEXT.replace("Kernel Module ", "Open Kernel Module for x86_64 ")


class Node:
    """A machine under construction: its tree, its environment, and what its nodes answer."""

    def __init__(self, root: Path) -> None:
        self.tree = Tree(root)
        self.tree.file("/sys/devices/system/node/online", "0")  # every Linux has files in /sys
        self.tree.release(RELEASE)
        self.environ: dict[str, str] = {}
        self.access: dict[str, str] = {}

    def file(self, path: str, content: object = "") -> None:
        self.tree.file(path, content)

    def remove(self, path: str) -> None:
        place = self.tree.root / path.lstrip("/")
        place.unlink() if place.is_symlink() or place.is_file() else place.rmdir()

    def nodes(self, *paths: str, answer: str = "ok") -> None:
        for path in paths:
            self.access[path] = answer
            if answer == "missing":
                (self.tree.root / path.lstrip("/")).unlink(missing_ok=True)
            else:
                self.file(path)

    def modules(self, *names: str) -> None:
        self.file("/proc/modules", "".join(f"{name} 16384 0 - Live 0x0\n" for name in names))

    def container(self, sign: str = "/.dockerenv") -> None:
        self.file(sign)

    def machine(self) -> probe_core.Machine:
        return probe_core.Machine(
            str(self.tree.root), self.environ, arch=self.tree.arch, access=self.access
        )

    def report(self, **arguments: Any) -> dict[str, Any]:
        return report_of(self.machine(), **arguments)

    def device(self, **arguments: Any) -> dict[str, Any]:
        devices: list[dict[str, Any]] = self.report(**arguments)["devices"]
        return next(device for device in devices if device["kind"] != "cpu")


def nvidia(
    root: Path, *, ids: str = "10de:2684", driver: str | None = "nvidia", **pci: Any
) -> Node:
    """Return a desktop with an RTX 4090 and everything that CUDA needs."""
    node = Node(root)
    node.tree.pci(PCI, ids, driver=driver, drm=(0, 128), **pci)
    node.file("/proc/driver/nvidia/version", VERSION_TEXT)
    node.file(
        f"/proc/driver/nvidia/gpus/{PCI}/information",
        "Model: \t\t NVIDIA GeForce RTX 4090\nDevice Minor: \t 0\nGPU Excluded:\t No\n",
    )
    node.nodes(*NVIDIA_NODES)
    node.modules("nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_drm")
    for name in ("libcuda.so", "libnvidia-ml.so"):
        node.file(f"{LIBRARIES}/{name}.{VERSION}", b"\x7fELF\x02\x01\x01")
        node.tree.link(f"{LIBRARIES}/{name}.1", f"{LIBRARIES}/{name}.{VERSION}")
    return node


def amd(root: Path, *, driver: str | None = "amdgpu", ids: str = "1002:744c", **pci: Any) -> Node:
    """Return a desktop with an RX 7900 XTX and everything that ROCm needs."""
    node = Node(root)
    node.tree.pci(PCI, ids, driver=driver, drm=(0, 128), **pci)
    node.nodes(*AMD_NODES)
    node.modules("amdgpu")
    kfd = "/sys/class/kfd/kfd/topology/nodes"
    node.file(f"{kfd}/0/properties", "cpu_cores_count 16\nlocation_id 0\ndomain 0\n")
    node.file(f"{kfd}/1/properties", "simd_count 192\nlocation_id 256\ndomain 0\n")
    node.file("/opt/rocm/lib/libhsa-runtime64.so.1", b"\x7fELF\x02")
    node.file(f"{LIBRARIES}/libc.so.6", b"\x7fELF\x02")
    return node


def card_and_processor(root: Path) -> Node:
    """Return a desktop with an RX 7900 XTX, a Ryzen's graphics, and an override for the card."""
    node = amd(root)
    node.tree.pci("0000:02:00.0", "1002:164e", driver="amdgpu", drm=(1, 129))
    node.nodes("/dev/dri/renderD129")
    text = "simd_count 4\nlocation_id 512\ndomain 0\n"
    node.file("/sys/class/kfd/kfd/topology/nodes/2/properties", text)
    node.environ["HSA_OVERRIDE_GFX_VERSION"] = "11.0.0"
    return node


def intel(root: Path, *, driver: str | None = "xe", ids: str = "8086:e20b", **pci: Any) -> Node:
    """Return a desktop with an Arc B580 and everything that Level Zero needs."""
    node = Node(root)
    node.tree.pci(PCI, ids, driver=driver, drm=(0, 128), **pci)
    node.nodes(*INTEL_NODES)
    node.modules("xe", "i915")
    node.file(f"{LIBRARIES}/libze_intel_gpu.so.1", b"\x7fELF\x02")
    return node


def verdict(device: dict[str, Any]) -> tuple[str, str | None, str | None]:
    """Return (state, broken step, its code)."""
    readiness = device["readiness"]
    step = next((s for s in readiness["steps"] if s["step"] == readiness["broken"]), None)
    return readiness["state"], readiness["broken"], step and step["code"]


def step_of(device: dict[str, Any], name: str) -> dict[str, Any]:
    return next(step for step in device["readiness"]["steps"] if step["step"] == name)
