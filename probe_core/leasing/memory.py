"""Waits for devices whose memory is free too: who gave a lease back may have left something there.

Memory is measured when a device was taken, outside the door, and the device is given back if it
has too little: holding it would keep others off who need less.
"""

from __future__ import annotations

from time import monotonic

from probe_core.selection.candidates import document_of, free_memory
from probe_core.selection.sizes import parse_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from probe_core.leasing.hold import Choose, Held, Taker

    Device = Mapping[str, Any]
    Measure = Callable[[], Any]

__all__ = ["LOOK_AGAIN_S", "wait_for_memory"]

LOOK_AGAIN_S = 1.0
"""Seconds after which a device that had too little memory is measured again."""


def wait_for_memory(
    taker: Taker, choose: Choose, deadline: float | None, least: str | int, measure: Measure
) -> Held | None:
    """Stand in line until `choose` picks devices that have `least` free; None after the deadline.

    `measure` returns a fresh report. A device that it does not name counts as it was.
    """
    amount = parse_size(least)
    lacking: set[str] = set()

    def choose_other(free: Sequence[Device]) -> Sequence[Device] | None:
        return choose([one for one in free if str(one.get("id")) not in lacking])

    while True:
        held = taker.wait(choose_other, _until(deadline) if lacking else deadline)
        if held is not None:
            found = _lacking(held.devices, measure(), amount)
            if not found:
                return held
            held.put_back()
            taker.give_up()  # a GPU's lock, shared for its partition, went with it
            lacking |= found
        elif deadline is not None and monotonic() >= deadline:
            return None
        else:
            taker.give_up()
            lacking.clear()


def _until(deadline: float | None) -> float:
    soon = monotonic() + LOOK_AGAIN_S
    return soon if deadline is None else min(soon, deadline)


def _lacking(devices: Sequence[Device], report: Any, amount: int) -> set[str]:
    now = {str(one.get("id")): one for one in document_of(report).get("devices") or ()}
    names = [str(device.get("id")) for device in devices]
    fresh = {name: now.get(name, device) for name, device in zip(names, devices, strict=True)}
    return {name for name, device in fresh.items() if (free_memory(device) or 0) < amount}
