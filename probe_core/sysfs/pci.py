"""Says which PCI functions a vendor has on the bus, and what each is.

Every file read here is kept in memory by the kernel's PCI core: none wakes a device.
"""

from __future__ import annotations

from probe_core.sysfs import drivers, power

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from probe_core.machine import Machine
    from probe_core.model.document import LinkDoc, PciDoc

__all__ = [
    "DEVICES",
    "Function",
    "functions",
    "hexadecimal",
    "identity",
    "identity_of",
    "normal_id",
    "numa_node",
    "physical_function",
    "virtual_functions",
]

DEVICES = "/sys/bus/pci/devices"
"""The folder in which every PCI function is listed by its address."""

# Key of a sighting's `pci`: the numbers that it is made of, by their names in /sys, and digits.
_FIELDS = (
    ("id", ("vendor", "device"), 4),
    ("subsystem", ("subsystem_vendor", "subsystem_device"), 4),
    ("revision", ("revision",), 2),
    ("class", ("class",), 6),
)
_DIGITS = frozenset("0123456789abcdef")
_NO_DOMAIN = "pci:ffffffff:"
"""All ones is how NVML writes the address of a GPU that has none."""


class Function:
    """One PCI function, as the kernel remembers it.

    `address` is as in /sys (``0000:01:00.0``), `folder` its place there, `pci` its ids for a
    sighting, `driver` the bound driver's name ("" without one), `status` the kernel's word for its
    power state (see `power`), `owner` the address of the physical function that a virtual one
    (SR-IOV) belongs to ("" for a physical one).
    """

    def __init__(
        self, machine: Machine, address: str, sighting: Mapping[str, Any] | None = None
    ) -> None:
        """Read the function at `address`; what the bus prober's `sighting` has is not read again.

        The driver and the power state are: they may have changed.
        """
        self._seen = sighting = sighting or {}
        driver = sighting.get("driver") or {}
        self.address = address
        self.folder = f"{DEVICES}/{address}"
        self.pci: PciDoc = sighting.get("pci") or identity(machine, self.folder)
        self.driver = drivers.bound(machine, self.folder) or driver.get("name") or ""
        self.status = power.status(machine, self.folder)
        self.owner = physical_function(machine, self.folder) or ""

    @property
    def id(self) -> str:
        """The strong id that all probers of this device share: ``pci:0000:01:00.0``."""
        return f"pci:{self.address}"

    @property
    def vendor(self) -> str:
        """The vendor's four hexadecimal digits; "" when they are not known."""
        return self.pci.get("id", "")[:4]

    @property
    def product(self) -> str:
        """The four hexadecimal digits that the vendor gave the model; "" when they are unknown."""
        return self.pci.get("id", "")[5:]

    @property
    def base_class(self) -> str:
        """The first two digits of the class ("03" displays); "" when they are not known."""
        return self.pci.get("class", "")[:2]

    @property
    def power_state(self) -> str:
        """A sighting's ``power_state``: active, suspended or unknown."""
        return power.state(self.status)

    @property
    def asleep(self) -> bool:
        """Whether most of the driver's files are out of bounds: reading them could wake it."""
        return power.asleep(self.status)

    def links(self, machine: Machine) -> list[LinkDoc]:
        """Return a sighting's ``links``: its PCIe link, as `pcie.links` does."""
        if (links := self._seen.get("links")) is not None:
            return [*links]
        from probe_core.sysfs import pcie  # which itself reads by this module

        return pcie.links(machine, self.folder, self.status)

    def node_index(self, machine: Machine) -> dict[str, int]:
        """Return a sighting's ``node_index``: the minors of its DRM and accel nodes."""
        if seen := self._seen.get("node_index"):
            return {**seen}
        from probe_core.sysfs import accel, drm

        return drm.minors(machine, self.folder) | accel.minors(machine, self.folder)

    def numa_node(self, machine: Machine) -> int | None:
        """Return its NUMA node, as `numa_node` of this module does."""
        node: int | None = self._seen.get("numa_node")
        return numa_node(machine, self.folder) if node is None else node


def functions(
    machine: Machine,
    bus: Iterable[Mapping[str, Any]],
    vendors: Iterable[str],
    classes: Iterable[str] = (),
) -> list[Function]:
    """Return the functions of the `vendors` (four hexadecimal digits each), by address.

    `classes` are the base classes wanted, two digits each ("03" displays, "12" processing
    accelerators); all without any. `bus` is the request's: what the bus prober saw is not looked
    for again. Where it saw no PCI device at all (it was disabled) the bus is read here.
    """
    makers, bases = frozenset(vendors), frozenset(classes)
    sightings = {
        name[4:]: sighting
        for sighting in bus
        for name in sighting.get("ids", ())
        if name.startswith("pci:")
    }
    if sightings:
        addresses = [name for name in sightings if _fits(sightings[name], makers, bases)]
    else:
        addresses = _addresses(machine, makers, bases)
    members = (Function(machine, address, sightings.get(address)) for address in sorted(addresses))
    return [function for function in members if function.vendor in makers]


def _fits(sighting: Mapping[str, Any], vendors: frozenset[str], bases: frozenset[str]) -> bool:
    """Return whether a sighting may be of a vendor and class; what it does not tell may."""
    pci = sighting.get("pci") or {}
    vendor, base = pci.get("id", "")[:4], pci.get("class", "")[:2]
    return vendor in ("", *vendors) and (not bases or base in ("", *bases))


def _addresses(machine: Machine, vendors: frozenset[str], bases: frozenset[str]) -> list[str]:
    """Return the addresses of the vendors' functions: two reads tell the others apart."""
    numbers, classes = {int(vendor, 16) for vendor in vendors}, {int(base, 16) for base in bases}
    addresses = []
    for address in machine.listdir(DEVICES):
        folder = f"{DEVICES}/{address}"
        if hexadecimal(machine, f"{folder}/vendor") in numbers and (
            not bases or (hexadecimal(machine, f"{folder}/class") or 0) >> 16 in classes
        ):
            addresses.append(address)
    return [address for address in addresses if normal_id(address) == f"pci:{address}"]


def identity(machine: Machine, folder: str) -> PciDoc:
    """Return a sighting's ``pci`` of the function at `folder`; keys that are unknown are left out.

    Seven files: vendor and device, those of the subsystem, revision and class.
    """
    return identity_of(lambda name: hexadecimal(machine, f"{folder}/{name}"))


def hexadecimal(machine: Machine, path: str) -> int | None:
    """Return the number in a file that holds an id ("0x10de"), of at most eight digits.

    The digits are hexadecimal without the prefix, too; signs and underscores are none, which `int`
    would take.
    """
    digits = (machine.read(path, 16) or "").lower().removeprefix("0x")
    return int(digits, 16) if 0 < len(digits) <= 8 and _DIGITS.issuperset(digits) else None


def identity_of(number: Callable[[str], int | None]) -> PciDoc:
    """Return a sighting's ``pci`` made of numbers that come from elsewhere.

    `number` is called with ``vendor``, ``device``, ``subsystem_vendor``, ``subsystem_device``,
    ``revision`` and ``class``; a number that is None or too long leaves its key out.
    """
    ids: dict[str, str] = {}
    for key, names, digits in _FIELDS:
        # A revision or class that does not fit its register is garbage, not a longer number.
        numbers = [n for name in names if (n := number(name)) is not None and 0 <= n < 16**digits]
        # A subsystem of zeros is what a card without one has.
        if len(numbers) == len(names) and (key != "subsystem" or any(numbers)):
            ids[key] = ":".join(f"{n:0{digits}x}" for n in numbers)
    return ids  # type: ignore[return-value]  # made of the keys of _FIELDS


def normal_id(address: str) -> str | None:
    """Return ``pci:dddd:bb:dd.f`` of an address however it is written; None when it is none.

    NVML writes domains with eight digits, the kernel with four: they are numbers, and never cut
    (GB10 sits in domain 000f, VMD's domains begin at 10000).
    """
    from probe_core.model.ids import pci_id  # of which a prober of the bus's functions needs none

    try:
        name = pci_id(address)
    except ValueError:
        return None
    return None if name.startswith(_NO_DOMAIN) else name


def numa_node(machine: Machine, folder: str) -> int | None:
    """Return the NUMA node of the device at `folder`; None where nothing tells it.

    Where firmware does not say (-1), the only node is the device's, or the one that holds all CPUs
    near the device.
    """
    node = machine.read_int(f"{folder}/numa_node")
    if node is not None and node >= 0:
        return node
    from probe_core.machine import cpu_list, cpu_mask, numa

    text = machine.read(f"{folder}/local_cpulist", 4096)
    if text is None:  # hwloc's recording of a POWER9 has the mask alone
        near = cpu_mask(machine.read(f"{folder}/local_cpus", 16 << 10))
    else:
        near = cpu_list(text)
    return numa.node_of(machine, near)


def physical_function(machine: Machine, folder: str) -> str | None:
    """Return the address of the physical function that the one at `folder` is a part of."""
    link = f"{folder}/physfn"
    return machine.realpath(link).rpartition("/")[2] or None if machine.exists(link) else None


def virtual_functions(machine: Machine, folder: str) -> list[str]:
    """Return the addresses of the virtual functions (SR-IOV) of the one at `folder`, in order."""
    from probe_core.sysfs.numbered import entries

    paths = [path for _, path in entries(machine, folder, "virtfn")]
    return [address for path in paths if (address := machine.realpath(path).rpartition("/")[2])]
