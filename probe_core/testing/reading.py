"""Holds what is read of a machine against what a recording has of it: nothing is to be missing.

What exists is held where `gather` takes it, or leaves it out for now: its device sleeps. What does
not exist on this machine is held where a declaration names it, for elsewhere it is there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from probe_core.machine import Machine
from probe_core.machine.surroundings import ROOT
from probe_core.probers.records import IN_PART
from probe_core.recording.declared import Declared, DeviceFiles, declared_by, own_declarations
from probe_core.recording.gather import PCI, PLATFORM, Device, Devices, gather
from probe_core.recording.paths import above, check_absolute
from probe_core.registry.prober import Prober
from probe_core.testing.case import Case, watch_case

JUDGED = ("/sys/", "/proc/", "/dev/", "/etc/", "/opt/", "/run/", "/usr/lib/", "/usr/share/")
"""Where the files of hardware and drivers lie; a tool in /usr/bin is run, and not recorded."""

_MAX_SHOWN = 10


def undeclared(prober: Prober, case: Case) -> list[str]:
    """Return a sentence for each path that the prober reads and no recording would hold."""
    _, noted = watch_case(prober, case)
    declared, _ = declared_by(prober)
    coverage = Coverage(case.machine, [*own_declarations(), declared])
    missing = [
        path for path in noted["read"] if path.startswith(JUDGED) and not coverage.holds(path)
    ]
    if declared.answers:  # the recording has its answer, which libraries and tools gave as well
        missing = [path for path in missing if _can_be_declared(path)]
    return [_sentence(prober, path, coverage) for path in missing[:_MAX_SHOWN]]


def _sentence(prober: Prober, path: str, coverage: Coverage) -> str:
    reads = f"prober {prober.name!r} reads {path}, which no recording has"
    place = f"`records` of {prober.name!r} in {_manifest(prober)}"
    return f"{reads}: add {_declaration(path, coverage)} to {place}"


def _manifest(prober: Prober) -> str:
    paths = [path for path in prober.files if path.endswith("prober.json")]
    return paths[0] if paths else "a prober.json beside its module"


def _declaration(path: str, coverage: Coverage) -> str:
    """Return what declares a path, as it is written in JSON."""
    if path.startswith("/dev/"):
        return f'"nodes": ["{path}"]'
    if path.startswith(f"{ROOT}/") and "." in path.rpartition("/")[2]:
        return f'"cgroup": ["{path.rpartition("/")[2]}"]'
    if found := coverage.device(path):
        bus, device, below = found
        if bus == PCI:
            return f'"pci": [{{"pci_vendor": ["{device.vendor}"], "files": ["{below}"]}}]'
        return f'"platform": [{{"files": ["{below}"]}}]'
    return f'"files": ["{path}"]' if _can_be_declared(path) else '"answers": true'


def _can_be_declared(path: str) -> bool:
    if ".so" in Path(path).name:  # a library is loaded, and too long to keep
        return False
    try:
        return bool(path.startswith("/dev/") or check_absolute(path))
    except ValueError:
        return False


# What a recording holds.


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
