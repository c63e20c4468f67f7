"""Reads the PCIe link of a discrete Intel GPU where it is true: above the switch on the card.

Arc, Flex, Max and Battlemage cards carry a switch of their own. The GPU's function sits below it,
and its own link files say 2.5 GT/s x1 whatever the slot gives; Intel's Level Zero driver reads the
upstream port instead (compute-runtime, LinuxSysmanImp::getPciCardBusDirectoryPath).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_core.api import Machine

# Per lane and second: raw rate (GT/s) by generation, and what the line code leaves of it.
# PCIe base specification 6: 8b/10b to generation 2, 128b/130b to 5, 242 of 256 flit bytes in 6.
_GENERATIONS = {
    2.5: (1, 8 / 10),
    5.0: (2, 8 / 10),
    8.0: (3, 128 / 130),
    16.0: (4, 128 / 130),
    32.0: (5, 128 / 130),
    64.0: (6, 242 / 256),
}
_BRIDGE = 0x0604


def pcie(machine: Machine, folder: str) -> dict[str, Any] | None:
    """Return the slowest hop between the card's edge and the host; None when none is to be seen.

    Linux resumes a sleeping device for these files (pci-sysfs.c): ask only for one that is awake.
    """
    path = _upwards(machine.realpath(folder))
    if _has_switch(machine, path):
        path = path[2:]
    elif len(path) == 1:
        return None  # a guest sees the function without the switch above it: its link is a lie
    hops = [hop for one in path if (hop := _hop(machine, one))]
    return min(hops, key=lambda hop: float(hop["bandwidth"]), default=None)


def _upwards(folder: str) -> list[str]:
    """Return the sysfs folders from the device up to the root port."""
    found: list[str] = []
    while (name := folder.rpartition("/")[2]).count(":") == 2 and len(found) < 16:
        found.append(folder)
        folder = folder[: -len(name) - 1]
    return found


def _has_switch(machine: Machine, path: list[str]) -> bool:
    """Return whether the two bridges above the GPU are Intel's, with a root port above them."""
    return len(path) > 3 and all(
        machine.read_int(f"{bridge}/vendor") == 0x8086
        and (machine.read_int(f"{bridge}/class") or 0) >> 8 == _BRIDGE
        for bridge in path[1:3]
    )


def _hop(machine: Machine, folder: str) -> dict[str, Any] | None:
    gts, width = _gts(machine, folder, "current"), _width(machine, folder, "current")
    if gts not in _GENERATIONS or not width:
        return None
    generation, code = _GENERATIONS[gts]
    found: dict[str, Any] = {
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
    words = (machine.read(f"{folder}/{which}_link_speed", 64) or "").split()
    try:
        return float(words[0]) if words[1:2] == ["GT/s"] else None
    except ValueError:
        return None


def _width(machine: Machine, folder: str, which: str) -> int | None:
    width = machine.read_int(f"{folder}/{which}_link_width")
    return width if width and 0 < width <= 32 else None  # 63 and 255 mean "no link"
