"""The core's own sampler of systems-on-chip: GPUs and NPUs that no prober's distribution samples.

v3d, msm, etnaviv, powervr and Rockchip's NPU; it runs in a child like any other, for a driver's
fdinfo files may hang with the driver.
"""

from __future__ import annotations

from probe_core.api import each_card, hookimpl, not_applicable
from probe_core.sysfs import devicetree, drivers, soc
from probe_core.sysfs.drm_use import DrmUse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from probe_core.api import Machine, NotApplicable, SampleRequest

BOARDS = "boards"
"""Its name among the probers."""

_OTHERS = frozenset({"arm", "nvidia", "apple"})
"""Vendors of device-tree GPUs that probers of their own sample."""

_NO_DRIVER = "no such device has a driver"


def present(bus: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the bus shows any such device."""
    return any(_is_board(sighting) for sighting in bus)


@hookimpl
def open_sampler(request: SampleRequest) -> Sampler | NotApplicable:
    """Return what samples every such device with a driver."""
    boards = dict(_driven(request.machine, request.bus))
    return Sampler(request.machine, boards) if boards else not_applicable(_NO_DRIVER)


class Sampler:
    """The devices of a system-on-chip, by id: their folder and kind."""

    def __init__(self, machine: Machine, boards: Mapping[str, tuple[str, str]]) -> None:
        self._machine = machine
        self._boards = boards
        self._use = DrmUse(machine)

    def sample(self, request: SampleRequest) -> Iterator[Mapping[str, Any]]:
        """Yield what each does now."""
        self._use.refresh()
        for identity, may_ask in each_card(request, self._boards):
            if may_ask:
                folder, kind = self._boards[identity]
                yield from soc.sample(self._machine, folder, identity, self._use, kind)


def _driven(
    machine: Machine, bus: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, tuple[str, str]]]:
    kinds = {str(s["ids"][0]): str(s.get("kind")) for s in bus if _is_board(s)}
    for path, folder in devicetree.platform_devices(machine):
        identity = f"dt:{path}"
        if identity in kinds and drivers.bound(machine, folder):
            yield identity, (machine.realpath(folder), kinds[identity])


def _is_board(sighting: Mapping[str, Any]) -> bool:
    ids = sighting.get("ids") or ("",)
    return str(ids[0]).startswith("dt:") and sighting.get("vendor") not in _OTHERS
