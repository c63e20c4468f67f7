"""Does a model fit, by a declared policy, and what would."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from probe_cluster.errors import ClusterError
from probe_cluster.members import Member
from probe_cluster.model import Model
from probe_cluster.stages import RESERVE, check_reserve, layer_cap, undivided
from probe_core.wording import gib

__all__ = ["POLICIES", "Fit", "fit"]

POLICIES = {
    "available": "every layer is in memory that is available now",
    "total": "every layer is in memory, were all of it free",
    "home": "all nodes together have at least twice the memory of the weights (home clusters)",
}
"""Policy → when a model fits by it."""

# A rule of thumb: the other half is for the KV cache, activations and all that else runs there.
HOME_FACTOR = 2

# What quantised models are published in, without the scales of a group.
_BITS = (16.0, 8.0, 6.0, 5.0, 4.0, 3.0, 2.0)


@dataclass(frozen=True, slots=True)
class Fit:
    """The answer. Bytes."""

    ok: bool
    """Whether it fits."""
    policy: str
    """By which of `POLICIES`."""
    required: int
    """Bytes needed."""
    have: int
    """Bytes that the nodes have for it."""
    layers: int
    """Layers that would fit."""
    bits: float | None
    """The most bits per parameter, of the usual ones up to the model's, at which it fits."""
    params: int
    """Parameters of the largest model of as many layers and bits that fits."""

    @property
    def sentence(self) -> str:
        """What a person wants to know."""
        need, have = gib(self.required), gib(self.have)
        if self.ok:
            return f"the model needs {need} and the nodes have {have} for it"
        amounts = f"the model needs {need} and the nodes have {have} for it"
        if self.bits:
            return f"{amounts}; at {self.bits:g} bits it would fit"
        if self.params:
            return f"{amounts}; a model of {self.params / 1e9:.3g} billion parameters would fit"
        return f"{amounts}; no model of as many layers would fit"


def fit(
    members: Sequence[Member], model: Model, policy: str = "available", *, reserve: float = RESERVE
) -> Fit:
    """Return whether the model fits on the nodes, and what would.

    Raises `ClusterError` for an unknown policy, no nodes, or a node whose memory is not known.
    """
    if policy not in POLICIES:
        raise ClusterError(f"{policy!r} is no policy; there are {', '.join(POLICIES)}")
    check_reserve(reserve)
    if not members:
        raise ClusterError("there is no node; give at least one report")
    ok, required, have, layers = _judge(members, model, policy, reserve)
    bits = None
    if not ok:
        less = [b for b in _BITS if b < model.bits]
        bits = next((b for b in less if _fits(members, _at(model, b), policy, reserve)), None)
    params = model.params if ok else _largest(members, model, policy, reserve)
    return Fit(ok, policy, required, have, layers, bits, params)


def _at(model: Model, bits: float) -> Model:
    return replace(model, bits=bits)


def _fits(members: Sequence[Member], model: Model, policy: str, reserve: float) -> bool:
    return _judge(members, model, policy, reserve)[0]


def _judge(
    members: Sequence[Member], model: Model, policy: str, reserve: float
) -> tuple[bool, int, int, int]:
    """Return (fits, bytes required, bytes there, layers that fit)."""
    if policy == "home":
        have = sum(sum(member.usable("total")) for member in members)
        required = HOME_FACTOR * model.weight_bytes
        return have >= required, required, have, min(model.layers, have * model.layers // required)
    roomy = [undivided(member, model, policy, reserve) for member in members]
    layers = sum(layer_cap(member, model, policy, reserve) for member in roomy)
    have = sum(int(pool * (1 - reserve)) for m in members for pool in m.usable(policy))
    return layers >= model.layers, model.layer_bytes * model.layers, have, min(layers, model.layers)


def _largest(members: Sequence[Member], model: Model, policy: str, reserve: float) -> int:
    """Return the most parameters that fit, by halving; 0 when not even one per layer does."""
    low, high = 0, model.params
    # To a millionth: the sentence shows three digits.
    while high - low > max(1, model.params >> 20):
        middle = (low + high) // 2
        smaller = replace(model, params=max(1, middle), active_params=None)
        if _fits(members, smaller, policy, reserve):
            low = middle
        else:
            high = middle
    return low
