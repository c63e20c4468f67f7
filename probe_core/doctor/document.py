"""Types of the doctor's document. For type checkers alone: no module imports this while it runs."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from probe_core.doctor.check import CheckFindingDoc, ResultDoc, Status
from probe_core.model.document import ReadinessDoc

__all__ = ["ChangeDoc", "CheckDoc", "DeviceStateDoc", "DoctorDoc", "FollowsDoc", "ShownFindingDoc"]


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
    """One accelerator, and whether this process can use it."""

    id: str
    name: str | None
    kind: str
    vendor: str | None
    readiness: ReadinessDoc


class ChangeDoc(TypedDict):
    """What differs from the baseline: `fact` is its name, `before` and `now` its values."""

    fact: str
    before: str | None
    now: str | None


class DoctorDoc(TypedDict):
    """The whole answer. `healthy` is whether no finding is an error.

    `changed` is absent without a baseline; `lost` in it are devices that were ready then.
    """

    schema: int
    probe_core: str
    system: str
    healthy: bool
    findings: list[ShownFindingDoc]
    devices: list[DeviceStateDoc]
    checks: list[CheckDoc]
    baseline: NotRequired[BaselineDoc]


class BaselineDoc(TypedDict):
    """The comparison with what `--save` kept. `saved` is when, in UTC."""

    saved: str
    lost: list[str]
    changed: list[ChangeDoc]


Answer = tuple[str, ResultDoc, float]
"""A check's code, its result and its milliseconds."""
