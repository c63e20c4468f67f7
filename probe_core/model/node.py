"""The machine itself, and what its probers did: node, decisions, outcomes and findings."""

from __future__ import annotations

import attrs

__all__ = ["Decision", "Finding", "Node", "NodeMemory", "Outcome"]


@attrs.frozen
class NodeMemory:
    """The system's memory, in bytes."""

    total: int | None = None
    """All of the machine's memory."""
    available: int | None = None
    """What can be taken now without swapping, within `limit`."""
    limit: int | None = None
    """The smallest limit of the control groups this process is in; None without one."""


@attrs.frozen
class Node:
    """The machine itself."""

    os: str | None = None
    """``linux``, ``darwin`` or ``windows``."""
    kernel: str | None = None
    """Release of the kernel."""
    arch: str | None = None
    """Architecture as ``uname -m`` names it: ``x86_64``, ``aarch64``."""
    model: str | None = None
    """The board's or product's name, as firmware gives it."""
    memory: NodeMemory = NodeMemory()
    """The system's memory."""


@attrs.frozen
class Outcome:
    """How one prober's run ended."""

    prober: str
    """Its name."""
    status: str
    """One of `probe_core.isolation.run.STATUSES`."""
    distribution: str = ""
    """Who ships it, with version."""
    reason: str | None = None
    """Why, for every status but ``ok``."""
    partial: bool = False
    """Whether devices arrived before it failed."""
    devices: int = 0
    """How many devices it reported."""
    elapsed_ms: float = 0.0
    """How long it took."""
    code: str | None = None
    """The prober's own word for why, for scripts."""
    fix: str | None = None
    """What would help."""
    stderr: tuple[str, ...] = ()
    """The last lines it wrote, when it failed."""
    phase: str | None = None
    """Where it failed: ``start`` (its process), ``import`` (its module) or ``call`` (its hook)."""
    signal: str | None = None
    """Name of the signal that killed its process: ``SIGSEGV``."""
    exit_status: int | None = None
    """Status with which its process exited before it had answered."""
    stuck_at: str | None = None
    """The line that ran at the deadline: ``/path/prober.py:5 in probe_devices``."""


@attrs.frozen
class Decision:
    """Whether a prober was run."""

    prober: str
    """Its name."""
    selected: bool
    """Whether it was run."""
    distribution: str = ""
    """Who ships it, with version."""
    cause: str | None = None
    """Word for scripts: ``blocked``, ``when``, ``api``, ``shadowed``, ``trust`` …"""
    reason: str | None = None
    """Why not."""
    priority: int = 100
    """Its priority, after the settings."""
    deadline_s: float = 5.0
    """Its deadline in seconds, after the settings."""
    active: bool = False
    """Whether it opens devices."""


@attrs.frozen
class Finding:
    """Something a person should know."""

    code: str
    """Word for scripts."""
    severity: str
    """``info``, ``warning`` or ``error``."""
    what: str
    """What was found."""
    why: str
    """Its cause."""
    fix: str
    """What would help."""
    device: str | None = None
    """Id of the device it is about."""
    prober: str | None = None
    """Name of the prober it is about, or that reported it."""
    setting: str | None = None
    """The setting that matters, as `config.SETTINGS` names it."""
    variable: str | None = None
    """The environment variable that matters."""
    step: str | None = None
    """The step of readiness that it breaks."""
    evidence: str | None = None
    """What it was read from: a path and its content, an error code, a library's own text."""
