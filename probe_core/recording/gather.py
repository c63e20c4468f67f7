"""Collects the files of a recording, each once, with the links on the ways to it."""

from __future__ import annotations

import posixpath
import re

from probe_core.machine.surroundings import SIGNS
from probe_core.machine.surroundings import VARIABLES as SURROUNDINGS
from probe_core.model.runtimes import RUNTIMES
from probe_core.readiness import Scene
from probe_core.readiness.scene import LIMITS
from probe_core.recording.anonymise import Anonymiser, disguised, masked
from probe_core.recording.document import Recording
from probe_core.recording.drivers import Loader, kernel_files, refused_files
from probe_core.recording.paths import (
    MAX_DEPTH,
    MAX_ENTRIES,
    MAX_TOTAL,
    BadRecording,
    Expansion,
    above,
    check_path,
    is_public,
)
from probe_core.recording.process import (
    STATUS_PATH,
    account_files,
    account_variables,
    address_space,
    cgroups,
    first_user,
    node_access,
    process_status,
    surroundings,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from probe_core.machine import Machine
    from probe_core.model.document import RecordedAnswer
    from probe_core.recording.declared import Declared, DeviceFiles


_RESERVE = 1024
"""Entries kept free for the links on the way to a file, for device nodes and for control groups."""


_IDENTITY = re.compile(r"/[a-z]+x[0-9a-f]{12,16}(?:/|\Z)")
"""A name that udev makes of a MAC or a GUID (enx0242ac110002): a serial number that no mask of
contents would reach, so what lies below it is left out."""


class Taker:
    """Notes the paths that are declared, then reads each file once, until a recording is full.

    Two probers may declare one file, by different names, and one of them a mask: so all
    declarations are noted before anything is read, by where the file really lies.
    """

    def __init__(self, machine: Machine, anonymiser: Anonymiser) -> None:
        self.files: dict[str, bytes] = {}
        self.links: dict[str, str] = {}
        self.unreadable: list[str] = []
        self.over = 0
        self._machine = machine
        self._anonymiser = anonymiser
        self._declared: dict[str, dict[str, None]] = {}
        self._masks: dict[str, dict[str, None]] = {}
        self._real: dict[str, str] = {}
        self._total = 0

    def real(self, path: str) -> str:
        """Return where a path really lies; "" when a link on its way leads out of the machine."""
        real = ""
        for name in path.split("/")[1:]:
            real = self._step(f"{real}/{name}")
            if not real:
                break
        return real

    def declare(self, path: str, mask: str = "") -> None:
        """Note that the file at `path` is to be read, and what is to be masked in it."""
        if _IDENTITY.search(path):
            return
        real = self.real(path)
        self._declared.setdefault(real, {})[path] = None
        if mask:
            self._masks.setdefault(real, {})[mask] = None

    def take_declared(self) -> None:
        """Read every file that was declared."""
        for real, paths in self._declared.items():
            if self._has_room(_RESERVE):
                self._take(real, list(paths))
            else:
                self.over += 1

    def mark(self, path: str) -> None:
        """Note that a device node exists, by an empty file; it is not opened."""
        real = self.real(path)
        if not is_public(real, ("/dev/",)):
            self.unreadable.append(path)
        elif self._has_room(MAX_DEPTH):
            self._keep_links(path)
            self.put(real, b"")
        else:
            self.over += 1

    def put_at(self, path: str, content: bytes) -> None:
        """Keep content where `path` really lies, and the links on the way to it."""
        real = self.real(path)
        if real and self._has_room(MAX_DEPTH):
            self._keep_links(path)
            self.put(real, content)

    def put(self, path: str, content: bytes) -> None:
        """Keep one file, if a recording has room for it."""
        # `Recording` refuses more; a recording without the largest files is better than none.
        if self._total + len(content) > MAX_TOTAL or not self._has_room():
            self.over += 1
            return
        self._total += len(content)
        self.files[path] = content

    def _has_room(self, reserve: int = 0) -> bool:
        return len(self.files) + len(self.links) < MAX_ENTRIES - reserve

    def _take(self, real: str, paths: list[str]) -> None:
        try:
            content = self._read(real, paths)
        except IsADirectoryError:  # a link to a folder, such as `driver`: the link alone is kept
            content = None
        except (OSError, BadRecording):
            self.unreadable += paths
            return
        for path in paths:
            self._keep_links(path)
        if content is not None:
            self.put(real, masked(content, self._masks.get(real, ()), self._anonymiser))

    def _read(self, real: str, paths: list[str]) -> bytes:
        for path in (*paths, real):
            check_path(path)
        if not is_public(real):
            raise BadRecording("it lies where a recording takes nothing from")
        return self._machine.read_bytes(paths[0])

    def _keep_links(self, path: str) -> None:
        folder = ""
        for name in path.split("/")[1:]:
            step = f"{folder}/{name}"
            real = self._step(step)
            # Written relative, as the kernel does: an absolute one would leave an unpacked root.
            if real != step:
                self.links[step] = posixpath.relpath(real, folder or "/")
            folder = real

    def _step(self, path: str) -> str:
        real = self._real.get(path)
        if real is None:
            real = self._real[path] = self._machine.realpath(path)
        return real


# The devices of a machine's buses, and which of them sleep: their files could wake them.

PCI, PLATFORM = "/sys/bus/pci/devices", "/sys/bus/platform/devices"

_ASLEEP = ("suspended", "suspending", "resuming")
"""What `power/runtime_status` says; "resuming" may still end in an error, and asleep again."""

_DEVICE_NUMBER = "dev"


class Device:
    """One device of a bus. `real` is where its folder lies; vendor and class are hex digits."""

    def __init__(self, machine: Machine, bus: str, name: str) -> None:
        self.name = name
        self.folder = f"{bus}/{name}"
        self.real = machine.realpath(self.folder)
        self.asleep = machine.read(f"{self.folder}/power/runtime_status", 32) in _ASLEEP
        self.vendor = self.pci_class = ""
        if bus == PCI:
            self.vendor = _digits(machine, f"{self.folder}/vendor")
            self.pci_class = _digits(machine, f"{self.folder}/class")

    def fits(self, rule: DeviceFiles) -> bool:
        """Return whether a declaration is about this device, whatever its power state."""
        vendor = not rule.vendors or self.vendor in rule.vendors
        return vendor and (not rule.classes or self.pci_class.startswith(rule.classes))


class Devices:
    """The PCI devices, and the platform devices that the device tree describes."""

    def __init__(self, machine: Machine) -> None:
        self.pci = [Device(machine, PCI, name) for name in machine.listdir(PCI)]
        self.platform = [
            Device(machine, PLATFORM, name)
            for name in machine.listdir(PLATFORM)
            if machine.exists(f"{PLATFORM}/{name}/of_node/compatible")
        ]
        self._by_real = {device.real: device for device in self.pci}
        # A recording's own files wake nobody.
        asleep = (device for device in self.pci if device.asleep and machine.live)
        self._asleep = {device.name: device for device in asleep}

    def sleeper(self, real: str) -> Device | None:
        """Return the sleeping PCI device that reading the file at `real` could wake, if any.

        A class folder leads to a device's own: /sys/class/hwmon/hwmon0 is below the GPU's. The
        device number is no driver's file, and is how DRM and accel nodes are found.
        """
        if not real.startswith("/sys/"):
            # A driver's own files: from 515 up to 590, NVIDIA's resumes a GPU to answer for
            # /proc/driver/nvidia/gpus/ADDRESS/information (open-gpu-kernel-modules, nv-procfs.c).
            return next(filter(None, map(self._asleep.get, real.split("/"))), None)
        # The innermost device counts: a GPU's folder lies below those of its bridges.
        folders = reversed([*above(real)])
        device = next(filter(None, map(self._by_real.get, folders)), None)
        harmless = real.rpartition("/")[2] == _DEVICE_NUMBER
        return device if device and device.asleep and not harmless else None


def _digits(machine: Machine, path: str) -> str:
    return (machine.read(path, 16) or "").lower().removeprefix("0x")


# Records a machine: the files that probers declare, read through a `Machine`, waking nothing.

_LIBRARIES = "NVIDIA_DRIVER_CAPABILITIES"
"""Which of the driver's libraries NVIDIA's toolkit gives a container: words of a short list."""

_OF_RUNTIMES = {name for runtime in RUNTIMES.values() for name in runtime.variables}
VARIABLES = sorted({_LIBRARIES, *_OF_RUNTIMES})
"""What of the environment is recorded: what decides which devices and libraries a program sees.

Of `surroundings.VARIABLES` it is recorded that they are set; their values are ids and addresses.
"""


class Gathered:
    """A recording, and what had to be left out of it.

    `asleep` are sleeping devices by their names on the bus, `unreadable` paths, `over` the number
    of files and patterns for which a recording has no room.
    """

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
    if limit := address_space(machine):
        taker.put(LIMITS, limit.encode())
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
