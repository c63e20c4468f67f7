"""Does a model fit: on a cluster by a declared policy, on one node by its memories; what would."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from probe_cluster.planning.choice import runnable
from probe_cluster.planning.members import Capacity, Member, capacity
from probe_cluster.planning.model import Model
from probe_cluster.planning.offers import left_out
from probe_cluster.planning.predict import RESERVE, check_reserve, layer_cap, undivided
from probe_cluster.shared import ClusterError
from probe_core.commands import document_of
from probe_core.sizes import gib

POLICIES = {
    "available": "every layer is in memory that is available now",
    "total": "every layer is in memory, were all of it free",
    "home": "all nodes together have at least twice the memory of the weights (home clusters)",
}
"""Policy → when a model fits by it."""

# A rule of thumb: the other half is for the KV cache, activations and all that else runs there.
HOME_FACTOR = 2

RAISED = "the memory holds it where `sudo sysctl iogpu.wired_limit_mb` lets the GPU have more"
"""Of Macs: macOS gives the GPU about three quarters of the memory, unless it is told."""

# What quantised models are published in, with the scales of a group.
_BITS = (16.0, 8.5, 6.5, 5.5, 4.5, 3.5, 2.6)


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
        amounts = f"the model needs {need} and the nodes have {have} for it"
        if self.ok:
            return amounts
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
    bits = None if ok else _bits(model, lambda less: _fits(members, less, policy, reserve))
    params = model.params if ok else _largest(members, model, policy, reserve)
    return Fit(ok, policy, required, have, layers, bits, params)


def _bits(model: Model, fits: Callable[[Model], bool]) -> float | None:
    """Return the most bits, less than the model's, at which it fits."""
    less = (bits for bits in _BITS if bits < model.bits)
    return next((bits for bits in less if fits(replace(model, bits=bits))), None)


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


@dataclass(frozen=True, slots=True)
class DeviceFit:
    """One memory of a node. Bytes."""

    device: str
    """Id of the device; of devices that share one memory the first."""
    name: str | None
    free: int
    """What can be taken now."""
    room: int
    """What of it a model may take: the reserve stays free."""
    layers: int
    """Layers that fit into it, their KV cache included."""
    ok: bool
    """Whether the whole model fits into it alone."""
    spare: int
    """Room beyond the model's need; negative is what is missing."""


@dataclass(frozen=True, slots=True)
class NodeFit:
    """The answer for a node. Bytes."""

    answer: str
    """``yes`` on its devices, ``offload`` with layers in host memory, or ``no``."""
    need: int
    """Weights and KV cache."""
    devices: tuple[DeviceFit, ...]
    device_layers: int
    """Layers that all devices hold together, at most the model's."""
    host_layers: int
    """Layers that host memory would hold besides; 0 where memory is unified."""
    spare: int
    """Room beyond the need on the devices; negative is what is missing, host memory counted."""
    context: int | None
    """The longest context at which it fits on the devices; None without a known KV cache."""
    context_by: str | None
    """What ends it: the ``model``, which was made for no longer one, or ``memory``."""
    bits: float | None
    """Where it does not fit on the devices: the most bits per parameter at which it would."""
    layers: int
    """Layers of the model."""
    origin: str | None = None
    """Where the figures of a computer are from that nobody has probed."""
    wired: bool = False
    """Whether it would fit, were what macOS lets its GPU have raised to all memory."""
    left_out: str | None = None
    """Which devices do not count, and why, where some do not."""
    refused: str | None = None
    """Why no engine runs these weights on it, whatever its memory: the answer is then ``no``."""
    unplanned: str | None = None
    """Why no engine that is planned for is known to run there: the answer is of memory alone."""

    @property
    def sentence(self) -> str:
        """The answer with its figures."""
        need = gib(self.need)
        if self.refused is not None:
            return f"no: {self.refused}"
        memory = f"; {self.unplanned}" if self.unplanned else ""
        if self.answer == "yes":
            return f"yes: it needs {need} and {gib(self.spare)} more are free{memory}"
        hint = f"; at {self.bits:g} bits it would fit on the devices" if self.bits else ""
        if self.answer == "offload":
            return (
                f"yes, with offload: it needs {need}; {self.device_layers} of {self.layers} layers"
                f" fit on the devices, {self.host_layers} in host memory{hint}{memory}"
            )
        more = f"; {RAISED}" if self.wired else ""
        missing = f"{gib(-self.spare)} more than there is{more}"
        return f"no: it needs {need}, {missing}{hint}"


def node_fit(report: Any, model: Model, devices: str = "all", reserve: float = RESERVE) -> NodeFit:
    """Return whether `model` fits on the node of a report, by memory that is free now.

    It does not where no engine that is planned for runs such weights there.

    Raises `ClusterError` for a node of unknown memory and a reserve that is no share.
    """
    check_reserve(reserve)
    offer = capacity(report, devices)
    if not offer.pools:
        reason = offer.reasons.get("memory_total", "its report does not give")
        raise ClusterError(f"the memory of the node is unknown: {reason}")
    rooms = [int(pool * (1 - reserve)) for pool in offer.pools]
    host = _host(offer, reserve)
    held = _held(rooms, model)
    refused, unplanned = runnable(model, offer)
    context, context_by = (None, None) if refused else _context(rooms, model)
    origin = document_of(report).get("what_if")
    rest = model.layers - held
    host_layers = min(rest, host // model.layer_bytes)
    answer = "yes" if not rest else "offload" if host_layers == rest else "no"
    lacks = bool(rest) and not refused
    return NodeFit(
        answer="no" if refused else answer,
        need=model.total_bytes,
        devices=tuple(_devices(offer, rooms, model)),
        device_layers=held,
        host_layers=host_layers,
        spare=_spare(rooms, host, model, answer),
        context=context,
        context_by=context_by,
        bits=_bits(model, lambda less: _held(rooms, less) == less.layers) if lacks else None,
        layers=model.layers,
        origin=origin if isinstance(origin, str) else None,
        wired=lacks and answer == "no" and raised_room(offer, reserve) >= model.total_bytes,
        left_out=None if origin else left_out(offer.reasons),
        refused=refused,
        unplanned=unplanned,
    )


def raised_room(offer: Capacity, reserve: float) -> int:
    """Return the bytes of a Mac's memory that a model may take at most, with the limit raised."""
    if offer.vendor != "apple" or not offer.unified or offer.kind != "gpu":
        return 0
    return int((offer.ram_total or 0) * (1 - reserve))


def _host(offer: Capacity, reserve: float) -> int:
    # Where memory is unified, what the devices can take is the host's already.
    if offer.unified or offer.ram_available is None:
        return 0
    return int(offer.ram_available * (1 - reserve))


def _held(rooms: list[int], model: Model) -> int:
    """Return the layers that lie on the devices, each whole in one of their memories."""
    return min(model.layers, sum(room // model.layer_bytes for room in rooms))


def _spare(rooms: list[int], host: int, model: Model, answer: str) -> int:
    if answer == "no":
        # At least a byte is missing, although whole layers may leave more than that unused.
        return min(-1, sum(rooms) + host - model.total_bytes)
    return sum(rooms) - model.total_bytes


def _devices(offer: Capacity, rooms: list[int], model: Model) -> list[DeviceFit]:
    fits = []
    for place, room in enumerate(rooms):
        layers = min(model.layers, room // model.layer_bytes)
        fits.append(
            DeviceFit(
                device=offer.devices[place],
                name=offer.chip if place == 0 else None,
                free=offer.pools[place],
                room=room,
                layers=layers,
                ok=layers == model.layers,
                spare=room - model.total_bytes,
            )
        )
    return fits


def _context(rooms: list[int], model: Model) -> tuple[int | None, str | None]:
    """Return the longest context on the devices, to 256 tokens by halving, and what ends it."""
    if not (model.cache or (model.kv_heads and model.head_dim)):
        return None, None

    def fits(context: int) -> bool:
        return _held(rooms, replace(model, context=context)) == model.layers

    low, high = 0, model.longest or 1 << 24
    if model.longest is not None and fits(high):
        return high, "model"
    while high - low > 256:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low, "memory"
