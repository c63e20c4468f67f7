"""The core's own sampler of systems-on-chip: GPUs and NPUs that no prober's distribution samples.

v3d, msm, etnaviv, powervr and Rockchip's NPU; it runs in a child like any other, for a driver's
fdinfo files may hang with the driver.
"""

from __future__ import annotations

from probe_core.api import hookimpl, not_applicable
from probe_core.sysfs import devicetree, drivers, soc
from probe_core.sysfs.drm_use import DrmUse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from probe_core.api import Machine, NotApplicable, SampleRequest

__all__ = ["BOARDS", "sample_devices", "wanted"]

BOARDS = "boards"
"""Its name among the probers."""

_OTHERS = frozenset({"arm", "nvidia", "apple"})
"""Vendors of device-tree GPUs that probers of their own sample."""

_boards: dict[str, tuple[str, str]] = {}
_use: list[DrmUse] = []


def wanted(bus: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the bus shows any such device."""
    return any(_is_board(sighting) for sighting in bus)


@hookimpl
def sample_devices(request: SampleRequest) -> Iterator[Mapping[str, Any]] | NotApplicable:
    """Yield what every such device with a driver does now."""
    machine = request.machine
    if not _use:
        _use.append(DrmUse(machine))
        _boards.update(_driven(machine, request.bus))
    return _samples(request) if _boards else not_applicable("no such device has a driver")


def _samples(request: SampleRequest) -> Iterator[Mapping[str, Any]]:
    _use[0].refresh()
    for identity, (folder, kind) in _boards.items():
        if not request.skip(identity):
            request.touching(identity)
            yield from soc.sample(request.machine, folder, identity, _use[0], kind)


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
