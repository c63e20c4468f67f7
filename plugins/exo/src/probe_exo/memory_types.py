"""What `node_memory` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from probe_exo.plain import no_reasons

__all__ = ["AcceleratorMemory", "NodeMemory"]


@dataclass(frozen=True, slots=True)
class AcceleratorMemory:
    """Memory of one GPU that counts, in bytes; None is unknown."""

    id: str
    """The device's id in the report."""
    name: str | None
    """As its driver calls it."""
    total: int | None
    """All of it."""
    available: int | None
    """What of it is free."""
    age_s: float | None
    """How old `available` is, in seconds; 0.0 when read now."""


@dataclass(frozen=True, slots=True)
class NodeMemory:
    """Bytes; None is unknown, see `reasons`."""

    ram_total: int | None
    """The system's, within the control group's limit."""
    ram_available: int | None
    """What of it can be taken now, or what OVERRIDE_MEMORY_MB says, as exo reads it."""
    swap_total: int | None
    """All swap space."""
    swap_available: int | None
    """What of it is free."""
    vram_total: int | None
    """Dedicated memory of all visible GPUs; None where there is none."""
    vram_available: int | None
    """What of it is free."""
    vram_age_s: float | None
    """How old `vram_available` is, in seconds; 0.0 when read now."""
    unified: bool
    """Whether a model lies in the system's memory."""
    usable_total: int | None
    """What a model can at most lie in: dedicated memory, or what the GPU reaches of the system's,
    or without a GPU the system's."""
    usable_available: int | None
    """What of it can be taken now, or what OVERRIDE_MEMORY_MB says: what placement should read."""
    accelerators: tuple[AcceleratorMemory, ...] = ()
    """The GPUs with memory of their own that count."""
    accelerated: bool = False
    """Whether a GPU counts, with memory of its own or the system's."""
    reasons: Mapping[str, str] = field(default_factory=no_reasons)
    """Field → why it is unknown or not the system's own figure."""
