"""Waits for devices whose memory is free too: a previous owner may have left something there.

Memory is measured when a device was taken, outside the door, and the device is given back if it
has too little: keeping it would keep others off who need less.
"""

from __future__ import annotations

from time import monotonic

from probe_core.selection.candidates import free_memory
from probe_core.selection.document import report_document
from probe_core.sizes import parse_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from probe_core.leasing.acquire import Acquisition, Choose, Leased
    from probe_core.model.document import DeviceDoc

    Measure = Callable[[], object]

__all__ = ["LOOK_AGAIN_S", "wait_for_memory"]

LOOK_AGAIN_S = 1.0
"""Seconds after which a device that had too little memory is measured again: a probe keeps
a core busy for tens of milliseconds (a judgement)."""


def wait_for_memory(
    acquisition: Acquisition,
    choose: Choose,
    deadline: float | None,
    least: str | int,
    measure: Measure,
) -> Leased | None:
    """Queue until `choose` picks devices that have `least` free; None after the deadline.

    `measure` returns a fresh report. A device that it does not name counts as it was.
    """
    amount = parse_size(least)
    lacking: set[str] = set()

    def choose_other(free: Sequence[DeviceDoc]) -> Sequence[DeviceDoc] | None:
        return choose([device for device in free if device["id"] not in lacking])

    while True:
        leased = acquisition.wait(choose_other, _until(deadline) if lacking else deadline)
        if leased is not None:
            short = _lacking(leased.devices, measure(), amount)
            if not short:
                return leased
            leased.put_back()
            acquisition.give_up()  # a GPU's lock, shared for its partition, went with it
            lacking |= short
        elif deadline is not None and monotonic() >= deadline:
            return None
        else:
            acquisition.give_up()
            lacking.clear()


def _until(deadline: float | None) -> float:
    soon = monotonic() + LOOK_AGAIN_S
    return soon if deadline is None else min(soon, deadline)


def _lacking(devices: Sequence[DeviceDoc], report: object, amount: int) -> set[str]:
    measured = {device["id"]: device for device in report_document(report)["devices"]}
    fresh = [measured.get(device["id"], device) for device in devices]
    return {device["id"] for device in fresh if (free_memory(device) or 0) < amount}
