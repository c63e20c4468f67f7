"""Describes one Intel GPU from the files of the PCI core and of i915 or xe."""

from __future__ import annotations

from probe_core.sysfs import drivers, nodes
from probe_core.sysfs.sighting import Draft
from probe_intel import clocks, memory
from probe_intel.bound import DRIVERS, add_fact
from probe_intel.functions import ASLEEP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from probe_core.api import Machine
    from probe_core.sysfs.pci import Function

_BY_OPENING = "i915 and xe give it only to programs that open the device"


def describe(machine: Machine, function: Function) -> dict[str, Any]:
    """Return the sighting of a GPU; of one without i915 or xe only what the bus knows."""
    draft = start(machine, function, "gpu")
    add_fact(machine, draft, function)
    if function.owner:
        draft.put("parent", f"pci:{function.owner}")
        draft.note("sriov", "virtual function")
    if function.driver not in DRIVERS["gpu"]:
        for field in ("units", "clocks.max_mhz", "memory.total"):
            draft.put(field, None, not_driven(function, DRIVERS["gpu"]))
        return draft.sighting()
    draft.put("name", None, "neither driver gives a product name")
    draft.put("units", None, _BY_OPENING)
    clocks.describe(machine, draft, function)
    discrete = memory.describe(machine, draft, function)
    if discrete:
        _connect(machine, draft, function)
    if discrete or function.driver == "xe":
        # Level Zero serves all that xe drives, and all cards; i915 also drives GPUs far older.
        draft.fields["backends"] = ["level-zero"]
    return draft.sighting()


def start(machine: Machine, function: Function, kind: str) -> Draft:
    """Return what every kind of device has: identity, driver, power state, minors."""
    draft = Draft(
        ids=[function.id],
        kind=kind,
        vendor="intel",
        pci=function.pci,
        power_state=function.power_state,
        node_index=function.node_index(machine),
    )
    if function.driver:
        driver = {"name": function.driver}
        draft.fields["driver"] = driver | drivers.version(machine, function.driver)
    if function.driver in DRIVERS[kind]:
        draft.put("nodes", nodes.paths(draft.fields["node_index"]))
    return draft


def passive(machine: Machine, function: Function, kind: str) -> dict[str, Any]:
    """Return the sighting of a device that must not be asked."""
    draft = start(machine, function, kind)
    draft.left_alone()
    return draft.sighting()


def not_driven(function: Function, names: Sequence[str]) -> str:
    """Return why a device's own facts are unknown when another driver, or none, is bound."""
    if not function.driver:
        return "no driver is bound"
    return f"bound to {function.driver}, not to {' or '.join(sorted(names))}"


def _connect(machine: Machine, draft: Draft, function: Function) -> None:
    """Put the card's link; an unknown one too, so that no other prober's guess fills the gap."""
    links = function.links(machine)
    draft.fields["links"] = links or [{"kind": "pcie", "peer": None}]
    if not links:
        reason = "the switch on the card is not to be seen from here"
        draft.put("links.bandwidth", None, ASLEEP if function.asleep else reason)
