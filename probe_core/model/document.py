"""Types of the plain data that the steps of a probe hand on, and of the report that they end in.

For type checkers alone: no module imports this while it runs, so that `typing` costs nobody its
start. What stands between the marks is made from the tables of fields: `python docs/generate.py`.

Every key of a report is written down here. What a newer core wrote passes through unread.
"""

from __future__ import annotations

from typing import Literal, NotRequired, Required, TypeAlias, TypedDict

from probe_core.model.device_document import ChipDoc as ChipDoc
from probe_core.model.device_document import DeviceDoc as DeviceDoc
from probe_core.model.device_document import EccDoc as EccDoc
from probe_core.model.device_document import Json as Json
from probe_core.model.device_document import Kind as Kind
from probe_core.model.device_document import LeaseDoc as LeaseDoc
from probe_core.model.device_document import LinkDoc as LinkDoc
from probe_core.model.device_document import MeasuredDoc as MeasuredDoc
from probe_core.model.device_document import MemoryDoc as MemoryDoc
from probe_core.model.device_document import OtherDoc as OtherDoc
from probe_core.model.device_document import PciDoc as PciDoc
from probe_core.model.device_document import PeakDoc as PeakDoc
from probe_core.model.device_document import PowerDoc as PowerDoc
from probe_core.model.device_document import ReadinessDoc as ReadinessDoc
from probe_core.model.device_document import Sighting as Sighting
from probe_core.model.device_document import SightingMemory as SightingMemory
from probe_core.model.device_document import StepDoc as StepDoc
from probe_core.model.device_document import ViewDoc as ViewDoc
from probe_core.model.device_document import VisibilityDoc as VisibilityDoc

__all__ = [
    "AnswerDoc",
    "ChipDoc",
    "DecisionDoc",
    "DeviceDoc",
    "EccDoc",
    "FindingDoc",
    "Json",
    "Kind",
    "LeaseDoc",
    "LinkDoc",
    "MeasuredDoc",
    "MemoryDoc",
    "NodeDoc",
    "NodeMemoryDoc",
    "OtherDoc",
    "OutcomeDoc",
    "OutcomeFacts",
    "PciDoc",
    "PeakDoc",
    "PowerDoc",
    "ReadinessDoc",
    "ReportDoc",
    "Sighting",
    "SightingMemory",
    "StepDoc",
    "ViewDoc",
    "VisibilityDoc",
]

Severity: TypeAlias = Literal["info", "warning", "error"]
Fallback: TypeAlias = Literal["no-accelerator", "degraded"]


class NodeMemoryDoc(TypedDict, total=False):
    """The system's memory, in bytes."""

    # begin generated: NodeMemoryDoc
    total: Required[int | None]
    available: Required[int | None]
    limit: Required[int | None]
    limited_by: str | None
    devices: int | None

    # end generated


class NodeDoc(TypedDict, total=False):
    """The machine itself."""

    # begin generated: NodeDoc
    os: Required[str]
    kernel: Required[str | None]
    arch: Required[str]
    model: Required[str | None]
    id: Required[str | None]
    host: Required[str | None]
    time: Required[str | None]
    container: Required[str | None]
    vm: Required[str | None]
    cgroup: Required[str | None]
    memory: Required[NodeMemoryDoc]

    # end generated


class OutcomeFacts(TypedDict, total=False):
    """What is known of how a run ended, beside its reason; only what is known is there."""

    # begin generated: OutcomeFacts
    code: str
    fix: str
    phase: str
    signal: str
    exit_status: int
    stuck_at: str
    avoided: list[str]
    replayed: bool

    # end generated


class OutcomeDoc(TypedDict, total=False):
    """How one prober's run ended."""

    # begin generated: OutcomeDoc
    prober: Required[str]
    distribution: Required[str]
    status: Required[str]
    reason: Required[str | None]
    partial: Required[bool]
    devices: Required[int]
    elapsed_ms: Required[float]
    code: str | None
    fix: str | None
    phase: str | None
    signal: str | None
    exit_status: int | None
    stuck_at: str | None
    avoided: list[str] | None
    replayed: bool | None
    stderr: list[str]

    # end generated


class DecisionDoc(TypedDict, total=False):
    """Whether a prober was run."""

    # begin generated: DecisionDoc
    prober: Required[str]
    distribution: Required[str]
    selected: Required[bool]
    cause: str | None
    reason: Required[str | None]
    priority: int
    deadline_s: float
    active: bool
    setting: str | None
    variable: str | None

    # end generated


class FindingDoc(TypedDict, total=False):
    """What a person should know. Code reads the facts; the sentences are for people."""

    # begin generated: FindingDoc
    code: Required[str]
    severity: Required[Severity]
    what: Required[str]
    why: Required[str]
    fix: Required[str]
    device: Required[str | None]
    prober: Required[str | None]
    setting: Required[str | None]
    variable: Required[str | None]
    step: Required[str | None]
    evidence: Required[str | None]

    # end generated


class AnswerDoc(TypedDict):
    """What a runtime answered when it was queried itself (an active probe).

    `devices` are the ids that it shows, in its order; None when it could not be queried. `expected`
    are the lists that the rules allow, more than one where only the driver knows. `agrees` is
    whether the answer is one of them, None without an answer. `status` is the outcome's, `said` a
    sentence for people.
    """

    devices: list[str] | None
    expected: list[list[str]]
    agrees: bool | None
    status: str
    said: str
    code: NotRequired[str]


class ReportDoc(TypedDict):
    """The whole answer."""

    schema: int
    probe_core: str
    chipdb: str | None
    node: NodeDoc
    primary: str | None
    devices: list[DeviceDoc]
    outcomes: list[OutcomeDoc]
    decisions: list[DecisionDoc]
    fallback: Fallback | None
    findings: list[FindingDoc]
    timings_ms: dict[str, float]
    asked: NotRequired[dict[str, AnswerDoc]]
