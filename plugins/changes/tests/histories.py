"""Scripted histories of a computer: what happened to it, when, and which change is the cause."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import boot_cases as boots
import readiness_nodes as nodes
from boot_machines import NEXT, NOW, SECURE_BOOT, Change, Computer
from readiness_nodes import DEVICE, LIBRARIES, PCI, VERSION

import probe_core
from probe_changes.store import Store
from probe_core.doctor.check import Request

DAY = 86_400
START = 1_760_000_000.0


class Recorder:
    """Notes the states of a computer in a journal, as its timer does."""

    def __init__(self, root: Path, computer: Computer) -> None:
        self.store = Store(str(root / "state/journal.jsonl"))
        self.computer = computer
        self.now = START
        self.up = 1000
        self.boots = 0

    def note(self, seconds: float = DAY) -> Any:
        """Let time pass, and note what changed."""
        self.now += seconds
        self.up += int(seconds)
        self.computer.file("/proc/uptime", f"{self.up}.00 1.00\n")
        self.computer.file("/proc/sys/kernel/random/boot_id", f"0000-{self.boots}\n")
        return self.store.append(self.request(), lambda: self.now)

    def request(self) -> Request:
        machine = self.computer.machine()
        # Not held to the schema: that takes longer than the probe, and other tests do.
        report: Any = probe_core.probe(machine=machine, only="cpu").to_json()
        return Request(machine, report)

    def boot(self) -> None:
        """Begin another boot."""
        self.boots, self.up = self.boots + 1, 60


class History:
    """Days of a computer: each is a change of it, and the cause is the fact that comes first."""

    def __init__(
        self, cause: str, *days: Change, make: Callable[[Path], Computer] = Computer
    ) -> None:
        self.cause = cause
        self.days = days
        self.make = make

    def play(self, root: Path) -> Recorder:
        """Return the recorder behind the last day."""
        computer = self.make(root / "tree")
        recorder = Recorder(root, computer)
        recorder.note()
        for day in self.days:
            day(computer)
            if getattr(day, "boots", False):
                recorder.boot()
            recorder.note()
        return recorder


def quiet(computer: Computer) -> None:
    """A day on which nothing happens."""


def booted(*arguments: Any, **more: Any) -> Change:
    def change(computer: Computer) -> None:
        computer.booted(*arguments, **more)

    change.boots = True  # type: ignore[attr-defined]  # read by History.play
    return change


def variable(name: str, value: str) -> Change:
    return lambda computer: computer.environ.update({name: value})


def without(name: str) -> Change:
    def change(computer: Computer) -> None:
        computer.environ.pop(name)

    return change


def bios(version: str) -> Change:
    return boots.file("/sys/class/dmi/id/bios_version", f"{version}\n")


def refused(*paths: str) -> Change:
    """The nodes get another mode, and access to them ends with EACCES."""

    def change(computer: Computer) -> None:
        for path in paths:
            (computer.tree.root / path.lstrip("/")).chmod(0o600)
            computer.access[path] = "EACCES"

    return change


def off_the_bus(computer: Computer) -> None:
    link = computer.tree.root / f"sys/bus/pci/devices/{PCI}"
    link.unlink()


def libraries(version: str) -> Change:
    return lambda computer: computer.libraries(version)


def without_libraries(computer: Computer) -> None:
    for path in (computer.tree.root / LIBRARIES.lstrip("/")).glob("lib*"):
        path.unlink()
    computer.file(f"{LIBRARIES}/libc.so.6", b"\x7fELF\x02")


def without_module(computer: Computer) -> None:
    computer.without_nvidia(NEXT)


def secure(computer: Computer) -> None:
    computer.file(SECURE_BOOT, b"\x06\0\0\0\x01")


def version(text: str, kind: str = "") -> Change:
    return booted(NEXT, driver=None, version=text, kind=kind)


NODES = nodes.NVIDIA_NODES
UNLOADED = booted(NOW, driver=None, modules=("snd",))
OTHER_KERNEL = booted(NEXT, driver=None, modules=("snd",))
WORKS = booted(NEXT, driver="nvidia", version=VERSION)

HISTORIES: dict[str, History] = {
    "a kernel without the module": History("kernel/release", without_module, quiet, OTHER_KERNEL),
    "the same, and the BIOS the day before": History(
        "kernel/release", without_module, bios("2.1"), OTHER_KERNEL
    ),
    "a kernel, and a variable that nobody minds": History(
        "kernel/release", variable("CUDA_DEVICE_ORDER", "PCI_BUS_ID"), without_module, OTHER_KERNEL
    ),
    "a line that forbids the module, and the boot days after": History(
        "setting/nvidia forbidden",
        boots.file("/etc/modprobe.d/off.conf", "blacklist nvidia\n"), quiet, bios("3"), UNLOADED,
    ),
    "a parameter of the kernel": History(
        "setting/module_blacklist",
        booted(NOW, driver=None, modules=("snd",), options="module_blacklist=nvidia"),
    ),
    "Secure Boot was turned on": History("firmware/Secure Boot", secure, UNLOADED),
    "Secure Boot, and a kernel that has worked before": History(
        "firmware/Secure Boot", WORKS, booted(NOW, driver="nvidia", version=VERSION), secure,
        booted(NEXT, driver=None, modules=("snd",)),
    ),
    "the libraries alone were updated": History(
        "library/libcuda.so.1", quiet, libraries("580.105.08")
    ),
    "the module alone is another": History(
        "driver/nvidia", booted(NOW, driver="nvidia", version="570.144")
    ),
    "a branch that dropped the GPU": History(
        "driver/nvidia", libraries("590.44.01"), version("590.44.01"), make=boots.pascal
    ),
    "the same with a kernel on the same day": History(
        "driver/nvidia", boots.then(libraries("590.44.01"), bios("7")), version("590.44.01"),
        make=boots.pascal,
    ),
    "the open module on Pascal": History(
        "driver/nvidia", version(VERSION, "open"), make=boots.pascal
    ),
    "the libraries are gone": History("library/libcuda.so.1", bios("9"), without_libraries),
    "the nodes have another mode": History("node/dev/nvidia-uvm", refused(*NODES)),
    "one node has another mode, and a library came": History(
        "node/dev/nvidia-uvm",
        boots.file(f"{LIBRARIES}/libze_intel_gpu.so.1", b"\x7fELF\x02"), refused(NODES[2]),
    ),
    "the GPU left the bus": History(f"device/{DEVICE}", bios("4"), off_the_bus),
    "it left after a new BIOS on the same day": History(
        f"device/{DEVICE}", boots.then(bios("5"), off_the_bus)
    ),
    "vfio took it, by a parameter": History(
        "setting/vfio-pci.ids",
        booted(NOW, driver="vfio-pci", modules=("vfio_pci",), options="vfio-pci.ids=10de:2684"),
    ),
    "nouveau took it, with a new kernel": History(
        "kernel/release", without_module, bios("6"),
        booted(NEXT, driver="nouveau", modules=("nouveau",)),
    ),
    "a variable came and went, then the kernel": History(
        "kernel/release", variable("CUDA_VISIBLE_DEVICES", "0"), without("CUDA_VISIBLE_DEVICES"),
        without_module, OTHER_KERNEL,
    ),
    "it was broken and mended before, by the libraries": History(
        "kernel/release", libraries("580.105.08"), libraries(VERSION), quiet, without_module,
        OTHER_KERNEL,
    ),
    "firmware of the open module": History(
        "firmware/nvidia",
        boots.then(boots.removed(f"/lib/firmware/nvidia/{VERSION}/gsp_ga10x.bin"),
                   lambda c: (c.tree.root / f"lib/firmware/nvidia/{VERSION}").rmdir(),
                   boots.file("/lib/firmware/nvidia/570.1/gsp_ga10x.bin", "")),
        make=boots.turing_open,
    ),
}  # fmt: skip


def facts(documents: Sequence[Any]) -> list[str]:
    return [entry["fact"] for entry in documents]
