"""Describes one Intel GPU from the files of the PCI core and of i915 or xe."""

from __future__ import annotations

from probe_intel import clocks, links, memory, pci
from probe_intel.facts import ASLEEP, Facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_core.api import Machine
    from probe_intel.pci import Function

DRIVERS = ("i915", "xe")
_BY_OPENING = "i915 and xe tell it only to programs that open the device"


def describe(machine: Machine, function: Function) -> dict[str, Any]:
    """Return the sighting of a GPU; of one without i915 or xe only what the bus knows."""
    facts = start(machine, function, "gpu")
    if function.owner:
        facts.fields["parent"] = f"pci:{function.owner}"
        facts.note("sriov", "virtual function")
    if function.driver not in DRIVERS:
        for field in ("units", "clocks.max_mhz", "memory.total"):
            facts.say(field, None, not_driven(function, "i915 or xe"))
        return facts.sighting()
    facts.say("name", None, "neither driver gives a product name")
    facts.say("units", None, _BY_OPENING)
    clocks.tell(machine, facts, function)
    discrete = memory.tell(machine, facts, function)
    if discrete:
        _tell_link(machine, facts, function)
    if discrete or function.driver == "xe":
        # Level Zero serves all that xe drives, and all cards; i915 also drives GPUs far older.
        facts.fields["backends"] = ["level-zero"]
    return facts.sighting()


def start(machine: Machine, function: Function, kind: str) -> Facts:
    """Return the facts that every kind of device has: identity, driver, power, ordinals."""
    facts = Facts(
        ids=[function.id],
        kind=kind,
        vendor="intel",
        pci=function.pci,
        power_state=function.power,
        node_index=pci.minors(machine, function.folder),
    )
    if function.driver:
        driver = {"name": function.driver}
        facts.fields["driver"] = driver | pci.version(machine, function.driver)
    return facts


def not_driven(function: Function, wanted: str) -> str:
    """Return why a device's own facts are unknown when another driver, or none, is bound."""
    if not function.driver:
        return "no driver is bound"
    return f"bound to {function.driver}, not to {wanted}"


def _tell_link(machine: Machine, facts: Facts, function: Function) -> None:
    """Say the card's link; an unknown one too, for the GPU's own files would fill the gap wrongly.

    They show the hop inside the card (2.5 GT/s x1), which the bus prober takes at its word.
    """
    found = None if function.asleep else links.pcie(machine, function.folder)
    facts.fields["links"] = [found or {"kind": "pcie", "peer": None}]
    if not found:
        why = "the switch on the card is not to be seen from here"
        facts.say("links.bandwidth", None, ASLEEP if function.asleep else why)
