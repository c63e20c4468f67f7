"""Reports every AMD GPU and APU from sysfs and KFD, opening no device and waking none."""

from __future__ import annotations

from probe_amd import card, kfd, partitions
from probe_core.api import ask_each, hookimpl, not_applicable
from probe_core.sysfs import drivers, pci

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from probe_amd.sampler import Sampler
    from probe_core.api import Machine, NotApplicable, Request, SampleRequest
    from probe_core.sysfs.pci import Function

AMD = "1002"
# PCI base classes: displays, and processing accelerators. A card's sound function (04) is neither.
_CLASSES = ("03", "12")


@hookimpl
def probe_devices(request: Request) -> NotApplicable | Iterator[dict[str, Any]]:
    """Answer with AMD's GPUs and their partitions."""
    cards = _cards(request)
    if not cards:
        return not_applicable("no AMD GPU on the PCI bus")
    return _all(request, cards)


def _all(request: Request, cards: list[Function]) -> Iterator[dict[str, Any]]:
    machine, topology = request.machine, kfd.Topology(request.machine)
    addresses = frozenset(card.address for card in cards)
    nodes = {card.address: topology.of(card.address, addresses) for card in cards}
    system = card.System(
        kfd.Grants(topology, cards, nodes, machine.live),
        {node.number: f"pci:{address}" for address, own in nodes.items() for node in own},
        kfd.processes(machine, topology.nodes),
        _driver(machine),
    )
    layouts = partitions.layouts(machine, cards, nodes, topology, request.avoid)

    def ask(function: Function, may_ask: bool) -> Iterator[dict[str, Any]]:
        own, layout = nodes[function.address], layouts[function.address]
        if not may_ask:
            yield card.passive(machine, function)
            return
        device = card.describe(machine, function, own, layout, system)
        yield device
        for node in own if layout.split else ():
            yield partitions.child(machine, function, node, layout, device)

    yield from ask_each(request, cards, ask)


def _driver(machine: Machine) -> Mapping[str, str]:
    driver = {"name": "amdgpu"} | drivers.version(machine, "amdgpu")
    if rocm := machine.read("/opt/rocm/.info/version", 256):
        driver["rocm"] = rocm
    return driver


def _cards(request: Request) -> list[Function]:
    return pci.functions(request.machine, request.bus, vendors=(AMD,), classes=_CLASSES)


@hookimpl
def open_sampler(request: SampleRequest) -> Sampler:
    """Return what samples every card that amdgpu drives."""
    from probe_amd.sampler import Sampler

    return Sampler(request, _cards(request))
