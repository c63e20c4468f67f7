"""What a device must have besides being free: memory, and no process outside any lease.

After a wait both are measured when a device was taken, outside the door, and the device is given
back if it lacks either: keeping it would keep others off who need less.
"""

from __future__ import annotations

from time import monotonic

from probe_core.leasing.keys import stable_name
from probe_core.selection.candidates import free_memory
from probe_core.selection.document import report_document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from probe_core.leasing.acquire import Acquisition, Choose
    from probe_core.leasing.leased import Leased
    from probe_core.model.document import DeviceDoc

    Measure = Callable[[], object]

__all__ = ["LOOK_AGAIN_S", "Room", "is_used", "wait_for_room"]

LOOK_AGAIN_S = 1.0
"""Seconds after which a device that lacked something is measured again: a probe keeps
a core busy for tens of milliseconds (a judgement)."""


_LEAST, _SHARE = 1 << 30, 0.05
"""Memory in use up to which a device counts as empty, in bytes and as a share of it. A CUDA context
takes 300 to 500 MiB, a desktop with a browser less than 1 GiB (judgements); the share covers what
the driver reserves on large cards."""

_WITHOUT_DISPLAY = "0302"
"""PCI class of GPUs that drive no display ("3D controller"): NVIDIA's data centre GPUs."""


class Room:
    """The demands of a request on each device, and which of its devices fail them now.

    `occupied` maps devices to who uses them without a lease; `exempt` are devices that processes
    under a lease use: what an outer lease gave, and what others reserved parts of. `limited` is
    whether a device that is free may still not do.
    """

    __slots__ = ("_exempt", "_least", "avoids", "limited", "occupied")

    def __init__(
        self,
        memory: str | int | None,
        devices: Sequence[DeviceDoc],
        *,
        avoids: bool,
        exempt: Collection[str],
    ) -> None:
        self._least = None if memory is None else _bytes(memory)
        self._exempt = exempt
        self.avoids = avoids
        self.occupied = self._occupied(devices)
        self.limited = self._least is not None or bool(self.occupied)

    def _occupied(self, devices: Sequence[DeviceDoc]) -> dict[str, str]:
        if not self.avoids:
            return {}
        suspects = [
            device
            for device in devices
            if is_used(device)
            and device["id"] not in self._exempt
            and stable_name(device) not in self._exempt
        ]
        if not suspects:
            return {}
        from probe_core.leasing.occupants import occupancy

        return occupancy(suspects)

    def only(self, choose: Choose) -> Choose:
        """Return `choose` without the devices that are occupied."""
        return _without(self.occupied, choose)

    def lacking(self, devices: Sequence[DeviceDoc], report: object) -> set[str]:
        """Return the ids of the devices that a fresh report shows to fail.

        A device that it does not name counts as it was.
        """
        measured = {device["id"]: device for device in report_document(report)["devices"]}
        fresh = [measured.get(device["id"], device) for device in devices]
        occupied = self._occupied(fresh)
        self.occupied |= occupied
        least = self._least
        short = {d["id"] for d in fresh if least is not None and (free_memory(d) or 0) < least}
        return short | set(occupied)


def is_used(device: DeviceDoc) -> bool:
    """Return whether more is in use than of an idle device, or processes compute on it.

    A count of processes is enough of a GPU of NVIDIA's that drives no display: on an H100 a job
    that kept it busy held 874 MiB, less than what a large card's driver may reserve. Elsewhere the
    programs of a desktop count, too, and ROCm's processes on GPUs that they do not use.
    """
    memory = device["memory"]
    total, free = memory["total"], memory["free"]
    # Shared memory is the system's: who uses it says nothing of the device.
    if memory["kind"] in ("unified", "shared"):
        return False
    pci_class = (device["pci"] or {}).get("class", "")
    has_display = device["vendor"] != "nvidia" or not pci_class.startswith(_WITHOUT_DISPLAY)
    if device.get("processes") and not has_display:
        return True
    if total is None or free is None:
        return False
    return total - free > max(_LEAST, int(_SHARE * total))


def _bytes(memory: str | int) -> int:
    from probe_core.sizes import parse_size

    return parse_size(memory)


def _without(names: Mapping[str, str] | set[str], choose: Choose) -> Choose:
    return lambda free: choose([device for device in free if device["id"] not in names])


def wait_for_room(
    acquisition: Acquisition,
    choose: Choose,
    deadline: float | None,
    room: Room,
    measure: Measure,
    needed: int,
) -> Leased | None:
    """Queue until `choose` picks devices with `room`, `needed` in number; None after the deadline.

    `measure` returns a fresh report.
    """
    lacking: set[str] = set()
    pick = _without(lacking, choose)
    while True:
        until = _until(deadline) if lacking else deadline
        leased = acquisition.wait(pick, until, needed)
        if leased is not None:
            short = room.lacking(leased.devices, measure())
            if not short:
                return leased
            leased.put_back()
            lacking |= short
        elif deadline is not None and monotonic() >= deadline:
            return None
        else:
            lacking.clear()


def _until(deadline: float | None) -> float:
    soon = monotonic() + LOOK_AGAIN_S
    return soon if deadline is None else min(soon, deadline)
