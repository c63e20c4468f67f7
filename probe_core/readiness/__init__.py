"""Whether this process can use each device, and where the chain from the bus to a program breaks.

`judge` runs after the chips are resolved and before visibility is worked out, so that visibility
starts from the devices that are not blocked; `conclude` adds what visibility shows. Each step is a
pure function over the device and the `Scene`, in a module of its own; what is needed only where a
step is broken is imported there.
"""

from __future__ import annotations

from probe_core.model.ids import ACCELERATORS
from probe_core.readiness.chain import (
    Facts,
    combined,
    conclusion,
    unknown,
    with_visible,
)
from probe_core.readiness.hardware import driver, hardware, responding
from probe_core.readiness.library import library
from probe_core.readiness.node import granted, node, permission, proven
from probe_core.readiness.runtime import runtime, visible
from probe_core.readiness.scene import Scene
from probe_core.wording import error_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from probe_core.model.document import DeviceDoc, FindingDoc, StepDoc

    Judge = Callable[[DeviceDoc, Scene], StepDoc]

__all__ = ["Scene", "conclude", "judge", "reopen"]

_JUDGES: tuple[tuple[str, Judge], ...] = (
    ("hardware", hardware),
    ("driver", driver),
    ("node", node),
    ("permission", permission),
    ("library", library),
    ("responding", responding),
    ("granted", granted),
    ("runtime", runtime),
)


def judge(
    devices: Sequence[DeviceDoc], scene: Scene, only: Collection[str] = ()
) -> list[FindingDoc]:
    """Write each accelerator's `readiness`, all steps but `visible`; return contradictions.

    `only` names the steps to judge, each as if nothing before it were broken; empty: all.

    What probers reported (`step_facts`) is used and taken out of the devices. Never raises: a step
    whose judgement fails is unknown, with the error.
    """
    facts = {device["id"]: Facts(device) for device in devices}
    scene.devices = devices
    scene.answered = {identity for identity, fact in facts.items() if fact.answered}
    if scene.answered:
        scene.opened = _opened(devices, facts, scene)
    findings: list[FindingDoc] = []
    for device in devices:
        if device["kind"] in ACCELERATORS:
            own = facts[device["id"]]
            device["readiness"] = conclusion(_steps(device, own, scene, only))
            findings += own.conflicts
    return findings


def _steps(
    device: DeviceDoc, facts: Facts, scene: Scene, only: Collection[str]
) -> Iterator[StepDoc]:
    """Yield each step: the core's own judgement, joined with what probers reported of it."""
    for name, judge_step in _JUDGES:
        if only and name not in only:
            continue
        if proof := facts.proof(name):
            yield proof
            continue
        try:
            step = judge_step(device, scene)
        except Exception as error:  # whatever a file held, the node starts
            step = unknown(name, f"could not be judged: {error_text(error, 200)}")
        step = combined(step, facts.about(step))
        yield _for_purpose(device, step, scene) if step["status"] == "broken" else step


def _opened(
    devices: Sequence[DeviceDoc], facts: Mapping[str, Facts], scene: Scene
) -> dict[str, str]:
    """Return the nodes that answers prove to be open, each with whose answer it is.

    A path that was opened once may be opened: so /dev/nvidiactl counts for all GPUs, and
    /dev/nvidia0 for its own alone, as no other one needs it.
    """
    opened: dict[str, str] = {}
    for device in devices:
        fact = facts[device["id"]]
        opened |= fact.opened
        if fact.unscoped:
            opened |= proven(device, scene)
    return opened


def _for_purpose(device: DeviceDoc, step: StepDoc, scene: Scene) -> StepDoc:
    causes = scene.causes
    from probe_core.readiness.purpose import by_purpose

    return by_purpose(device, step, causes)


def conclude(devices: Iterable[DeviceDoc]) -> None:
    """Add the step `visible` to each accelerator, once its `visibility` is there."""
    for device in devices:
        if device["kind"] in ACCELERATORS and device.get("readiness"):
            device["readiness"] = with_visible(device["readiness"], visible(device))


def reopen(devices: Iterable[DeviceDoc]) -> None:
    """Take the step `visible` out again, before visibility is worked out for other variables."""
    for device in devices:
        steps = (device.get("readiness") or {}).get("steps", ())
        judged = [step for step in steps if step["step"] != "visible"]
        if len(judged) < len(steps):
            device["readiness"] = conclusion(judged)
