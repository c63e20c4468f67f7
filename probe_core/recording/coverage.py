"""Which of the paths that were read a recording holds: what nobody declares is missing from it.

What exists is held where `gather` takes it, or leaves it out for now: its device sleeps. What does
not exist on this machine is held where a declaration names it, for elsewhere it is there.
"""

from __future__ import annotations

import re

from probe_core.machine.surroundings import ROOT
from probe_core.probers.records import IN_PART
from probe_core.recording.gather import PCI, PLATFORM, Devices, gather
from probe_core.recording.paths import above

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from probe_core.machine import Machine
    from probe_core.recording.declared import Declared, DeviceFiles
    from probe_core.recording.gather import Device


class Coverage:
    """What a recording of one machine holds, where these declarations are all there are."""

    def __init__(self, machine: Machine, declarations: Sequence[Declared]) -> None:
        self._machine = machine
        self._devices = Devices(machine)
        self._rules = {
            PCI: [rule for declared in declarations for rule in declared.pci],
            PLATFORM: [rule for declared in declarations for rule in declared.platform],
        }
        self._declared = _named(
            pattern for declared in declarations for pattern in (*declared.files, *declared.nodes)
        )
        self._cgroup = {name for declared in declarations for name in declared.cgroup}
        controllers = {name.partition(".")[0] for name in self._cgroup}
        self._controllers = {ROOT, *(f"{ROOT}/{controller}" for controller in controllers)}
        recording = gather(machine, "invented: what was read is held against it", declarations)
        taken = (*recording.recording.files, *recording.recording.links)
        self._taken = {*taken, *(folder for path in taken for folder in above(path))}

    def holds(self, path: str) -> bool:
        """Return whether a recording has this file or link, or what is declared of this folder."""
        # Of a link it is both: where the link itself lies, and what it leads to.
        places = {path, self._real(path), self._real_place(path)}
        if self._taken & places or any(map(self._is_declared, places)):
            return True
        if _IN_PART.fullmatch(path) is None:
            return False
        # Of a folder that is there, each file that is read is judged by itself.
        return not self._machine.exists(path) or bool(self._machine.listdir(path))

    def device(self, path: str) -> tuple[str, Device, str] | None:
        """Return the bus, the device in whose folder a path lies, and the path from there on."""
        real = self._real_place(path)
        found = [
            (bus, device, place[len(folder) + 1 :])
            for bus, devices in ((PCI, self._devices.pci), (PLATFORM, self._devices.platform))
            for device in devices
            for place, folder in ((path, device.folder), (real, device.real))
            if folder and place.startswith(f"{folder}/")
        ]
        # The innermost counts: a GPU's folder lies below those of its bridges.
        return min(found, key=lambda entry: len(entry[2]), default=None)

    def _real(self, path: str) -> str:
        return self._machine.realpath(path) or path

    def _real_place(self, path: str) -> str:
        folder, _, name = path.rpartition("/")
        return f"{self._real(folder)}/{name}" if folder else path

    def _is_declared(self, path: str) -> bool:
        if self._declared.fullmatch(path) or self._is_of_group(path):
            return True
        if found := self.device(path):
            bus, device, below = found
            return _is_named((rule for rule in self._rules[bus] if device.fits(rule)), below)
        return any(self._is_on_bus(bus, path) for bus in self._rules)

    def _is_of_group(self, path: str) -> bool:
        folder, _, name = path.rpartition("/")
        return path in self._controllers or (folder.startswith(ROOT) and name in self._cgroup)

    def _is_on_bus(self, bus: str, path: str) -> bool:
        """Return whether a path names the bus, or a declared file of a device that is not there."""
        if not path.startswith(f"{bus}/"):
            return f"{bus}/".startswith(f"{path}/")
        below = path.removeprefix(f"{bus}/").partition("/")[2]
        return not below or _is_named(self._rules[bus], below)


def _is_named(rules: Iterable[DeviceFiles], below: str) -> bool:
    return _named(pattern for rule in rules for pattern in rule.files).fullmatch(below) is not None


def _named(patterns: Iterable[str]) -> re.Pattern[str]:
    """Return what matches each path that a pattern names, and each folder above one."""
    forms = dict.fromkeys(map(_with_folders, patterns))
    return re.compile("|".join(forms) or "(?!)")


def _with_folders(pattern: str) -> str:
    first, *further = (
        re.escape(name).replace(r"\*", "[^/]*").replace(r"\#", "[0-9]+")
        for name in pattern.split("/")
    )
    return first + "".join(f"(?:/{name}" for name in further) + ")?" * len(further)


def _in_part(pattern: str) -> str:
    """Return what matches an entry; one that ends in a slash stands for all that is below it."""
    folder = pattern.rstrip("/")
    below = f"|{re.escape(folder)}/.*" if pattern.endswith("/") else ""
    return f"{_with_folders(folder)}{below}"


_IN_PART = re.compile("|".join(map(_in_part, IN_PART)))
