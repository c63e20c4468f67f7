"""What one look at all devices brought."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_core.model.document import FindingDoc
    from probe_core.model.sample_document import EventDoc, SampleDoc

__all__ = ["Round"]


class Round:
    """One look at all devices.

    `number` counts from 1. `time` is when it began, in seconds since 1970 (UTC). `samples` has one
    sample for each device that is known and asked for, in the order of the report, then the node's
    own (``node:self``). `events` tells which devices came, went or changed since the last round.
    `findings` is what a person should know now; the same finding is not repeated in each round.
    """

    __slots__ = ("events", "findings", "number", "samples", "time")

    def __init__(
        self,
        number: int,
        time: float,
        samples: Sequence[SampleDoc],
        events: Sequence[EventDoc] = (),
        findings: Sequence[FindingDoc] = (),
    ) -> None:
        self.number = number
        self.time = time
        self.samples = list(samples)
        self.events = list(events)
        self.findings = list(findings)

    def __repr__(self) -> str:
        return f"Round({self.number}, {len(self.samples)} samples, {len(self.events)} events)"

    def sample(self, device: str) -> SampleDoc | None:
        """Return the sample of a device, by its id in the report; None without one."""
        return next((sample for sample in self.samples if sample["device"] == device), None)
