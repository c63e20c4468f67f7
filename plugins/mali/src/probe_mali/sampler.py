"""Samples Mali GPUs: devfreq, thermal zones and, of the mainline drivers, fdinfo.

Arm's own driver (kbase) shows its clock, and no load without a debug file system.
"""

from __future__ import annotations

from probe_core.api import each_card, not_applicable
from probe_core.sysfs import devicetree, drivers, soc
from probe_core.sysfs.drm_use import DrmUse
from probe_mali import find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from probe_core.api import NotApplicable, SampleRequest

__all__ = ["Sampler"]


class Sampler:
    """The Mali GPUs of a machine, between two rounds."""

    def __init__(self, request: SampleRequest) -> None:
        self._machine = machine = request.machine
        self._use = DrmUse(machine)
        folders = find.folders(machine, request.bus)
        self._gpus = {
            _id(devicetree.node_path(machine, folder), folder): folder
            for folder in folders
            if drivers.bound(machine, folder)
        }

    def sample(self, request: SampleRequest) -> Iterator[Mapping[str, Any]] | NotApplicable:
        """Return the samples of a round."""
        if not self._gpus:
            return not_applicable("no Mali GPU has a driver")
        return self._samples(request)

    def _samples(self, request: SampleRequest) -> Iterator[Mapping[str, Any]]:
        self._use.refresh()
        for identity, may_ask in each_card(request, self._gpus):
            if may_ask:
                yield from soc.sample(self._machine, self._gpus[identity], identity, self._use)


def _id(path: str | None, folder: str) -> str:
    return f"dt:{path}" if path else f"mali:{folder.rpartition('/')[2]}"
