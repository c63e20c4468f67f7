"""The processes of one prober: the first, and those that go around a device it is silent over.

The first process is not killed for being silent: the device may be slow, and its answer then counts
more than any that left the device out. It has until the deadline, like all others.
"""

from __future__ import annotations

from probe_core.model.ids import normalise_id
from probe_core.model.statuses import FAILURES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Literal

    from probe_core.isolation.run import Run

    Bus = Sequence[Mapping[str, object]]
    How = Literal["hangs", "crashes", "raises"]

__all__ = ["CODES", "Attempts", "Unresponsive"]

MAX_ATTEMPTS = 4
"""Processes of one prober: of a node's eight GPUs one or two fail, more when the driver is gone."""

LEAST_S = 0.1
"""Seconds that must remain for another process: less than that is its start alone."""

CODES: dict[How, str] = {
    "hangs": "driver-hangs",
    "crashes": "driver-crashes",
    "raises": "prober-raises",
}
"""How a prober failed over a device, and the code of the outcome and the finding."""


class Unresponsive:
    """A device over which a prober's process hung, died or raised.

    `ids` are all ids that are known of it, `device` is the one that the prober announced. `reason`
    is a sentence without a subject; `stuck_at` is the line that ran, where it is known.
    """

    __slots__ = ("device", "how", "ids", "reason", "stuck_at")

    def __init__(
        self, device: str, ids: frozenset[str], how: How, reason: str, stuck_at: str | None
    ) -> None:
        self.device = device
        self.ids = ids
        self.how = how
        self.reason = reason
        self.stuck_at = stuck_at


class Attempts:
    """The runs of one prober, in the order in which they were started."""

    def __init__(self, first: Run, bus: Callable[[], Bus]) -> None:
        self.runs = [first]
        self._bus = bus

    def attend(self, now: float) -> frozenset[str] | None:
        """Return what one more run must avoid, or None; end the runs that nobody needs any more."""
        if len(self.runs) == 1 and not _needs_another(self.runs[0]):
            return None
        if self._best() is not None:
            for run in self.runs:
                run.finish("skipped", "an earlier process of this prober has answered", now)
            return None
        first = self.runs[0]
        if len(self.runs) >= MAX_ATTEMPTS or first.deadline - now < LEAST_S:
            return None
        if any(run.over and run.status not in FAILURES for run in self.runs):
            return None
        return next((a for run in self.runs if (a := self._around(run)) is not None), None)

    def united(self) -> Run:
        """Return the first run with what all of them brought."""
        first = self.runs[0]
        if any(run.status is None for run in self.runs):  # cancelled
            first.status = None
            return first
        first.abandoned = any(run.abandoned for run in self.runs)
        best = self._best()
        if best is not first:
            first.unresponsive = self._unresponsive()
            self._unite(first, [best] if best else [])
        return first

    def _best(self) -> Run | None:
        """Return the run whose answer counts: the first that did not fail, once it is known."""
        for run in self.runs:
            if not run.over:
                return None
            if run.status not in FAILURES:
                return run
        return None

    def _around(self, run: Run) -> frozenset[str] | None:
        """Return what a run must avoid that goes around the device of `run`; None if one does."""
        device = _culprit(run)
        if device is None:
            return None
        avoid = run.avoid | self._ids(device)
        return None if any(avoid <= other.avoid for other in self.runs) else avoid

    def _ids(self, device: str) -> frozenset[str]:
        """Return the ids of a device, also those that the bus knows, so that each form is known."""
        try:
            ids = {device, normalise_id(device)}
        except ValueError:
            return frozenset((device,))
        for sighting in self._bus():
            known = sighting.get("ids")
            if isinstance(known, (list, tuple)) and not ids.isdisjoint(known):
                ids.update(known)
        return frozenset(ids)

    def _unresponsive(self) -> list[Unresponsive]:
        """Return each device that failed, once."""
        devices: dict[str, Unresponsive] = {}
        for run in self.runs:
            device = _culprit(run)
            if device is not None and device not in devices:
                ids, stuck_at = self._ids(device), run.details.get("stuck_at")
                devices[device] = Unresponsive(device, ids, _how(run), str(run.reason), stuck_at)
        return list(devices.values())

    def _unite(self, first: Run, best: list[Run]) -> None:
        """Give the first run what the others brought; the best one's devices count before all."""
        ordered = best + [run for run in reversed(self.runs) if run not in best]
        sightings, findings = _united(ordered)
        first.sightings, first.findings = sightings, findings
        first.ended = max(run.ended for run in self.runs)
        if not first.unresponsive:
            return
        first.details["code"] = CODES[first.unresponsive[0].how]
        first.details["avoided"] = [lost.device for lost in first.unresponsive]
        # Without a device that answered there is nothing that another process made good.
        if best and best[0].status == "ok":
            first.status = "ok"
            first.reason = f"{first.reason}; another process read the other devices"


def _needs_another(run: Run) -> bool:
    """Return whether a prober's only run failed, or is silent for too long.

    Asked of every prober whenever any sends something: 2,500 times where fifty run at once.
    """
    return run.patience.exhausted if run.status is None else run.status in FAILURES


def _culprit(run: Run) -> str | None:
    """Return the device over which a run is silent for too long, or failed."""
    patience = run.patience
    if not run.over:
        return patience.device if patience.exhausted else None
    to_blame = patience.was_long(run.ended) if run.status == "timeout" else run.status in FAILURES
    return patience.device if to_blame else None


def _how(run: Run) -> How:
    if run.status == "call_error":
        return "raises"
    return "hangs" if run.status == "timeout" else "crashes"


def _united(runs: Sequence[Run]) -> tuple[list[object], list[object]]:
    """Return devices and findings of all runs; of one device that of the first in `runs`.

    A run that was to avoid a device knows least of it: any other that reports it goes before.
    """
    pairs = [(sighting, _texts(sighting), run) for run in runs for sighting in run.sightings]
    pairs.sort(key=lambda pair: not pair[1].isdisjoint(pair[2].avoid))
    sightings: list[object] = []
    seen: dict[str, Run] = {}
    for sighting, ids, run in pairs:
        if all(seen.get(identity, run) is run for identity in ids):
            sightings.append(sighting)
            seen.update(dict.fromkeys(ids, run))
    findings: list[object] = []
    for run in runs:
        findings += [finding for finding in run.findings if finding not in findings]
    return sightings, findings


def _texts(sighting: object) -> set[str]:
    """Return the ids of a sighting that nobody has checked yet, in the written form."""
    ids = sighting.get("ids") if isinstance(sighting, dict) else None
    texts = set()
    for identity in ids if isinstance(ids, list) else ():
        if isinstance(identity, str):
            try:
                texts.add(normalise_id(identity))
            except ValueError:
                continue
    return texts
