"""Joins a probe with readiness: what its outcomes say of devices, and what keeps a node degraded.

A node without accelerators imports none of the rules.
"""

from __future__ import annotations

from probe_core.machine.mounts import has_served_mounts
from probe_core.model.kinds import ACCELERATORS
from probe_core.model.readiness import blocked, broken_step
from probe_core.pipeline.collect import failed
from probe_core.pipeline.primary import pci_vendor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from probe_core.machine import Machine
    from probe_core.model.document import DeviceDoc, FindingDoc, OutcomeDoc
    from probe_core.readiness import Scene
    from probe_core.registry.select import Decision

__all__ = ["Readiness", "troubles", "vendors_of"]


class Readiness:
    """The judgement of one probe's devices, in the three steps in which it becomes known."""

    __slots__ = ("_conflicts", "_devices", "_scene")

    def __init__(
        self,
        devices: Sequence[DeviceDoc],
        machine: Machine,
        decisions: Sequence[Decision] = (),
        outcomes: Sequence[OutcomeDoc] = (),
    ) -> None:
        """Judge everything that does not depend on visibility."""
        self._devices = devices
        self._scene: Scene | None = None
        self._conflicts: list[FindingDoc] = []
        for device in devices:
            if device["kind"] == "cpu":  # it runs this
                device["readiness"] = {"state": "ready", "broken": None, "steps": []}
        if any(device["kind"] in ACCELERATORS for device in devices):
            from probe_core.readiness import Scene, judge

            unavailable = {o["prober"]: o for o in outcomes if o["status"] == "unavailable"}
            failures = _failures(decisions, outcomes)
            self._scene = Scene(machine, failures, unavailable, _looks(machine))
            self._conflicts = judge(devices, self._scene)

    def conclude(self) -> None:
        """Add what visibility shows, once it is in the devices."""
        if self._scene is not None:
            from probe_core.readiness import conclude

            conclude(self._devices)

    def findings(self, reported: Sequence[FindingDoc]) -> list[FindingDoc]:
        """Return the findings about broken steps that none of the `reported` is about."""
        if self._scene is None or all(broken_step(device) is None for device in self._devices):
            return self._conflicts
        from probe_core.readiness.findings import findings

        return [*self._conflicts, *findings(self._devices, self._scene, reported)]


def _looks(machine: Machine) -> Callable[[str], bool] | None:
    """Return what says which paths of the machine may be looked at; None: all of them."""
    if not (machine.live and has_served_mounts()):
        return None
    from probe_core.isolation.look import Looks

    return Looks().allow


def vendors_of(decisions: Sequence[Decision], probers: Collection[str]) -> set[str]:
    """Return the PCI vendors that the manifests of `probers` name."""
    return {
        vendor.lower().removeprefix("0x")
        for decision in decisions
        if decision.prober.name in probers
        for when in decision.prober.when
        for vendor in when.get("pci_vendor", ())
    }


def _failures(
    decisions: Sequence[Decision], outcomes: Iterable[OutcomeDoc]
) -> dict[str, OutcomeDoc]:
    """Return the PCI vendors whose own prober failed or could not query its hardware."""
    return {
        vendor: outcome
        for outcome in outcomes
        if failed(outcome)
        for vendor in vendors_of(decisions, (outcome["prober"],))
    }


def troubles(
    devices: Sequence[DeviceDoc],
    decisions: Sequence[Decision],
    outcomes: Iterable[OutcomeDoc],
) -> list[DeviceDoc | OutcomeDoc]:
    """Return what keeps an accelerator from use that ought to work: broken devices, failed probers.

    A device that somebody keeps away on purpose (passthrough, a slice) is none, and explains why
    its vendor's prober cannot query anything.
    """
    accelerators = [device for device in devices if device["kind"] in ACCELERATORS]
    broken = [device for device in accelerators if blocked(device) and not _is_intended(device)]
    reserved = {pci_vendor(device) for device in accelerators if blocked(device)}
    usable = {pci_vendor(device) for device in accelerators if not blocked(device)}
    reserved -= usable | {pci_vendor(device) for device in broken}
    unexplained = [
        outcome
        for outcome in outcomes
        if failed(outcome) and not _is_explained(outcome, decisions, reserved)
    ]
    return [*broken, *unexplained]


def _is_explained(
    outcome: OutcomeDoc, decisions: Sequence[Decision], reserved_vendors: set[str]
) -> bool:
    """Return whether a prober had nothing to query because all its devices are reserved."""
    vendors = vendors_of(decisions, (outcome["prober"],))
    return outcome["status"] == "unavailable" and bool(reserved_vendors & vendors)


def _is_intended(device: DeviceDoc) -> bool:
    from probe_core.model.causes import on_purpose

    step = broken_step(device)
    return step is not None and on_purpose(step["code"])
