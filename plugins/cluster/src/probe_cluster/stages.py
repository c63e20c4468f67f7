"""How long one layer takes on a node, and how many layers its memory holds."""

from __future__ import annotations

from probe_cluster.members import Member
from probe_cluster.model import Model

__all__ = ["RESERVE", "layer_cap", "prompt_seconds", "token_seconds"]

# Activations and buffers grow with the batch, which a plan does not know: a judgement.
RESERVE = 0.05
"""Share of each memory left for activations and the runtime's own buffers: our declared default."""

_TERA = 1e12


def token_seconds(member: Member, model: Model) -> float | None:
    """Return the least time of one layer for one token, or None when the bandwidth is not known.

    Decoding reads every active weight once per token: memory bandwidth bounds it, unless the
    arithmetic takes longer still (S. Williams et al., "Roofline", CACM 52(4), 2009). Peaks are
    theoretical, so this is a lower bound, unless what devices of its class reach is known.
    """
    if member.bandwidth is None:
        return None
    reading = model.layer_read_bytes / member.bandwidth
    efficiency = member.efficiency
    if efficiency is None:
        return max(reading, prompt_seconds(member, model) or 0.0)
    reading /= efficiency.share
    beyond = efficiency.layer_seconds(model.kind)
    return max(reading, prompt_seconds(member, model) or 0.0) + beyond


def prompt_seconds(member: Member, model: Model) -> float | None:
    """Return the least time of one layer per prompt token: arithmetic bounds it. None: unknown."""
    tera = member.fp16 if member.fp16 is not None else member.fp32
    return None if tera is None else model.layer_operations / (tera * _TERA)


def layer_cap(member: Member, model: Model, use: str, reserve: float) -> int:
    """Return how many whole layers the node's memories hold, `reserve` of each left free.

    Raises `ClusterError` when the node's memory is not known.
    """
    return sum(int(pool * (1 - reserve)) // model.layer_bytes for pool in member.usable(use))
