"""The machine itself, and what its probers did: node, decisions, outcomes and findings."""

from __future__ import annotations

import attrs

from probe_core.model.frozen import EMPTY, FrozenTable
from probe_core.model.node_fields import NODE, NODE_MEMORY
from probe_core.model.views import view

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import NetworkDoc

__all__ = ["Decision", "Finding", "Node", "NodeMemory", "Outcome", "node_of"]


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
    """kubernetes, docker, podman, lxc, systemd-nspawn, flatpak, snap or container; null in none
    that shows itself."""
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
