"""A device that is gone around, because asking it hung or killed a process."""

from __future__ import annotations

from probe_core.model.ids import normalise_id
from probe_core.sampling.pauses import Pauses

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from probe_core.isolation.resident import Resident

__all__ = ["Avoided", "culprit_ids"]


class Avoided:
    """One such device, by the id that its sampler announced.

    `reason` says how it failed, `pauses` when it is asked again, `trial` is the process that asks.
    """

    __slots__ = ("device", "ids", "pauses", "reason", "trial")

    def __init__(self, device: str) -> None:
        self.device = device
        self.ids = frozenset({device, _written(device)})
        self.reason = ""
        self.pauses = Pauses()
        self.trial: Resident | None = None


def culprit_ids(avoided: Iterable[Avoided]) -> frozenset[str]:
    """Return the ids of all devices that are gone around."""
    return frozenset().union(*(device.ids for device in avoided))


def _written(device: str) -> str:
    try:
        return normalise_id(device)
    except ValueError:
        return device
