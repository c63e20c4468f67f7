"""The samples of a round: checked, joined with the devices of the report, each device once."""

from __future__ import annotations

from probe_core.model.findings import finding
from probe_core.model.sample_check import check_sample, without_figures
from probe_core.pipeline.failures import check_finding
from probe_core.sampling.node import HOST_PROBER, NODE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from probe_core.model.document import FindingDoc, SampleDoc, SampleStatus
    from probe_core.sampling.roster import Entry, Roster


_MAX_PROBLEMS = 256
"""Findings remembered, so that none is repeated: beyond it new ones are dropped."""


class Samples:
    """The samples and findings of one round after another.

    `findings` are those of this round that were not there before.
    """

    def __init__(self, roster: Roster) -> None:
        self._roster = roster
        self._by_device: dict[str, SampleDoc] = {}
        self._repeated: set[tuple[object, ...]] = set()
        self.findings: list[FindingDoc] = []

    def begin(self) -> None:
        """Begin a round."""
        self._by_device = {}
        self.findings = []

    def add(self, prober: str, samples: Iterable[object]) -> list[tuple[Entry, SampleDoc]]:
        """Check what a sampler yielded; return the samples that count, with their devices.

        Of a device that a sampler of higher priority has answered for, later samples do not.
        """
        added: list[tuple[Entry, SampleDoc]] = []
        for raw in samples:
            sample, problems = check_sample(raw, prober)
            if sample is not None and sample["device"] == NODE and prober != HOST_PROBER:
                self._refuse(prober, "device", f"{NODE} is sampled by the core alone", NODE)
                continue
            for field, reason in problems:
                self._refuse(prober, field, reason)
            entry = self._entry(sample)
            if sample is None or entry is None:
                continue
            if entry.id in self._by_device:
                if any(entry is sampled for sampled, _ in added):
                    self._refuse(prober, "device", f"{entry.id} is in a round twice", entry.id)
                continue
            entry.sampled = True
            sample["device"] = entry.id
            self._by_device[entry.id] = sample
            added.append((entry, sample))
        return added

    def _entry(self, sample: SampleDoc | None) -> Entry | None:
        if sample is None:
            return None
        entry = self._roster.add([sample["device"]], None, listed=False)
        return entry if entry is not None and self._roster.wants(entry) else None

    def put(self, entry: Entry, status: SampleStatus, reason: str, prober: str | None) -> None:
        """Say why there are no figures of a device, whatever a sampler says of it."""
        self._by_device[entry.id] = without_figures(entry.id, status, reason, prober)

    def missing(self) -> list[Entry]:
        """Return the devices that are known, and that no sampler answered for."""
        return [
            entry
            for entry in self._roster.entries
            if entry.id not in self._by_device and self._roster.shows(entry)
        ]

    def ordered(self) -> list[SampleDoc]:
        """Return the samples in the order of the devices."""
        entries = self._roster.entries
        return [self._by_device[e.id] for e in entries if e.id in self._by_device]

    def add_findings(self, prober: str, findings: Sequence[object]) -> None:
        """Take a sampler's own findings."""
        for raw in findings:
            if (checked := check_finding(raw, prober)) is not None:
                self.note(checked)

    def note(self, fact: FindingDoc) -> None:
        """Add a finding that was not there before."""
        key = (fact["code"], fact["prober"], fact["device"], fact["evidence"])
        if key not in self._repeated and len(self._repeated) < _MAX_PROBLEMS:
            self._repeated.add(key)
            self.findings.append(fact)

    def forget(self, device: str) -> None:
        """Let findings about a device be told again: it was well in between."""
        self._repeated = {key for key in self._repeated if key[2] != device}

    def _refuse(self, prober: str, field: str, reason: str, device: str | None = None) -> None:
        self.note(
            finding(
                "value-rejected",
                f"the sampler of prober {prober!r} yields what cannot be true",
                f"{field}: {reason}",
                "report it to its author; the value is left out",
                device=device,
                prober=prober,
                evidence=field,
            )
        )
