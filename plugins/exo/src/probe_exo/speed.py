"""How fast the engine that exo's runner uses reads weights: what a split of layers goes by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from probe_cluster.planning.efficiency import efficiency_of
from probe_cluster.planning.members import member
from probe_exo.engines import RUNNERS, uses
from probe_exo.installed import Installed, installed_engines
from probe_exo.node import node_document


@dataclass(frozen=True, slots=True)
class EngineSpeed:
    """A token costs a node its weights' bytes / `bandwidth` + its layers × `layer_seconds`."""

    backend: str
    """A value of exo's `Backend`."""
    device: str
    """Id in the report of the one device that it uses."""
    bandwidth: float | None
    """Bytes per second: what engines were published to reach on such a device of the memory's own,
    or what `probe bench` read there; None is unknown."""
    layer_seconds: float = 0.0
    """Seconds of a layer of a dense model beyond its bytes; 0 where nothing was published."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """``bandwidth`` → why it is unknown; ``basis`` → what the figures rest on."""


def engine_speed() -> EngineSpeed | None:
    """Return the speed of this node's engine; None where none is known. Blocks for a probe."""
    return speed_of(node_document(), installed_engines())


def speed_of(document: Mapping[str, Any], installed: Installed) -> EngineSpeed | None:
    """Return the speed of the engine that exo's runner uses, of any report's node.

    One device counts, as for its memory. A class of device for which no speed of MLX was published
    takes the figures of llama.cpp on it.
    """
    use = next((use for use in uses(document, installed) if use.backend in RUNNERS), None)
    if use is None or use.device is None:
        return None
    offer = member("", document, devices=(use.device,), engine="mlx")
    efficiency = offer.efficiency or efficiency_of(offer.class_, "llama.cpp")
    reasons = {} if efficiency is None else {"basis": efficiency.basis}
    if offer.bandwidth is None:
        reasons["bandwidth"] = offer.reasons.get("bandwidth", "the report does not tell it")
        return EngineSpeed(use.backend, use.device, None, reasons=reasons)
    if efficiency is None:
        reasons["basis"] = "the memory's own peak: no speed was published on such a device"
        return EngineSpeed(use.backend, use.device, offer.bandwidth, reasons=reasons)
    rate, beyond = offer.bandwidth * efficiency.share, efficiency.layer_seconds("dense")
    return EngineSpeed(use.backend, use.device, rate, beyond, reasons)
