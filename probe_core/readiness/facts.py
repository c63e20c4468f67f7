"""What probers reported of the steps of one device, and which of it is believed."""

from __future__ import annotations

from probe_core.model.findings import finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import DeviceDoc, FindingDoc, StepDoc

__all__ = ["Facts"]


class Facts:
    """The `step_facts` of one device, taken out of it; the most believed prober's come first.

    `answered` says that the device answered a library. `conflicts` are findings about probers that
    call a step broken which a better source knows to be well.
    """

    __slots__ = ("_by_step", "answered", "conflicts")

    def __init__(self, device: DeviceDoc) -> None:
        facts: list[StepDoc] = device.pop("step_facts", None) or []  # type: ignore[typeddict-item]
        self._by_step: dict[str, list[StepDoc]] = {}
        self.conflicts: list[FindingDoc] = []
        self.answered = any(
            fact["step"] == "responding" and fact["status"] == "ok" for fact in facts
        )
        for fact in facts:
            if better := _better(fact, facts, device):
                self.conflicts.append(_conflict(fact, better, device))
            else:
                self._by_step.setdefault(fact["step"], []).append(fact)

    def of(self, step: str) -> list[StepDoc]:
        """Return the believed facts about a step."""
        return self._by_step.get(step, [])


def _better(fact: StepDoc, facts: list[StepDoc], device: DeviceDoc) -> str | None:
    """Return what a better source says against a broken step; None where nobody does.

    So a prober that is wrong about `granted` hides at most the devices that are its own.
    """
    if fact["status"] != "broken":
        return None
    ranks = {name: rank for rank, name in enumerate(device["seen_by"])}
    rank = ranks.get(fact.get("prober") or "", len(ranks))
    for other in facts:
        by = other.get("prober") or ""
        is_better = ranks.get(by, len(ranks)) < rank and other["status"] == "ok"
        if is_better and other["step"] in (fact["step"], "responding", "granted"):
            return f"{by}: {other['evidence']}"
    source = device["sources"].get("memory.free", "")
    if ranks.get(source, len(ranks)) < rank:
        return f"{source}: it reads the device's free memory"
    return None


def _conflict(fact: StepDoc, better: str, device: DeviceDoc) -> FindingDoc:
    return finding(
        "readiness-conflict",
        f"{fact.get('prober')} reports that {device['name'] or device['id']} cannot be used",
        f"a better source disagrees; {better}",
        "disable the prober that is wrong (PROBE_DISABLE)",
        device=device["id"],
        prober=fact.get("prober"),
        step=fact["step"],
        evidence=fact["evidence"],
    )
