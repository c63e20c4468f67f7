"""The report as one value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from probe_core.model.complete import check
from probe_core.model.device import Device, device_of
from probe_core.model.frozen import EMPTY, FrozenTable, freeze, thaw
from probe_core.model.kinds import ACCELERATORS
from probe_core.model.node import Decision, Finding, Node, Outcome, node_of
from probe_core.model.readiness import blocking_step_of
from probe_core.model.report_fields import DECISION, FINDING, OUTCOME, REPORT
from probe_core.model.runtimes import canonical, in_runtime_order
from probe_core.model.views import view

if TYPE_CHECKING:
    from probe_core.model.document import ReportDoc

__all__ = ["Report"]


@attrs.frozen
class Report:
    """What this node is."""

    node: Node
    """The machine."""
    devices: tuple[Device, ...]
    """Accelerators first, then CPUs, then displays; never empty."""
    primary: str | None
    """Id of the device to use first."""
    outcomes: tuple[Outcome, ...]
    """How each prober's run ended."""
    decisions: tuple[Decision, ...]
    """Which probers were run, and why the others were not."""
    findings: tuple[Finding, ...]
    """What a person should know, worst first."""
    fallback: str | None
    """None, ``no-accelerator`` or ``degraded``."""
    chipdb: str | None
    """Version of the chip data."""
    probe_core: str
    """Version of the core that made the report."""
    timings_ms: Mapping[str, float]
    """Milliseconds per step."""
    schema: int = 1
    """Number of the document's schema."""
    _document: FrozenTable = attrs.field(default=EMPTY, repr=False, eq=False)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Report:
        """Return the view of a document; fields it does not have keep their defaults.

        Fields that this version does not know stay in `to_json()`. Raises `ValueError` for a
        document of another schema, without devices, or with a field of the wrong type, which the
        message names.
        """
        if document.get("schema") != 1:
            raise ValueError(f"a report of schema {document.get('schema')!r}; this core reads 1")
        plain = thaw(document if isinstance(document, dict) else dict(document))
        check(plain, REPORT)
        if not plain.get("devices"):
            raise ValueError("the report has no devices")
        return cls.of(plain)

    @classmethod
    def of(cls, document: ReportDoc) -> Report:
        """Return the view of a document that is known to be sound: what the core itself made."""
        frozen: FrozenTable = freeze(document)
        return cls(
            node=node_of(frozen.get("node") or EMPTY),
            devices=tuple(device_of(device) for device in frozen["devices"]),
            primary=frozen.get("primary"),
            outcomes=tuple(view(Outcome, row, OUTCOME) for row in frozen.get("outcomes") or ()),
            decisions=tuple(view(Decision, row, DECISION) for row in frozen.get("decisions") or ()),
            findings=tuple(view(Finding, row, FINDING) for row in frozen.get("findings") or ()),
            fallback=frozen.get("fallback"),
            chipdb=frozen.get("chipdb"),
            probe_core=frozen.get("probe_core") or "",
            timings_ms=frozen.get("timings_ms") or EMPTY,
            schema=1,
            document=frozen,
        )

    def to_json(self) -> ReportDoc:
        """Return the document as plain data, to be changed at will."""
        document: ReportDoc = thaw(self._document)
        return document

    @property
    def primary_device(self) -> Device:
        """The device to use first; the CPU when there is no accelerator."""
        return next((d for d in self.devices if d.id == self.primary), self.devices[0])

    @property
    def accelerators(self) -> tuple[Device, ...]:
        """GPUs, NPUs and other accelerators, hidden ones too."""
        return tuple(d for d in self.devices if d.kind in ACCELERATORS)

    def device(self, identity: str) -> Device | None:
        """Return the device that has this id, or None."""
        return next((d for d in self.devices if identity in d.ids or d.id == identity), None)

    def visible(self, runtime: str) -> tuple[Device, ...]:
        """Return the devices that a runtime (``cuda``, ``hip`` …) surely shows, in its order.

        A device that a step of its readiness keeps from this process is not among them.
        """
        name = canonical(runtime)
        usable = [device for device in self.devices if not _is_blocked(device)]
        places = in_runtime_order(device.visibility.get(name) for device in usable)
        return tuple(usable[place] for place in places)

    def __iter__(self) -> Iterator[Device]:
        return iter(self.devices)


def _is_blocked(device: Device) -> bool:
    readiness = device.readiness
    return blocking_step_of(readiness.state, readiness.broken, readiness.steps) is not None
