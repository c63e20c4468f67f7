"""Says where an AMD card sits: PCI identity, driver, power state and its link to the host."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from probe_core.api import Machine

DEVICES = "/sys/bus/pci/devices"
AMD = "1002"

# Per lane and second: raw rate (GT/s) by generation, and what the line code leaves of it.
# PCIe base specification 6: 8b/10b to generation 2, 128b/130b to 5, 242 of 256 flit bytes in 6.
_GENERATIONS = (
    (2.5, 1, 8 / 10),
    (5.0, 2, 8 / 10),
    (8.0, 3, 128 / 130),
    (16.0, 4, 128 / 130),
    (32.0, 5, 128 / 130),
    (64.0, 6, 242 / 256),
)
_POWER = {
    "active": "active",
    "resuming": "active",
    "unsupported": "active",
    "suspended": "suspended",
    "suspending": "suspended",
}


class Card:
    """One AMD display or accelerator function on the PCI bus; `folder` is its place in /sys."""

    __slots__ = ("address", "driver", "folder", "pci", "power")

    def __init__(self, machine: Machine, address: str, seen: Mapping[str, Any]) -> None:
        self.address = address
        self.folder = f"{DEVICES}/{address}"
        self.pci: dict[str, str] = dict(seen.get("pci") or identity(machine, self.folder))
        self.driver = machine.realpath(f"{self.folder}/driver").rpartition("/")[2]
        if not machine.exists(f"{self.folder}/driver"):
            self.driver = str((seen.get("driver") or {}).get("name") or "")
        self.power = _power(machine, self.folder)

    @property
    def id(self) -> str:
        """The strong id that all probers of this card share."""
        return f"pci:{self.address}"

    @property
    def asleep(self) -> bool:
        """Whether most of the card's files are out of bounds, because reading could wake it."""
        return self.power == "suspended"


def cards(machine: Machine, bus: Iterable[Mapping[str, Any]]) -> list[Card]:
    """Return AMD's GPUs that the bus prober saw, or by our own look where it saw nothing."""
    sightings = {name[4:]: one for one in bus for name in one.get("ids", ()) if name[:4] == "pci:"}
    if not sightings:
        sightings = {address: {} for address in machine.listdir(DEVICES)}
    found = (
        Card(machine, address, seen)
        for address, seen in sorted(sightings.items())
        if _may_be_amd(machine, address, seen)
    )
    return [card for card in found if _is_amd_gpu(card.pci)]


def _may_be_amd(machine: Machine, address: str, seen: Mapping[str, Any]) -> bool:
    if seen:
        return str((seen.get("pci") or {}).get("id", AMD)).startswith(AMD)
    return machine.read_int(f"{DEVICES}/{address}/vendor") == 0x1002


def _is_amd_gpu(pci: Mapping[str, str]) -> bool:
    # Displays (03) and processing accelerators (12); the audio function (04) is neither.
    return pci.get("id", "").startswith(AMD + ":") and pci.get("class", "03")[:2] in ("03", "12")


def identity(machine: Machine, folder: str) -> dict[str, str]:
    """Return PCI ids as the kernel keeps them; reading these files never touches the card."""
    found: dict[str, str] = {}
    for key, names, digits in (
        ("id", ("vendor", "device"), 4),
        ("revision", ("revision",), 2),
        ("subsystem", ("subsystem_vendor", "subsystem_device"), 4),
        ("class", ("class",), 6),
    ):
        numbers = [machine.read_int(f"{folder}/{name}") for name in names]
        if all(number is not None and number >= 0 for number in numbers):
            found[key] = ":".join(f"{number:0{digits}x}" for number in numbers)
    return found


def _power(machine: Machine, folder: str) -> str:
    return _POWER.get(machine.read(f"{folder}/power/runtime_status") or "", "unknown")


def link(machine: Machine, card: Card) -> dict[str, Any] | None:
    """Return the slowest PCIe hop between the card and the host.

    A card since Navi 10 sits behind a switch of its own, whose inner hop always says x16 at full
    speed: the hop that counts is further up (pcie_bandwidth_available in the kernel does the same).
    Since Linux 6.12 these files wake a sleeping device: ask only for a card that is awake.
    """
    hops = [
        hop for folder in _upwards(machine.realpath(card.folder)) if (hop := _hop(machine, folder))
    ]
    return min(hops, key=lambda hop: float(hop["bandwidth"]), default=None)


def _upwards(folder: str) -> list[str]:
    """Return the sysfs folders from the device up to below the root port's bus."""
    found: list[str] = []
    while (name := folder.rpartition("/")[2]).count(":") == 2 and len(found) < 16:
        found.append(folder)
        folder = folder[: -len(name) - 1]
    return found


def _hop(machine: Machine, folder: str) -> dict[str, Any] | None:
    gts, width = _gts(machine, folder, "current"), _width(machine, folder, "current")
    if not gts or not width:
        return None
    generation, code = next(((n, c) for rate, n, c in _GENERATIONS if rate == gts), (None, None))
    if generation is None or code is None:
        return None
    found = {
        "kind": "pcie",
        "peer": None,
        "width": width,
        "gts": gts,
        "generation": generation,
        "bandwidth": int(gts * 1e9 * width * code / 8),
    }
    maxima = {"max_width": _width(machine, folder, "max"), "max_gts": _gts(machine, folder, "max")}
    return found | {name: value for name, value in maxima.items() if value}


def _gts(machine: Machine, folder: str, which: str) -> float | None:
    """Return "16.0 GT/s PCIe" as 16.0."""
    words = (machine.read(f"{folder}/{which}_link_speed") or "").split()
    try:
        return float(words[0]) if words[1:2] == ["GT/s"] else None
    except ValueError:
        return None


def _width(machine: Machine, folder: str, which: str) -> int | None:
    width = machine.read_int(f"{folder}/{which}_link_width")
    return width if width and 0 < width <= 32 else None  # 63 and 255 mean "no link"
