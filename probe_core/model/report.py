"""The report as one value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from probe_core.model.device import Device, device_of
from probe_core.model.kinds import ACCELERATORS
from probe_core.model.node import Decision, Finding, Node, NodeMemory, Outcome
from probe_core.model.plain import EMPTY, build, freeze, thaw
from probe_core.model.runtimes import canonical, in_runtime_order

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
    _document: Mapping[str, Any] = attrs.field(default=EMPTY, repr=False, eq=False)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Report:
        """Return the view of a document; fields it does not have keep their defaults.

        Raises `ValueError` for a document of another schema, or without devices.
        """
        if document.get("schema") != 1:
            raise ValueError(f"a report of schema {document.get('schema')!r}; this core reads 1")
        try:
            devices = tuple(device_of(one) for one in document["devices"])
        except (KeyError, TypeError) as error:
            raise ValueError(f"a device of the report lacks {error}") from None
        if not devices:
            raise ValueError("the report has no devices")
        node = document.get("node") or {}
        return cls(
            node=attrs.evolve(build(Node, node), memory=build(NodeMemory, node.get("memory"))),
            devices=devices,
            primary=document.get("primary"),
            outcomes=tuple(build(Outcome, one) for one in document.get("outcomes", ())),
            decisions=tuple(build(Decision, one) for one in document.get("decisions", ())),
            findings=tuple(build(Finding, one) for one in document.get("findings", ())),
            fallback=document.get("fallback"),
            chipdb=document.get("chipdb"),
            probe_core=document.get("probe_core", ""),
            timings_ms=freeze(document.get("timings_ms", {})),
            schema=1,
            document=freeze(dict(document)),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the document as plain data, to be changed at will."""
        document: dict[str, Any] = thaw(self._document)
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
        """Return the devices that a runtime (``cuda``, ``hip`` …) surely shows, in its order."""
        name = canonical(runtime)
        entries: list[Any] = [device.visibility.get(name) for device in self.devices]
        return tuple(self.devices[place] for place in in_runtime_order(entries))

    def __iter__(self) -> Iterator[Device]:
        return iter(self.devices)
