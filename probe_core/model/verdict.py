"""Whether an accelerator can be used: the one place that decides it, for devices and for the node.

Two questions, of which each surface shows the answer to one (docs/reference/verdict.md):
`usable_here` is whether this process may use the device now, so variables and grants count;
`grantable` is whether a job that is given it may use it, so variables of this process do not count,
and health and permission do. `NodeVerdict` adds the devices up. All read a report's document and
nothing of the machine.
"""

from __future__ import annotations

from probe_core.model.ids import ACCELERATORS, pci_model
from probe_core.model.runtimes import NATIVE, canonical, in_runtime_order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, Literal

    from probe_core.model.document import DeviceDoc, ReportDoc, Severity, StepDoc, VisibilityDoc

    NodeState = Literal["good", "reduced", "bad", "none", "unknown"]


# How the PCI device ids of AMD's processors begin (amdgpu_drv.c, pci.ids): Kaveri 130a to Krackan
# 1114. Nothing else tells them from cards while no driver is bound.
_AMD_PROCESSORS = ("1002:11", "1002:13", "1002:15", "1002:16", "1002:19", "1002:98")
_INTEL_PROCESSOR = "pci:0000:00:02.0"
"""The place of the graphics in each of Intel's processors."""

# What a report has of one device.


def is_integrated(device: DeviceDoc) -> bool:
    """Return whether a GPU is a part of the processor, as far as the bus tells."""
    if device["kind"] != "gpu":
        return False
    if device["memory"]["kind"] is not None:
        return device["memory"]["kind"] in ("shared", "unified")
    ident = pci_model(device) or ""
    return device["id"] == _INTEL_PROCESSOR or ident.startswith(_AMD_PROCESSORS)


def state_of(device: DeviceDoc) -> str:
    """Return the device's state; of a report that an older core wrote, "unknown"."""
    readiness = device.get("readiness")
    return readiness["state"] if readiness else "unknown"


def broken_step(device: DeviceDoc) -> StepDoc | None:
    """Return the first step that is broken, with its code and evidence; None where none is."""
    readiness = device.get("readiness")
    if not readiness or readiness["broken"] is None:
        return None
    return next((s for s in readiness["steps"] if s["step"] == readiness["broken"]), None)


def blocking_step(device: DeviceDoc) -> StepDoc | None:
    """Return the step that keeps a blocked device from this process; None for any other device.

    The step `visible` is not meant: variables are judged for the environment that counts.
    """
    readiness = device.get("readiness")
    if not readiness or readiness["state"] != "blocked":
        return None
    return blocking_step_of("blocked", readiness["broken"], readiness["steps"])


def blocking_step_of(state: str, broken: str | None, steps: Iterable[StepDoc]) -> StepDoc | None:
    """Return the step that blocks, of a readiness whose parts are given; see `blocking_step`."""
    if state != "blocked":
        return None
    for step in steps:
        if step["step"] == broken and broken != "visible":
            return step
        # A variable spoils nothing behind it: what is broken there is broken for its own cause.
        if broken == "visible" and step["step"] == "runtime" and blocks(step):
            return step
    if broken == "visible":
        return None
    # Written by hand: the state without its steps.
    return {"step": broken or "granted", "status": "broken", "evidence": None, "code": None}


def blocks(step: StepDoc) -> bool:
    """Return whether the device cannot be used for this step."""
    if step["status"] != "broken":
        return False
    from probe_core.model.causes import usable_with

    return not usable_with(step)


def step_without_kfd(device: DeviceDoc | Mapping[str, Any]) -> StepDoc | None:
    """Return the broken step of a limited card that ROCm cannot use; None for any other device."""
    readiness = device.get("readiness")
    if not readiness or readiness["state"] != "limited":
        return None
    from probe_core.model.causes import cause_of

    causes = ((step, cause_of(step["code"])) for step in readiness["steps"])
    return next((step for step, cause in causes if cause and cause.keeps_from == "kfd"), None)


def native_runtime(device: DeviceDoc | Mapping[str, Any]) -> str:
    """Return the runtime by which the device counts as visible: its vendor's own.

    Vulkan for an AMD card without KFD, which ROCm cannot use. Also for a device of a foreign
    report, which may lack its vendor.
    """
    runtime = NATIVE.get(device.get("vendor") or "", "vulkan")
    return "vulkan" if runtime == "hip" and step_without_kfd(device) is not None else runtime


def native_sight(device: DeviceDoc) -> VisibilityDoc | None:
    """Return the device's visibility to its own runtime; None where no runtime concerns it."""
    return (device.get("visibility") or {}).get(native_runtime(device))


# The two questions.


class Answer:
    """An answer about one device.

    `usable` is True, False, or None where nobody could tell. Of a device that is not surely
    usable, `step` is the step of its chain that decides, `code` its cause and `reason` the
    evidence; each is None where the report has none. `severity` is how bad it is: a notice where
    somebody wants it so, or hardly anybody misses the device.
    """

    def __init__(
        self,
        usable: bool | None,
        step: str | None = None,
        code: str | None = None,
        reason: str | None = None,
        severity: Severity = "info",
    ) -> None:
        self.usable = usable
        self.step = step
        self.code = code
        self.reason = reason
        self.severity = severity


def usable_here(device: DeviceDoc) -> Answer:
    """Return whether this process may use the device now, through its vendor's own runtime."""
    step = blocking_step(device)
    if step is not None:
        return _no(step)
    sight = native_sight(device)
    if sight is None or sight["visible"]:
        return _not_refused(device)
    name = sight.get("step") or "visible"
    return Answer(sight["visible"], name, sight.get("code"), sight.get("reason"))


def grantable(device: DeviceDoc) -> Answer:
    """Return whether a job that is given the device may use it.

    A card in MIG mode is given to nobody: its instances are.
    """
    for step in _steps(device):
        if step["status"] == "broken" and _refuses_jobs(step):
            return _no(step)
    by_hand = None if _steps(device) else blocking_step(device)
    if by_hand is not None:  # the state without its steps
        return _no(by_hand)
    return _not_refused(device)


def _steps(device: DeviceDoc) -> Sequence[StepDoc]:
    readiness = device.get("readiness")
    return readiness["steps"] if readiness else ()


def _not_refused(device: DeviceDoc) -> Answer:
    """Return the answer about a device that nothing keeps away: yes, where anything is known."""
    if state_of(device) != "unknown":
        return Answer(True)
    step = next((s for s in _steps(device) if s["status"] == "unknown"), None)
    if step is None:
        return Answer(None)
    return Answer(None, step["step"], step["code"], step["evidence"])


def _no(step: StepDoc) -> Answer:
    return Answer(False, step["step"], step["code"], step["evidence"], step_severity(step))


def step_severity(step: StepDoc) -> Severity:
    """Return the severity of a broken step: what readiness wrote there, else its cause's own."""
    severity = step.get("severity")
    if severity is not None:
        return severity
    from probe_core.model.causes import cause_of

    cause = cause_of(step["code"])
    return cause.severity if cause is not None else "error"


_CUT = ("mig-mode", "mig-without-instances")
"""Causes of a card that is cut, or to be cut, into instances: what the card has, they have."""


def _refuses_jobs(step: StepDoc) -> bool:
    """Return whether a broken step keeps the device from every process that is given it."""
    if step["code"] in _CUT:
        return True
    from probe_core.model.causes import cause_of

    cause = cause_of(step["code"])
    if cause is None:
        return step["step"] != "visible"
    return not cause.of_process and (bool(step.get("blocks")) or not cause.limits)


# The word of the answer, for people.

_WORD_OF_STEP = {
    # The word of a broken step, where its cause has none of its own.
    "hardware": "driver error",
    "driver": "no driver",
    "node": "not granted",
    "permission": "no permission",
    "library": "driver error",
    "responding": "driver error",
    "granted": "not granted",
    "visible": "hidden",
    "runtime": "driver error",
}


def state_word(device: DeviceDoc) -> str:
    """Return the device's state in a word or two, for tables; empty for a display adapter.

    What keeps the device from this process comes first: ``no driver``, ``no permission``, ``not
    granted``, ``passthrough``, ``driver error``, ``timed out`` or ``lost``; then ``hidden`` or
    ``MIG mode``; then ``asleep``, ``limited``, ``ready``, or ``unknown`` where nobody could tell.
    """
    answer = usable_here(device)
    if answer.usable is False:
        return _word(answer.step or "visible", answer.code)
    if device.get("power_state") == "suspended":
        return "asleep"
    state = state_of(device)
    if state == "limited":
        limit = broken_step(device)
        return "MIG mode" if limit and limit["code"] == "mig-without-instances" else "limited"
    if state == "unknown" and device["kind"] in ("cpu", "display"):
        return "ready" if device["kind"] == "cpu" else ""  # this process runs on the CPU
    return "ready" if state == "blocked" else state  # blocked by a variable that is unset here


def _word(step: str, code: str | None) -> str:
    from probe_core.model.causes import cause_of

    cause = cause_of(code)
    return (cause.word if cause is not None else "") or _WORD_OF_STEP[step]


def visible(document: ReportDoc, runtime: str | None = None) -> list[DeviceDoc]:
    """Return a report's devices that `runtime` surely shows, in its order; never a blocked one.

    Without a runtime each device is judged by its vendor's own; devices that no variable can
    hide (a CPU, an NPU) count as visible. Devices without a known index stand behind the others,
    in the report's order.
    """
    devices = [device for device in document["devices"] if blocking_step(device) is None]
    if runtime is None:
        entries = ((device, native_sight(device)) for device in devices)
        return [device for device, entry in entries if entry is None or entry["visible"]]
    name = canonical(runtime)
    places = in_runtime_order((device.get("visibility") or {}).get(name) for device in devices)
    return [devices[place] for place in places]


# The node: its devices added up.


class NodeVerdict:
    """What a node's accelerators amount to.

    `usable` and `grantable` are the devices of which the answer is not no, `missing` those that no
    job can be given though nobody chose so, `set_aside` those that somebody keeps away on purpose
    (passthrough, a slice, MIG without an instance). A card that is cut into parts is in none of
    them: its parts are. `severity` is the highest of the report's findings; None without one.
    `absent` is how many accelerators should be here and are not, where somebody says how many.
    `failed` says that somebody should act: what `--strict` and the doctor exit with.

    `state` is ``good``; ``reduced``: something can be granted, and something is wrong; ``bad``:
    there are accelerators that ought to work, and none can be granted; ``none``: there is none to
    be granted, and nothing is wrong; ``unknown``: nobody could tell. `cause` is the code of the
    first missing device, else of the first finding of the highest severity above a notice.
    `blocking` are those of `missing` that a job would be given: not the processor's own graphics
    beside cards.
    """

    def __init__(self, report: ReportDoc) -> None:
        devices = units(report["devices"])
        answers = [(device, grantable(device)) for device in devices]
        refused = [(device, answer) for device, answer in answers if answer.usable is False]
        self.usable = [d for d in devices if usable_here(d).usable is not False]
        self.grantable = [device for device, answer in answers if answer.usable is not False]
        self.missing = [device for device, answer in refused if answer.severity != "info"]
        has_card = any(d["kind"] == "gpu" and not is_integrated(d) for d in devices)
        self.blocking = [d for d in self.missing if not (has_card and is_integrated(d))]
        self.set_aside = [device for device, answer in refused if answer.severity == "info"]
        expected = report.get("expected")
        self.absent = sum(entry["count"] for entry in expected["absent"]) if expected else 0
        self.severity = worst(finding["severity"] for finding in report["findings"])
        broken = self.severity == "error" or report["fallback"] == "degraded"
        self.failed = broken or bool(self.missing)
        self.state = self._state(report, [answer.usable for _, answer in answers])
        self.cause = self._cause(report)

    def _state(self, report: ReportDoc, answers: Sequence[bool | None]) -> NodeState:
        if (self.missing or self.absent) and not self.grantable:
            return "bad"
        if not self.grantable:
            return "unknown" if self.failed else "none"
        if self.failed:
            return "reduced"
        return "good" if any(answers) else "unknown"

    def _cause(self, report: ReportDoc) -> str | None:
        for device in self.missing:
            answer = grantable(device)
            return answer.code or answer.step
        if self.severity in (None, "info"):
            return None
        codes = (f["code"] for f in report["findings"] if f["severity"] == self.severity)
        return next(codes, None)


def units(devices: Iterable[DeviceDoc]) -> list[DeviceDoc]:
    """Return what counts as one accelerator: parts in place of the card that they are parts of."""
    accelerators = [device for device in devices if device["kind"] in ACCELERATORS]
    cut = {device["parent"] for device in accelerators if device["parent"]}
    return [
        device
        for device in accelerators
        if device["id"] not in cut and cut.isdisjoint(device["ids"])
    ]


def worst(severities: Iterable[Severity]) -> Severity | None:
    """Return the highest of severities; None without any."""
    from probe_core.model.ids import SEVERITIES

    return max(severities, key=SEVERITIES.index, default=None)
