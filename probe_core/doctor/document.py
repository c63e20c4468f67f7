"""Types of the doctor's document. For type checkers alone: no module imports this while it runs."""

from __future__ import annotations

from typing import Literal, NotRequired, TypeAlias, TypedDict

from probe_core.model.document import FindingDoc, ReadinessDoc

__all__ = [
    "BaselineDoc",
    "ChangeDoc",
    "CheckDoc",
    "CheckFindingDoc",
    "DeviceStateDoc",
    "DoctorDoc",
    "FollowsDoc",
    "ResultDoc",
    "ShownFindingDoc",
    "Status",
    "WheelDoc",
]

Status: TypeAlias = Literal["passed", "failed", "unknown", "not_applicable"]


class CheckFindingDoc(FindingDoc):
    """A finding of a check. The last three are of checks that read an environment.

    `wheel` is a distribution with its version, "torch 2.9.1+cu128"; `has` says for which
    devices it has code, `needs` what this device, or the distribution, would need.
    """

    wheel: NotRequired[str]
    has: NotRequired[str]
    needs: NotRequired[str]


class WheelDoc(TypedDict):
    """Whether an installed distribution with GPU code runs on devices of this node.

    `verdict` is one of `doctor.answers.VERDICTS`, `devices` are the ids that it holds for, and
    `reason` is a sentence. `has` and `needs` are as in a finding.
    """

    wheel: str
    devices: list[str]
    verdict: str
    has: str
    needs: str
    reason: str


class ResultDoc(TypedDict):
    """One check's answer: plain data, because it may come from another process.

    `reason` is None for `passed` and `failed`, and a sentence for the other two. `fix` is how
    an `unknown` check could look: a command. `facts` are for the baseline (`--save`): what is
    compared later where a device that was ready is not any more, such as a wheel's version.
    `wheels` are the verdicts of a check that reads an environment, the good ones, too.
    """

    status: Status
    findings: list[CheckFindingDoc]
    reason: str | None
    fix: NotRequired[str]
    facts: NotRequired[dict[str, str]]
    wheels: NotRequired[list[WheelDoc]]


class FollowsDoc(TypedDict):
    """A finding that follows from another: it goes with it."""

    code: str
    what: str


class ShownFindingDoc(CheckFindingDoc):
    """A finding as the doctor gives it: `devices` are all that share it, where several do."""

    devices: NotRequired[list[str]]
    follows: NotRequired[list[FollowsDoc]]


class CheckDoc(TypedDict):
    """How one check ended. `distribution` is whose it is, absent for the core's own."""

    code: str
    status: Status
    ms: float
    reason: NotRequired[str]
    fix: NotRequired[str]
    distribution: NotRequired[str]


class DeviceStateDoc(TypedDict):
    """One accelerator, and whether this process can use it.

    `driver` is its name and version, `link` its own PCIe hop, `memory` its total in bytes.
    """

    id: str
    name: str | None
    kind: str
    vendor: str | None
    driver: str | None
    link: str | None
    memory: int | None
    readiness: ReadinessDoc


class ChangeDoc(TypedDict):
    """What differs from the baseline: `fact` is its name, `before` and `now` its values."""

    fact: str
    before: str | None
    now: str | None


class DoctorDoc(TypedDict):
    """The whole answer. `healthy` is whether no finding is an error.

    `baseline` is absent without one; `lost` in it are devices that were ready then. `wheels` is
    there with `--env`: what each distribution with GPU code does on each device.
    """

    schema: int
    probe_core: str
    system: str
    healthy: bool
    findings: list[ShownFindingDoc]
    devices: list[DeviceStateDoc]
    checks: list[CheckDoc]
    wheels: NotRequired[list[WheelDoc]]
    baseline: NotRequired[BaselineDoc]


class BaselineDoc(TypedDict):
    """The comparison with what `--save` kept. `saved` is when, in UTC."""

    saved: str
    lost: list[str]
    changed: list[ChangeDoc]
