"""Types of the doctor's document. For type checkers alone: no module imports this while it runs."""

from __future__ import annotations

from typing import Literal, NotRequired, TypeAlias, TypedDict

from probe_core.model.document import FindingDoc, ReadinessDoc

Status: TypeAlias = Literal["passed", "failed", "unknown", "not_applicable"]


class CheckFindingDoc(FindingDoc):
    """A finding of a check. `action` is what its fix does, of a cause of the core.

    The last three are of checks that read an environment.

    `wheel` is a distribution with its version, "torch 2.9.1+cu128"; `has` says for which
    devices it has code, `needs` what this device, or the distribution, would need.
    """

    action: NotRequired[ActionDoc]
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


class ActionDoc(TypedDict):
    """What a fix does, for programs; `fix` has the same as a sentence.

    `command` is what a person copies, None where it takes a person. `where` is one of
    `readiness.actions.PLACES`; `root` is whether it needs root there. `precondition` names the
    situation that was read from the machine, None of the general sentence. `changes` and `removes`
    are "KIND NAME", such as "package nvidia-utils"; `undo` is None where the opposite is not known.
    """

    command: str | None
    where: str
    root: bool
    precondition: str | None
    changes: list[str]
    removes: list[str]
    undo: str | None
    reboots: bool


class FollowsDoc(TypedDict):
    """A finding that follows from another: it goes with it."""

    code: str
    what: str


class ShownFindingDoc(CheckFindingDoc):
    """A finding as the doctor gives it: `devices` are all that share it, where several do.

    `contradicts` is what the report has against it, of a device that the report has in use: the
    device's readiness in this document is the worse of the two.
    """

    contradicts: NotRequired[str]
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

    `driver` is its name and version, `link` its own PCIe hop, `memory` its total in bytes, `state`
    the word that the table of devices has.
    """

    id: str
    name: str | None
    kind: str
    vendor: str | None
    driver: str | None
    link: str | None
    memory: int | None
    state: str
    readiness: ReadinessDoc


class NodeDoc(TypedDict):
    """The node's verdict, as `probe_core.model.verdict` has it.

    `state` is good, reduced, bad, none or unknown. `usable` are the ids of what this process may
    use, `grantable` of what a job can be given, `missing` of what no job can be given though nobody
    chose so, `set_aside` of what somebody keeps from jobs on purpose. `cause` is the code of the
    first that is missing, else of the report's gravest finding above a notice.
    """

    state: str
    usable: list[str]
    grantable: list[str]
    missing: list[str]
    set_aside: list[str]
    cause: str | None


class ChangeDoc(TypedDict):
    """What differs from the baseline: `fact` is its name, `before` and `now` its values."""

    fact: str
    before: str | None
    now: str | None


class DoctorDoc(TypedDict):
    """The whole answer. `healthy` is whether nothing that was looked at is an error.

    That is no finding, before what follows from another is folded under it; and no device that is
    missing, or was ready when the baseline was saved; and a report that is not `degraded`, in which
    a prober failed and no accelerator was found. It is None where the node's state is unknown:
    nothing is wrong, and nothing is known to be well. `node` is absent where one device alone, or
    some of the checks, were asked for. `baseline` is absent without one; `lost` in it are devices
    that were ready then. `wheels` is there with `--env`: what each distribution with GPU code does
    on each device.
    """

    schema: int
    probe_core: str
    system: str
    healthy: bool | None
    node: NotRequired[NodeDoc]
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
