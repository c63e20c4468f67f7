"""Old exo's two types: same fields, units, strings and coercions, so that peers still agree."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, PrivateAttr

from probe_exo.rule import Facts

__all__ = ["TFLOPS", "DeviceCapabilities", "DeviceFlops", "capabilities_of"]

TFLOPS = 1.00
"""The unit of `DeviceFlops`."""


class DeviceFlops(BaseModel):
    """Peaks in TFLOPS (TOPS for int8); 0.0 is unknown."""

    fp32: float
    fp16: float
    int8: float

    def __str__(self) -> str:
        parts = ((name, getattr(self, name) / TFLOPS) for name in ("fp32", "fp16", "int8"))
        return ", ".join(f"{name}: {value:.2f} TFLOPS" for name, value in parts)

    def to_dict(self) -> dict[str, float]:
        """Return the three numbers."""
        return self.model_dump()


class DeviceCapabilities(BaseModel):
    """A node as old exo's peers know it. `memory` is the total in MiB."""

    model: str
    chip: str
    memory: int
    flops: DeviceFlops
    _reasons: dict[str, str] = PrivateAttr(default_factory=dict)

    def __str__(self) -> str:
        return (
            f"Model: {self.model}. Chip: {self.chip}. Memory: {self.memory}MB. Flops: {self.flops}"
        )

    def __eq__(self, other: object) -> bool:
        # Why a number is 0 is no part of what a node can do.
        if not isinstance(other, DeviceCapabilities):
            return NotImplemented
        return self.model_dump() == other.model_dump()

    __hash__ = None  # type: ignore[assignment]  # mutable, as upstream

    def explained(self, reasons: Mapping[str, str]) -> DeviceCapabilities:
        """Add to `reasons`, and return itself."""
        self._reasons.update(reasons)
        return self

    @property
    def reasons(self) -> Mapping[str, str]:
        """Field → why it is 0 or incomplete; empty for an instance that was not probed."""
        return MappingProxyType(self._reasons)

    def to_dict(self) -> dict[str, Any]:
        """Return model, chip, memory and flops."""
        return {
            "model": self.model,
            "chip": self.chip,
            "memory": self.memory,
            "flops": self.flops.to_dict(),
        }


def capabilities_of(facts: Facts) -> DeviceCapabilities:
    """Return a fresh instance: callers may change theirs."""
    return DeviceCapabilities(
        model=facts.model,
        chip=facts.chip,
        memory=facts.memory,
        flops=DeviceFlops(fp32=facts.fp32, fp16=facts.fp16, int8=facts.int8),
    ).explained(facts.reasons)
