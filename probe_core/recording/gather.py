"""Records a machine: the files that probers declare, read through a `Machine`, waking nothing."""

from __future__ import annotations

from probe_core.machine.surroundings import SIGNS
from probe_core.machine.surroundings import VARIABLES as SURROUNDINGS
from probe_core.model.runtimes import RUNTIMES
from probe_core.readiness import Scene
from probe_core.recording.account import account_files, account_variables
from probe_core.recording.anonymise import Anonymiser
from probe_core.recording.cgroups import cgroups
from probe_core.recording.devices import Devices
from probe_core.recording.disguise import disguised
from probe_core.recording.kernel import kernel_files, refused_files
from probe_core.recording.loader import Loader
from probe_core.recording.patterns import Expansion
from probe_core.recording.process import (
    STATUS_PATH,
    first_user,
    node_access,
    process_status,
    surroundings,
)
from probe_core.recording.recording import Recording
from probe_core.recording.taker import Taker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from probe_core.machine import Machine
    from probe_core.model.recorded import RecordedAnswer
    from probe_core.recording.declared import Declared, DeviceFiles
    from probe_core.recording.devices import Device

__all__ = ["VARIABLES", "Gathered", "gather"]

VARIABLES = sorted({name for runtime in RUNTIMES.values() for name in runtime.variables})
"""What of the environment is recorded: the variables that decide which devices a program sees.

Of `surroundings.VARIABLES` it is recorded that they are set; their values are ids and addresses.
"""


class Gathered:
    """A recording, and what had to be left out of it.

    `asleep` are sleeping devices by their names on the bus, `unreadable` paths, `over` the number
    of files and patterns for which a recording has no room.
    """

    __slots__ = ("asleep", "over", "recording", "unreadable")

    def __init__(
        self, recording: Recording, asleep: list[str], unreadable: list[str], over: int
    ) -> None:
        self.recording = recording
        self.asleep = asleep
        self.unreadable = unreadable
        self.over = over


def gather(
    machine: Machine,
    origin: str,
    declarations: Sequence[Declared],
    anonymiser: Anonymiser | None = None,
    answers: Mapping[str, RecordedAnswer] | None = None,
) -> Gathered:
    """Return the recording of a Linux machine; `origin` is one sentence that says whose it is.

    Only what is declared is read, and nothing that wakes a sleeping device. `answers` are what
    probers answered that ask more than files. Identities are masked in both.
    """
    anonymiser = anonymiser or Anonymiser()
    reader = _Reader(machine, Taker(machine, anonymiser))
    for declared in declarations:
        reader.declare(declared)
    taker = reader.taker
    # After all declarations: a mask counts whichever of them names the file first.
    taker.take_declared()
    nodes = [path for declared in declarations for path in reader.matches(declared.nodes)]
    for path in nodes:
        taker.mark(path)
    for path in filter(machine.exists, SIGNS):
        taker.put(path, b"")
    for path, text in surroundings(machine).items():
        taker.put(path, text.encode())
    judged = _judged(machine, taker)
    names = dict.fromkeys(name for declared in declarations for name in declared.cgroup)
    for path, text in cgroups(machine, list(names)).items():
        taker.put(path, text.encode())
    about = {
        "os": machine.os,
        "arch": machine.arch,
        "environ": _environ(machine, anonymiser) | judged,
        "origin": origin,
        "access": node_access(machine, nodes, declarations),
        "answers": disguised(answers or {}, anonymiser, machine.environ.get("HOME")),
    }
    recording = Recording(taker.files, taker.links, about)
    return Gathered(recording, reader.asleep(), taker.unreadable, taker.over + reader.cut)


def _judged(machine: Machine, taker: Taker) -> dict[str, str]:
    """Keep what readiness judges by, beside the files that probers declare; return variables."""
    if machine.os != "linux":
        return {}
    scene, uid = Scene(machine), None
    if status := process_status(machine):
        taker.put(STATUS_PATH, status.encode())
        uid = first_user(status)
    loader = Loader(machine, scene)
    files = kernel_files(machine, scene) | loader.files | account_files(machine, scene, uid)
    for path, content in files.items():
        if path not in taker.files and path not in taker.links:
            taker.put(path, content)
    for path, content in refused_files(machine, dict(taker.files)):
        taker.put(taker.real(path), content)
    taker.links |= {path: name for path, name in loader.links.items() if path not in taker.files}
    return loader.environ | account_variables(machine)


class _Reader:
    """Finds what declarations name on a machine, and leaves out what would wake a device."""

    def __init__(self, machine: Machine, taker: Taker) -> None:
        self.taker = taker
        self._machine = machine
        self._expansion = Expansion(machine)
        self._devices = Devices(machine)
        self._skipped: set[str] = set()

    def asleep(self) -> list[str]:
        """Return the sleeping devices of which files were left out."""
        devices = (*self._devices.pci, *self._devices.platform)
        return [device.name for device in devices if device.name in self._skipped]

    @property
    def cut(self) -> int:
        """The number of patterns that named too many paths."""
        return self._expansion.cut

    def matches(self, patterns: Iterable[str]) -> list[str]:
        """Return the paths that absolute patterns name."""
        return [path for pattern in patterns for path in self._expansion.paths(pattern)]

    def declare(self, declared: Declared) -> None:
        """Note the files that one prober reads."""
        for pattern, mask in declared.files.items():
            for path in self._expansion.paths(pattern):
                self._declare_unless_asleep(path, mask)
        for devices, rules in (
            (self._devices.pci, declared.pci),
            (self._devices.platform, declared.platform),
        ):
            for rule in rules:
                for device in devices:
                    if device.fits(rule):
                        self._declare_below(device, rule)

    def _declare_unless_asleep(self, path: str, mask: str) -> None:
        device = self._sleeper(path)
        if device is None:
            self.taker.declare(path, mask)
        else:
            self._skipped.add(device.name)

    def _sleeper(self, path: str) -> Device | None:
        """Return the device that reading the file at `path` could wake."""
        device = self._devices.sleeper(self.taker.real(path))
        # Of a folder nothing but the link to it is kept, which wakes nobody.
        return None if device and self._machine.listdir(path) else device

    def _declare_below(self, device: Device, rule: DeviceFiles) -> None:
        if device.asleep and not rule.asleep:
            self._skipped.add(device.name)
        elif self._holds(device, rule):
            for pattern, mask in rule.files.items():
                for path in self._expansion.paths(pattern, device.folder):
                    if rule.asleep:
                        self.taker.declare(path, mask)
                    else:  # `physfn` leads to another device, which may sleep
                        self._declare_unless_asleep(path, mask)

    def _holds(self, device: Device, rule: DeviceFiles) -> bool:
        """Return whether one of the rule's files holds the text that it must hold."""
        return not rule.only_if or any(
            (self._machine.read(path, 64) or "").lower() == text
            for pattern, text in rule.only_if.items()
            for path in self._expansion.paths(pattern, device.folder)
            if rule.asleep or self._sleeper(path) is None
        )


def _environ(machine: Machine, anonymiser: Anonymiser) -> dict[str, str]:
    # VK_DRIVER_FILES may lead into the user's own folder, whose path holds his name.
    own_folder = machine.environ.get("HOME") or "\0"
    values = {name: machine.environ[name] for name in VARIABLES if name in machine.environ}
    values |= {
        name: _sign(name, machine.environ[name]) for name in SURROUNDINGS if name in machine.environ
    }
    return {
        # Bytes that are not UTF-8 come as lone surrogates, which no document can hold.
        name: anonymiser.uuids(value.replace(own_folder, "/home"))
        .encode("utf-8", "replace")
        .decode()
        for name, value in values.items()
    }


def _sign(name: str, value: str) -> str:
    """Return the kind of container that the variable `container` names; "1" of all others."""
    return value if name == "container" and value.isalnum() else "1"
