"""How long one layer takes on a node, and how many layers its memory holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from probe_cluster.efficiency import table
from probe_cluster.errors import ClusterError
from probe_cluster.members import Member
from probe_cluster.model import Model

__all__ = [
    "RESERVE",
    "check_reserve",
    "layer_cap",
    "prompt_seconds",
    "split_seconds",
    "splits",
    "token_seconds",
    "undivided",
    "widths",
]

# Activations and buffers grow with the batch, which a plan does not know: a judgement.
RESERVE = 0.05
"""Share of each memory left for activations and the runtime's own buffers: our declared default."""

_TERA = 1e12

# Engines split among powers of two; 8 is the widest of the published speeds.
_WIDTHS = (2, 4, 8)


def token_seconds(member: Member, model: Model) -> float | None:
    """Return the time of one layer for one token, or None when the bandwidth is not known.

    Where a node's equal devices split each layer faster than one of them runs it, that time.
    """
    return _quickest(member, model)[0]


def splits(member: Member, model: Model) -> bool:
    """Return whether the equal devices of a node split each layer, as that is faster."""
    return _quickest(member, model)[1] > 1


def _quickest(member: Member, model: Model) -> tuple[float | None, int]:
    """Return the least time of one layer, and by how many of the node's devices.

    All devices work in groups of that width, one group after the other.
    """
    best, by = whole_seconds(member, model), 1
    if best is None or member.width < 2:
        return best, by
    # What the devices are joined by is not known here; PCIe is the slowest that they can be.
    reduce = table()["reduce"]["pcie"] * 1e-6
    for width in widths(model):
        if member.width % width == 0:
            seconds = split_seconds([member] * width, model, reduce)
            if seconds is not None and seconds < best:
                best, by = seconds, width
    return best, by


def whole_seconds(member: Member, model: Model) -> float | None:
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
    rooms = [int(pool * (1 - reserve)) for pool in member.usable(use)]
    width = _quickest(member, model)[1]
    if width == 1 or len(rooms) < member.width:
        return sum(room // model.layer_bytes for room in rooms)
    # Each device holds its part of every layer; MLA's cache whole.
    cache = model.kv_bytes_per_layer
    own = cache if model.kind == "mla" else cache / width
    part = (model.layer_bytes - cache) / width + own
    rooms.sort(reverse=True)
    return sum(int(room // part) for room in rooms[width - 1 :: width])


def check_reserve(reserve: float) -> None:
    """Raise `ClusterError` for what is no share of a memory."""
    if not 0 <= reserve < 1:
        raise ClusterError(f"the reserve is a share of the memory below 1, not {reserve}")


def undivided(member: Member, model: Model, use: str, reserve: float) -> Member:
    """Return the node with no layer split, where it holds more layers so: its memories differ.

    Raises `ClusterError` when the node's memory is not known.
    """
    if member.width < 2 or not splits(member, model):
        return member
    whole = replace(member, width=1)
    more = layer_cap(whole, model, use, reserve) > layer_cap(member, model, use, reserve)
    return whole if more else member


def widths(model: Model) -> list[int]:
    """Return into how many parts the layers of a model can be split; none without known heads.

    A width divides the heads and the KV heads. MLA keeps one latent vector for all heads, on
    every node, so the KV heads do not count there.
    """
    if not model.heads:
        return []
    kv_heads = model.heads if model.kind == "mla" else model.kv_heads or model.heads
    return [width for width in _WIDTHS if not (model.heads % width or kv_heads % width)]


def split_seconds(members: Sequence[Member], model: Model, reduce: float) -> float | None:
    """Return the seconds of a layer that is split among `members`; None for unknown speeds.

    `reduce` is the seconds of one all-reduce, of which a layer has two. What a layer costs beyond
    its bytes does not shrink by being split (measured on 2 and 4 M3 Ultra: exo issue 1468).
    """
    cache = model.kv_bytes_per_layer
    # MLA's cache is on every node.
    whole = cache if model.kind == "mla" else 0
    part = (model.layer_read_bytes - whole) / len(members) + whole
    slowest = 0.0
    for member in members:
        if member.bandwidth is None or member.efficiency is None:
            return None
        reading = part / (member.bandwidth * member.efficiency.share)
        # Arithmetic bounds a part as it does the whole layer.
        least = max(reading, (prompt_seconds(member, model) or 0.0) / len(members))
        slowest = max(slowest, least + member.efficiency.layer_seconds(model.kind))
    return slowest + 2 * reduce
