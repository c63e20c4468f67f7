"""Reads a device's PCIe link: the slowest hop between it and the host, and its own hop beside it.

A device's own link files tell the hop to the bridge above it. That hop is no answer where a switch
lies between: cards since AMD's Navi 10 and Intel's Arc carry one themselves, whose inner side shows
another rate than the slot, and a server's switch may have a narrow uplink. What data can reach the
device at is the slowest hop's rate; pcie_bandwidth_available() of the kernel walks up the same way.
"""

from __future__ import annotations

from probe_core.sysfs import power
from probe_core.sysfs.pci import hexadecimal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.machine import Machine
    from probe_core.model.document import LinkDoc

__all__ = [
    "GENERATIONS",
    "Hop",
    "bridges",
    "errors",
    "hops",
    "links",
    "route",
]

# Per lane and second: raw rate (GT/s) → generation, and what the line code leaves of the rate.
# PCIe base specification: 8b/10b to generation 2, 128b/130b to 5, 242 of 256 flit bytes from 6 on.
GENERATIONS = {
    2.5: (1, 8 / 10),
    5.0: (2, 8 / 10),
    8.0: (3, 128 / 130),
    16.0: (4, 128 / 130),
    32.0: (5, 128 / 130),
    64.0: (6, 242 / 256),
    128.0: (7, 242 / 256),
}
"""Gigatransfers per second and lane → (PCIe generation, share of the transfers that is data)."""

MAX_WIDTH = 32
"""Lanes at most: 63 is what a function that fell off the bus answers, 255 one without a link."""

MAX_DEPTH = 32
"""Bridges looked at above a device: a bound alone, chains of docks and switches stay far below."""

_INTEL, _DISPLAY, _BRIDGE = 0x8086, "03", "0604"


class Hop:
    """One link between a device and the host, as the end nearer to the device reports it.

    `address` is that end's PCI address, `width` lanes and `gts` gigatransfers per second and lane
    in use now, `max_width` and `max_gts` what this end can do (None when it does not tell).
    `generation` is the PCIe generation of the rate in use, `bandwidth` bytes per second in one
    direction, line code taken off; packets cost some more.
    """

    def __init__(
        self,
        address: str,
        width: int,
        gts: float,
        max_width: int | None = None,
        max_gts: float | None = None,
    ) -> None:
        self.address = address
        self.width = width
        self.gts = gts
        self.max_width = max_width
        self.max_gts = max_gts
        self.generation, share = GENERATIONS[gts]
        self.bandwidth = int(gts * 1e9 * width * share / 8)

    def fields(self, prefix: str = "") -> LinkDoc:
        """Return the figures as a sighting's link has them; ``local_`` before the device's own."""
        figures = {
            "width": self.width,
            "gts": self.gts,
            "generation": self.generation,
            "bandwidth": self.bandwidth,
            "max_width": self.max_width,
            "max_gts": self.max_gts,
        }
        known = {f"{prefix}{name}": value for name, value in figures.items() if value is not None}
        return {"kind": "pcie", "peer": None, **known}  # type: ignore[typeddict-item]


def links(machine: Machine, folder: str, status: str | None = None) -> list[LinkDoc]:
    """Return a sighting's ``links``: the PCIe link of the device at `folder`, or nothing.

    ``width``, ``gts``, ``generation``, ``bandwidth``, ``max_width`` and ``max_gts`` are the slowest
    hop's, ``local_…`` the device's own; ``limited_by`` is the address of the bridge whose link is
    the slowest, where that is not the device's own.
    Nothing is returned for an integrated device, for one that sleeps (its files are not read), and
    where the files cannot be believed. `status` is as `hops` takes it.
    """
    chain = hops(machine, folder, status)
    if not chain:
        return []
    # Of hops that are equally slow the nearest to the device counts.
    slowest = min(chain, key=lambda hop: hop.bandwidth)
    link = slowest.fields() | chain[0].fields("local_")
    if slowest is not chain[0]:
        link["limited_by"] = slowest.address
    return [link]


def hops(machine: Machine, folder: str, status: str | None = None) -> list[Hop]:
    """Return the links from the device at `folder` up to the host, its own first.

    `status` is the kernel's word for the device's power state (see `power.status`), where the
    caller has just read it.

    A link has two ends that agree on width and rate, so one is read, the nearer to the device: in
    a virtual machine the other end may be an emulated bridge with figures of its own. Hops that
    tell nothing are left out; without the device's own there are none.
    """
    # First of all the device itself: while it sleeps, so may the bridges above it.
    if power.asleep(status or power.status(machine, folder)):
        return []
    ends = route(machine, folder)[::2]
    own = _hop(machine, ends[0]) if ends else None
    if own is None:
        return []
    # The constant inside an Intel card: a guest gets the GPU's function without the switch above.
    if (own.gts, own.width) == (2.5, 1) and _is_intel(machine, ends[0], _DISPLAY):
        return []
    awake = (end for end in ends[1:] if not power.asleep(power.status(machine, end)))
    return [own, *(hop for end in awake if (hop := _hop(machine, end)))]


def bridges(machine: Machine, folder: str) -> list[str]:
    """Return the PCI addresses of the bridges above the device at `folder`, the root port last.

    They are the folders around its own in /sys, so nothing is asked of a bridge that sleeps. A
    device on the root bus, and an address in a guest that shows none, have none.
    """
    return [path.rpartition("/")[2] for path in _ancestry(machine, folder)[1:]]


def route(machine: Machine, folder: str) -> list[str]:
    """Return the real folders in /sys from the device at `folder` up to its root port.

    Below PCIe every second one is the lower end of a link: device, bridge, bridge, root port are
    two links. The bridges on an Intel card are left out with the GPU's own function: the figures
    inside the card are constants (2.5 GT/s x1), and Intel's Level Zero driver reads the card's
    upstream port instead (compute-runtime, LinuxSysmanImp::getPciCardBusDirectoryPath).
    """
    folders = _ancestry(machine, folder)
    # Above the two bridges of Intel's there is the port that the card is in.
    is_card = len(folders) > 3 and _is_intel(machine, folders[0], _DISPLAY)
    has_switch = is_card and all(_is_intel(machine, bridge, _BRIDGE) for bridge in folders[1:3])
    return folders[2:] if has_switch else folders


def _ancestry(machine: Machine, folder: str) -> list[str]:
    """Return the real folders of the device at `folder` and of the bridges above it."""
    folders: list[str] = []
    path = machine.realpath(folder)
    # The folder of a root bus is "pci0000:00": one colon where an address has two.
    while (name := path.rpartition("/")[2]).count(":") == 2 and len(folders) < MAX_DEPTH:
        folders.append(path)
        path = path[: -len(name) - 1]
    return folders


def _is_intel(machine: Machine, folder: str, kind: str) -> bool:
    """Return whether a function is Intel's, and its class begins with the digits of `kind`."""
    if hexadecimal(machine, f"{folder}/vendor") != _INTEL:
        return False
    return f"{hexadecimal(machine, f'{folder}/class') or 0:06x}".startswith(kind)


def _hop(machine: Machine, folder: str) -> Hop | None:
    """Read one end of a link, which must be awake; None when its figures are none."""
    width, gts = _width(machine, folder, "current"), _gts(machine, folder, "current")
    if not width or gts not in GENERATIONS:
        return None
    maxima = _width(machine, folder, "max"), _gts(machine, folder, "max")
    return Hop(folder.rpartition("/")[2], width, gts, *maxima)


def _gts(machine: Machine, folder: str, which: str) -> float | None:
    """Return "16.0 GT/s PCIe" as 16.0; "Unknown", which kernels also write, as None."""
    parts = (machine.read(f"{folder}/{which}_link_speed", 64) or "").split()
    try:
        rate = float(parts[0]) if parts[1:2] == ["GT/s"] else None
    except ValueError:
        return None
    return rate if rate in GENERATIONS else None


def _width(machine: Machine, folder: str, which: str) -> int | None:
    width = machine.read_int(f"{folder}/{which}_link_width")
    return width if width and 0 < width <= MAX_WIDTH else None


def errors(machine: Machine, folder: str) -> dict[str, float | None]:
    """Return the counters of a sample that every PCIe device with AER has; none without it.

    `aer_dev_correctable` has a line for each kind and their sum, `TOTAL_ERR_COR N`, since Linux
    4.19 (ABI/testing/sysfs-bus-pci-devices-aer_stats).
    """
    for line in (machine.read(f"{folder}/aer_dev_correctable", 4096) or "").splitlines():
        name, _, number = line.partition(" ")
        if name == "TOTAL_ERR_COR" and number.strip().isdecimal():
            return {"pcie_correctable": int(number)}
    return {}
