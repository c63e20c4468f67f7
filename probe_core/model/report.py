"""The machine itself, and what its probers did: node, decisions, outcomes and findings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from probe_core.model.complete import check
from probe_core.model.device import EMPTY, Device, FrozenTable, device_of, freeze, thaw, view
from probe_core.model.kinds import ACCELERATORS
from probe_core.model.readiness import blocking_step_of, canonical, in_runtime_order
from probe_core.model.report_fields import DECISION, FINDING, NODE, NODE_MEMORY, OUTCOME, REPORT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import NetworkDoc, ReportDoc


@attrs.frozen
class NodeMemory:
    """The system's memory, in bytes."""

    # begin generated: NodeMemory
    total: int | None = None
    """All of the machine's memory, in bytes."""
    available: int | None = None
    """What can be taken now without swapping, within the limit, in bytes."""
    limit: int | None = None
    """The smallest limit of the cgroups this process is in; null without one, in bytes."""
    limited_by: str | None = None
    """Where that limit is written: the path of a control group's file."""
    devices: int | None = None
    """Memory of GPUs that the kernel lists as NUMA nodes; not a part of the others, in bytes."""

    # end generated


@attrs.frozen
class Node:
    """The machine itself."""

    # begin generated: Node
    os: str | None = None
    """linux, darwin, windows, or what Python calls the system."""
    kernel: str | None = None
    """Release of the kernel."""
    arch: str | None = None
    """Architecture as uname -m names it: x86_64, aarch64."""
    model: str | None = None
    """The board's or product's name, as firmware gives it."""
    id: str | None = None
    """Stable id of the node: a keyed hash of its machine id; null where there is none, in a
    container of an image, and with the setting anonymous."""
    host: str | None = None
    """The host's name, with the setting hostname."""
    time: str | None = None
    """When it was probed: UTC, as 2026-11-22T09:30:00.000Z, which sorts as text; null of a
    recorded machine."""
    container: str | None = None
    """kubernetes, apptainer, docker, podman, lxc, systemd-nspawn, flatpak, snap or container; null
    in none that shows itself."""
    vm: str | None = None
    """Kind of virtual machine: kvm, qemu, vmware, hyper-v, xen, wsl …; vm where the kind is not
    known; null in none that shows itself."""
    cgroup: str | None = None
    """Who made the cgroup of this process: slurm, kubernetes, docker, podman, lxc, user, system,
    machine, root or other."""
    memory: NodeMemory = NodeMemory()
    """The system's memory."""
    network: tuple[NetworkDoc, ...] = ()
    """Links to other nodes: interfaces of hardware, RDMA ports, Thunderbolt connections; no packet
    is sent."""

    # end generated


@attrs.frozen
class Outcome:
    """How one prober's run ended."""

    # begin generated: Outcome
    prober: str
    """Its name."""
    distribution: str
    """The distribution that ships it, with version."""
    status: str
    """How it ended."""
    reason: str | None = None
    """Why; never null unless the status is ok."""
    partial: bool = False
    """Whether devices arrived before it failed."""
    devices: int = 0
    """How many devices it reported."""
    elapsed_ms: float = 0
    """How long it took, in milliseconds."""
    code: str | None = None
    """The prober's own word for why, for scripts."""
    fix: str | None = None
    """What would help."""
    phase: str | None = None
    """Where it failed: start (its process), import (its module), call (its hook) or cleanup (after
    all its devices were read)."""
    signal: str | None = None
    """Name of the signal that killed its process: SIGSEGV."""
    exit_status: int | None = None
    """Status with which its process exited before it had answered."""
    stuck_at: str | None = None
    """The line that ran at the deadline: /path/prober.py:5 in probe_devices."""
    avoided: tuple[str, ...] = ()
    """Devices over which its process hung, died or raised; another process read the others."""
    replayed: bool | None = None
    """Whether it is the answer of a recording, and no process ran."""
    stderr: tuple[str, ...] = ()
    """The last lines that it wrote, where it failed or `verbose` is set."""

    # end generated


@attrs.frozen
class Decision:
    """Whether a prober was run."""

    # begin generated: Decision
    prober: str
    """Its name."""
    distribution: str
    """The distribution that ships it, with version."""
    selected: bool = False
    """Whether it was run."""
    cause: str | None = None
    """Word for scripts: blocked, when, api, shadowed, trust, sealed, active, veto, unkillable,
    rejected, no-child."""
    reason: str | None = None
    """Why it was not run; null when it was."""
    priority: int = 100
    """Its priority from 1 to 999, after the settings."""
    deadline_s: float = 5.0
    """Its deadline, after the settings, in seconds."""
    active: bool = False
    """Whether it opens devices."""
    setting: str | None = None
    """The setting that kept it from running, by its name in the settings."""
    variable: str | None = None
    """The environment variable that set it."""

    # end generated


@attrs.frozen
class Finding:
    """Something a person should know."""

    # begin generated: Finding
    code: str
    """Word for scripts: see the core's list of codes; probers add theirs."""
    what: str
    """What was found."""
    why: str
    """Its cause."""
    fix: str
    """What would help."""
    severity: str = "info"
    """info, warning or error."""
    device: str | None = None
    """Id of the device it is about."""
    prober: str | None = None
    """Name of the prober it is about, or that reported it."""
    setting: str | None = None
    """The setting that matters, by its name in the settings."""
    variable: str | None = None
    """The environment variable that matters."""
    step: str | None = None
    """The step of readiness that it breaks."""
    evidence: str | None = None
    """What it was read from: a path and its content, an error code, a library's own text."""

    # end generated


def node_of(table: FrozenTable) -> Node:
    """Return the view of the node of a frozen document."""
    memory = view(NodeMemory, table.get("memory") or EMPTY, NODE_MEMORY)
    return attrs.evolve(view(Node, table, NODE), memory=memory)


# The report as one value.


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
