"""Finds Intel's GPUs, NPUs and Gaudis on the PCI bus, and says which of them each is."""

from __future__ import annotations

from probe_core.sysfs import pci

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from probe_core.api import Machine
    from probe_core.sysfs.pci import Function

INTEL, HABANA = "8086", "1da3"
_KINDS = {"03": "gpu", "12": "npu"}
"""PCI base class of Intel's own devices → what a sighting calls them."""
_COMPANIONS = ("01", "02", "06")
"""Storage, network and bridges: what else a Habana board may carry."""

ASLEEP = "asleep (runtime-suspended): not read, so that the device is not woken"


def by_kind(machine: Machine, bus: Iterable[Mapping[str, Any]]) -> dict[str, list[Function]]:
    """Return Intel's functions by what a sighting calls them: gpu, npu, accelerator, in this order.

    A Gaudi's firmware may hang: its cards come last, so that what was seen before is kept.
    """
    kinds: dict[str, list[Function]] = {"gpu": [], "npu": [], "accelerator": []}
    for function in pci.functions(machine, bus, vendors=(INTEL,), classes=_KINDS):
        if kind := _KINDS.get(function.base_class):
            kinds[kind].append(function)
    habana = pci.functions(machine, bus, vendors=(HABANA,))
    kinds["accelerator"] = [card for card in habana if card.base_class not in _COMPANIONS]
    return kinds
