"""What is read of the machine once for all of its devices, and only when a step asks for it."""

from __future__ import annotations

from probe_core.machine import access as nodes
from probe_core.machine import decimal, named_lines
from probe_core.machine.surroundings import cgroup_text, container, in_slurm, is_wsl
from probe_core.model.ids import NO_PLACE, driver_name, pci_address, pci_place
from probe_core.sysfs.drivers import bound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from probe_core.machine import Machine
    from probe_core.model.causes import Cause
    from probe_core.model.document import DeviceDoc, OutcomeDoc, StepDoc
    from probe_core.readiness.closed import Process
    from probe_core.readiness.device_rules import Rules
    from probe_core.readiness.library import Libraries
    from probe_core.readiness.modules import Modules


if TYPE_CHECKING:
    from functools import cached_property

    lazy = cached_property
else:

    class lazy:
        """What is read when it is first asked for, and then remembered.

        `functools.cached_property` does the same. Importing functools, and collections with it,
        takes 14 million instructions (callgrind, CPython 3.11), where the report of eight GPUs
        takes 120. Without `__set__` the value in the instance's own dictionary goes first.
        """

        def __init__(self, read):
            self._read = read
            self._name = read.__name__
            self.__doc__ = read.__doc__

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            value = instance.__dict__[self._name] = self._read(instance)
            return value


DEVICES = "/sys/bus/pci/devices"
NVIDIA = "/proc/driver/nvidia"
LIMITS, ADDRESS_SPACE = "/proc/self/limits", "Max address space"


class Scene:
    """One machine while its devices are judged.

    `linux` is whether it is one of Linux: only there are nodes and modules files.
    `failures` are the outcomes of probers that failed, by the PCI vendor whose own they are.
    `unavailable` are those of probers that could not query their hardware, by name. `devices` are
    those that are judged. `answered` holds the ids of the devices that answered a vendor's library,
    `opened` the nodes that this process surely opened for an answer, each with the library or the
    prober; `nvml` is what the step `library` says of NVIDIA's. `required` keeps what
    `node.required` found. `allows` says which paths may be looked at without hanging; None: all.
    `load` is called with each part of `gate` that some devices alone need: broken ones, and others.
    """

    def __init__(
        self,
        machine: Machine,
        failures: Mapping[str, OutcomeDoc] | None = None,
        unavailable: Mapping[str, OutcomeDoc] | None = None,
        allows: Callable[[str], bool] | None = None,
        load: Callable[[str], object] = bool,
    ) -> None:
        self.machine = machine
        self._allows = allows
        self.load = load
        self.linux = machine.os == "linux"
        self.environ = machine.environ
        self.failures = failures or {}
        self.unavailable = unavailable or {}
        self.devices: Sequence[DeviceDoc] = ()
        self.answered: set[str] = set()
        self.opened: dict[str, str] = {}
        self.required: dict[str, tuple[list[str], str]] = {}
        self.nvml: StepDoc | None = None
        self._access: dict[str, str] = {}
        self._nvidia: dict[str, dict[str, str]] = {}
        self._drivers: dict[str, str | None] = {}

    @lazy
    def causes(self) -> Mapping[str, Cause]:
        """The core's causes: only a broken device needs them."""
        self.load("broken")
        from probe_core.model.causes import CAUSES

        return CAUSES

    @lazy
    def cgroup(self) -> str:
        """The text of /proc/self/cgroup."""
        return cgroup_text(self.machine)

    @lazy
    def container(self) -> str | None:
        """The kind of container, as `machine.surroundings` has it."""
        return container(self.machine, self.cgroup)

    @lazy
    def service(self) -> str | None:
        """The unit of the system's service that this process is in: "ollama.service".

        A session's processes lie below user@1000.service, in scopes.
        """
        for line in self.cgroup.splitlines():
            name = line.rpartition("/")[2]
            if name.endswith(".service") and "/system.slice/" in line:
                return name
        return None

    @lazy
    def address_space(self) -> int | None:
        """Bytes of addresses that this process may have (`ulimit -v`); None without a limit."""
        text = self.machine.read(LIMITS, 4 << 10) or ""
        return decimal((text.partition(ADDRESS_SPACE)[2].split() or [""])[0])

    @lazy
    def slurm(self) -> bool:
        """Whether this process belongs to a Slurm job."""
        return in_slurm(self.machine, self.cgroup)

    @lazy
    def wsl(self) -> bool:
        """Whether this is Linux in Windows."""
        return is_wsl(self.machine)

    @lazy
    def family(self) -> str:
        """The distribution's family, as `distributions` has it; "" where it is not known."""
        from probe_core.readiness.distributions import family_on

        return family_on(self.machine, self.release)

    @lazy
    def shows_nodes(self) -> bool:
        """Whether an absent device node is known to be absent.

        A recording without /dev says nothing of nodes, unless it is a container's.
        """
        machine = self.machine
        return machine.live or machine.exists("/dev") or self.container is not None

    @lazy
    def majors(self) -> dict[str, int]:
        """The character devices of /proc/devices: driver to major number."""
        section = (self.machine.read("/proc/devices", 64 << 10) or "").partition("Block devices")[0]
        pairs = (line.split() for line in section.splitlines())
        return {
            pair[1]: number
            for pair in pairs
            if len(pair) == 2 and (number := decimal(pair[0])) is not None
        }

    @lazy
    def release(self) -> str:
        """The running kernel's release; "" where it is not known."""
        release = self.machine.read("/proc/sys/kernel/osrelease", 256) or ""
        return release if "/" not in release else ""

    @lazy
    def process(self) -> Process:
        """The process itself."""
        self.load("closed nodes")
        from probe_core.readiness.closed import Process

        return Process(self.machine)

    @lazy
    def loaded(self) -> frozenset[str]:
        """Names of /proc/modules, with underscores; empty where it cannot be read."""
        text = self.machine.read("/proc/modules", 256 << 10) or ""
        return frozenset(line.partition(" ")[0] for line in text.splitlines())

    @lazy
    def modules(self) -> Modules:
        """Kernel modules: loaded, on disk, forbidden."""
        self.load("drivers")
        from probe_core.readiness.modules import Modules

        return Modules(self.machine, self.release, self.loaded)

    @lazy
    def libraries(self) -> Libraries:
        """Where the loader looks for libraries, and what is there."""
        from probe_core.readiness.library import Libraries

        return Libraries(self.machine, self._allows)

    @lazy
    def rules(self) -> Rules:
        """The rules of the device cgroup, where version 1 shows them."""
        self.load("closed nodes")
        from probe_core.readiness.device_rules import Rules

        return Rules(self.machine, self.cgroup)

    @lazy
    def nvidia_version(self) -> str:
        """The text of /proc/driver/nvidia/version; "" without it."""
        return self.machine.read(f"{NVIDIA}/version", 4096) or ""

    @lazy
    def nvidia_params(self) -> dict[str, str]:
        """The parameters of NVIDIA's module by name."""
        return named_lines(self.machine.read(f"{NVIDIA}/params", 16 << 10) or "")

    def nvidia_card(self, device: DeviceDoc) -> dict[str, str]:
        """Return what NVIDIA's driver says in /proc of a GPU; nothing while it is suspended.

        Drivers before 590 resume it to answer.
        """
        address = pci_address(device)
        if address is None or device["power_state"] in ("suspended", "suspending", "resuming"):
            return {}
        if address not in self._nvidia:
            text = self.machine.read(f"{NVIDIA}/gpus/{address}/information", 4096)
            self._nvidia[address] = named_lines(text or "")
        return self._nvidia[address]

    def driver(self, device: DeviceDoc) -> str | None:
        """Return the name of the kernel driver that is bound to the device; None without one.

        /sys decides where it has the device: a prober may name the driver that it would have.
        """
        identity = device["id"]
        if identity not in self._drivers:
            folder = folder_of(device)
            on_bus = folder is not None and "bus" in device["seen_by"]
            name = driver_name(device)
            if name and folder and on_bus and device["sources"].get("driver.name") != "bus":
                name = bound(self.machine, folder)
            self._drivers[identity] = name or None
        return self._drivers[identity]

    def peers(self, device: DeviceDoc) -> list[str]:
        """Return the ids of the devices that the same driver holds, by PCI address."""
        driver, vendor = self.driver(device), device["vendor"]
        alike = [
            other
            for other in self.devices
            if not other["parent"] and other["vendor"] == vendor and self.driver(other) == driver
        ]
        alike.sort(key=lambda other: pci_place(other) or NO_PLACE)
        return [other["id"] for other in alike]

    def access(self, path: str) -> str:
        """Return how opening a node would end: see `machine.access`; each is asked once."""
        if path not in self._access:
            state = nodes.access(self.machine, path)
            if state == nodes.UNKNOWN and self.shows_nodes and not self.machine.exists(path):
                state = nodes.MISSING
            self._access[path] = state
        return self._access[path]


def folder_of(device: DeviceDoc) -> str | None:
    """Return the device's folder in /sys; None where it is not on the PCI bus."""
    address = pci_address(device)
    return address and f"{DEVICES}/{address}"
