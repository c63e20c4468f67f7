"""Makes the entries of a chain: a step with its status, and the fact that it rests on."""

from __future__ import annotations

from probe_core.model.findings import finding
from probe_core.model.ids import NODE_UNKNOWN, STEPS
from probe_core.model.verdict import blocks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from probe_core.model.document import DeviceDoc, FindingDoc, ReadinessDoc, StepDoc
    from probe_core.readiness.scene import Scene

    Judge = Callable[[DeviceDoc, Scene], StepDoc]


def ok(step: str, evidence: str) -> StepDoc:
    """Return a step that holds."""
    return {"step": step, "status": "ok", "evidence": evidence, "code": None}


def broken(step: str, code: str, evidence: str) -> StepDoc:
    """Return a step that does not hold; `code` is one of `model.causes`."""
    return {"step": step, "status": "broken", "evidence": evidence, "code": code}


def unknown(step: str, reason: str, code: str | None = None) -> StepDoc:
    """Return a step of which nothing can be told, with the reason."""
    return {"step": step, "status": "unknown", "evidence": reason, "code": code}


def not_applicable(step: str, reason: str) -> StepDoc:
    """Return a step that this device does not have."""
    return {"step": step, "status": "not_applicable", "evidence": reason, "code": None}


# From the steps of one device to its readiness: the first broken step, and the state.
#
# The core's own judgement of each step is joined with what probers reported of it (`step_facts`).
# Files that the core read itself decide about nodes and permission; a library's answer decides
# about the library, and whether the device responds.

# The steps after `visible`.
_BEHIND = STEPS[STEPS.index("visible") + 1 :]

# The core read these itself, in this process: a prober's answer counts where it could not.
_OWN = ("node", "permission")

# A library that answered was loaded and reached the device, whatever the files look like.
_ANSWERED = ("library", "responding", "runtime")

_SILENT = "not-responding"
"""What the core says of a device of which a prober reads nothing: a library's code says more."""


def combined(own: StepDoc, facts: Sequence[StepDoc]) -> StepDoc:
    """Return the step that the core's own judgement and the probers' `facts` amount to.

    `facts` are about this step, the most believed first; none is an answer that `Facts.proof` has.
    """
    if not facts:
        return own
    fact = facts[0]
    if own["status"] == "broken":
        if own["code"] == _SILENT and fact["status"] == "broken":
            return fact  # it says why
        if fact["status"] != "ok" or own["step"] in _OWN:
            return own
        return _contradicted(own, fact)
    if own.get("opened") and fact["status"] == "ok":
        return own  # it says that and why a refusal was set aside
    if own["step"] in _OWN:
        return fact if own["status"] == "unknown" else own
    if fact["status"] in ("broken", "ok"):
        return fact
    return own if own["status"] in ("ok", "not_applicable") else fact


def _contradicted(own: StepDoc, fact: StepDoc) -> StepDoc:
    """Return a break that a prober's answer does not cover: both are shown, and the worse counts.

    What an answer does cover was set aside before, see `node.proven`.
    """
    text = f"{own['evidence']}; but {_name(fact)}: {fact['evidence']}"
    return {**own, "evidence": text}


def conclusion(steps: Iterable[StepDoc]) -> ReadinessDoc:
    """Return the readiness that `steps` amount to; steps behind one that blocks are not judged.

    `broken` is the first step that blocks, else the first that limits.
    """
    by_name = {step["step"]: step for step in steps}
    ordered: list[StepDoc] = []
    blocking: StepDoc | None = None
    for name in STEPS:
        if name not in by_name:
            continue
        step = by_name[name]
        # A variable hides a device and spoils nothing behind it: another process has another one.
        if blocking is not None and blocking["step"] != "visible":
            step = unknown(name, f"not judged: {blocking['step']} is broken")
        ordered.append(step)
        if blocking is None and blocks(step):
            blocking = step
    limiting = next((step for step in ordered if step["status"] == "broken"), None)
    first = blocking or limiting
    state = "blocked" if blocking else "limited" if limiting else _unbroken(ordered)
    return {"state": state, "broken": first["step"] if first else None, "steps": ordered}


def with_visible(readiness: ReadinessDoc, step: StepDoc) -> ReadinessDoc:
    """Return a readiness with the step `visible`, which it has not yet."""
    steps = readiness["steps"].copy()
    if readiness["broken"] or step["status"] == "broken":
        return conclusion([*steps, step])
    # Nothing is broken: what the steps amount to does not rest on this one, see `_unbroken`.
    place = next((at for at, other in enumerate(steps) if other["step"] in _BEHIND), len(steps))
    steps.insert(place, step)
    return {**readiness, "steps": steps}


NODE_UNRECORDED = "node-unrecorded"
"""Code of the step `node` in a recording that has no device nodes at all."""


def _unbroken(steps: Sequence[StepDoc]) -> str:
    """Return "ready" where driver, node and permission hold, or are proven by an answer.

    A driver that is bound is not enough: what cannot be opened cannot be used. Who may open a node
    no recording tells, so that nodes which are there are enough of one; in a live machine the step
    `permission` is unknown together with the step `node` alone.
    """
    by_name = {step["step"]: step for step in steps}
    answer = by_name.get("responding")
    if answer is not None and answer["status"] != "ok":
        answer = None
    known = [s["step"] for s in steps if s["status"] != "unknown" or s.get("opened")]
    # What answers has a driver, whether one is reported or not.
    has_driver = answer is not None or "driver" in known
    has_node = "node" in known or _proves(answer, by_name.get("node"))
    return "ready" if has_driver and has_node else "unknown"


def _proves(answer: StepDoc | None, node: StepDoc | None) -> bool:
    """Return whether an answer is the only thing that can tell of the nodes, and is there.

    Of a recording without nodes a library's counts, which a prober reported as a fact; that the
    device's memory was read, from files as it may be, is enough where no node is known at all.
    """
    if answer is None or node is None:
        return False
    is_fact = answer.get("prober") is not None
    return node["code"] == NODE_UNKNOWN or (node["code"] == NODE_UNRECORDED and is_fact)


# What probers reported of the steps of one device, and which of it is believed.


class Facts:
    """The `step_facts` of one device, taken out of it; the most believed prober's come first.

    `answered` says that the device answered a library; `opened` are the nodes that were opened for
    that, each with the prober; `unscoped` says that one of those answers names none. `conflicts`
    are findings about probers that call a step broken which a better source knows to be well.
    """

    __slots__ = ("_by_step", "answered", "conflicts", "opened", "unscoped")

    def __init__(self, device: DeviceDoc) -> None:
        facts: list[StepDoc] = device.pop("step_facts", None) or []  # type: ignore[typeddict-item]
        self._by_step: dict[str, list[StepDoc]] = {}
        self.conflicts: list[FindingDoc] = []
        answers = [f for f in facts if f["step"] == "responding" and f["status"] == "ok"]
        self.answered = bool(answers)
        self.unscoped = any(fact.get("opened") is None for fact in answers)
        self.opened = {path: _name(f) for f in facts for path in f.get("opened") or ()}
        for fact in facts:
            if fact["status"] == "broken" and (better := _better(fact, facts, device)):
                self.conflicts.append(_conflict(fact, better, device))
            else:
                self._by_step.setdefault(fact["step"], []).append(fact)

    def proof(self, step: str) -> StepDoc | None:
        """Return the answer that proves a step, so that nothing is left to judge of it."""
        facts = self._by_step.get(step)
        return facts[0] if facts and step in _ANSWERED and facts[0]["status"] == "ok" else None

    def about(self, own: StepDoc) -> list[StepDoc]:
        """Return the believed facts about a step, of which `own` is the core's judgement.

        An answer contradicts that the device has no driver or is off the bus: it is told there,
        as what is behind a break is not.
        """
        facts = self._by_step.get(own["step"], [])
        if facts or not self.answered or own["step"] not in _NEEDED or not blocks(own):
            return facts
        return [fact for fact in self._by_step.get("responding", ()) if fact["status"] == "ok"]


_NEEDED = ("hardware", "driver")
"""Steps without which nothing answers."""


def _name(fact: StepDoc) -> str:
    return fact.get("prober") or "a prober"


def _better(fact: StepDoc, facts: list[StepDoc], device: DeviceDoc) -> str | None:
    """Return what a better source says against a broken step; None where nobody does.

    So a prober that is wrong about `granted` hides at most the devices that are its own.
    """
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
