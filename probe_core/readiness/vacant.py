"""What the bus shows of a place from which an accelerator is gone: its port, its link, its power.

Nothing is woken: a port that sleeps is asked for no more than that it sleeps.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.machine import Machine

__all__ = ["bus_sign"]

_BUS = "/sys/bus/pci/devices"
_SLOTS = "/sys/bus/pci/slots"
_MAX_SLOTS = 256


def bus_sign(machine: Machine, place: str, port: str | None) -> str | None:
    """Return the first sign of why nothing is at a PCI address; None where the bus shows none.

    `port` is the address of the bridge that was above it, None where it is not known.
    """
    if port is None or not (_is_address(place) and _is_address(port)):
        return None
    folder = f"{_BUS}/{port}"
    if not machine.exists(folder):
        return f"its port {port} is gone from the bus, too"
    if machine.read(f"{folder}/power/runtime_status", 32) == "suspended":
        return f"its port {port} is powered down (power/runtime_status is suspended)"
    # The kernel asks the port for both of these; it is awake.
    slot = _slot(machine, place)
    if slot is not None and machine.read(f"{slot}/power", 8) == "0":
        return f"its slot is switched off ({slot}/power is 0)"
    if machine.read(f"{folder}/current_link_width", 8) == "0":
        return f"the link of its port {port} is down (current_link_width is 0)"
    return None


def _slot(machine: Machine, place: str) -> str | None:
    """Return the folder of the slot with an address; the kernel writes it without the function."""
    for name in machine.listdir(_SLOTS)[:_MAX_SLOTS]:
        if machine.read(f"{_SLOTS}/{name}/address", 32) == place.rpartition(".")[0]:
            return f"{_SLOTS}/{name}"
    return None


def _is_address(text: str) -> bool:
    """Return whether a text from a file is 0000:65:00.0, and no path."""
    digits = text.replace(":", "").replace(".", "")
    return len(text) < 17 and text.count(":") == 2 and digits.isalnum()
