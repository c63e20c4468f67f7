"""Collects what a Mac reports of itself, once, for the descriptions of its devices."""

from __future__ import annotations

from probe_apple import commands, ioreg
from probe_apple.profiler import Profile, first_text, size
from probe_apple.sysctl import Sysctl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from probe_core.api import Machine
    from probe_core.sysfs.sighting import Draft

ACCELERATORS, PCI = "ioreg-IOAccelerator.plist", "ioreg-IOPCIDevice.plist"
NEURAL, POWER = "ioreg-H11ANEIn.plist", "ioreg-pmgr.plist"
PROFILER = "system_profiler.json"
"""The outputs that are asked for; see `commands.COMMANDS`."""


class Scene:
    """A Mac's own words: sysctls, entries of the I/O registry, system_profiler's tables."""

    __slots__ = ("accelerators", "failed", "neural", "pci", "power", "profile", "silicon", "sysctl")

    def __init__(self, machine: Machine, seconds: float) -> None:
        self.sysctl = Sysctl(machine)
        self.silicon = self._is_silicon(machine)
        own = (NEURAL, POWER) if self.silicon else (PCI,)
        # The slow one last: those before it are read while it works.
        answers = commands.ask(machine, (ACCELERATORS, *own, PROFILER), seconds)
        self.failed = answers.failed
        self.accelerators = ioreg.entries(answers.output.get(ACCELERATORS))
        self.pci = ioreg.entries(answers.output.get(PCI))
        self.neural = ioreg.entries(answers.output.get(NEURAL))
        self.power = ioreg.entries(answers.output.get(POWER))
        self.profile = Profile(answers.output.get(PROFILER))

    def _is_silicon(self, machine: Machine) -> bool:
        """Return whether it is Apple silicon; under Rosetta the process itself says x86_64."""
        return machine.arch == "aarch64" or self.sysctl.number("hw.optional.arm64") == 1

    @property
    def chip(self) -> str | None:
        """The processor's name: "Apple M3 Max", "Apple M1 (Virtual)", "Intel(R) Core(TM) …"."""
        brand = self.sysctl.text("machdep.cpu.brand_string")
        return brand or first_text(self.profile.hardware, "chip_type")

    @property
    def memory(self) -> int | None:
        """Bytes of memory in all; system_profiler's "128 GB" where there is no hw.memsize."""
        exact = self.sysctl.number("hw.memsize")
        return exact or size(first_text(self.profile.hardware, "physical_memory"))

    def reason(self, otherwise: str, *outputs: str) -> str:
        """Return why something is missing: those of `outputs` that failed, or `otherwise`."""
        failures = dict.fromkeys(self.failed[name] for name in outputs if name in self.failed)
        return "; ".join(failures) or otherwise


def put_memory(draft: Draft, scene: Scene) -> None:
    """Say that a device uses the Mac's memory."""
    draft.put("memory.kind", "unified")
    total = scene.memory
    draft.put("memory.total", total, "neither hw.memsize nor system_profiler gives it")
    draft.put("memory.parts.system", total)


def put_driver(draft: Draft, scene: Scene, entry: Mapping[str, Any]) -> None:
    """Say which kernel extension drives a device, and the version of macOS, whose part it is."""
    driver = {
        "name": ioreg.text(entry.get("CFBundleIdentifier")),
        "class": ioreg.text(entry.get("IOClass")),
        "macos": scene.sysctl.text("kern.osproductversion"),
    }
    draft.put("driver", {key: value for key, value in driver.items() if value})
