"""The KV cache: which layers keep how much per token, up to which window, or a constant state."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from typing import NamedTuple

__all__ = ["CacheGroup", "cache_bytes", "grouped"]


class CacheGroup(NamedTuple):
    """Layers that keep equally much."""

    layers: int
    """How many layers."""
    values: int
    """Values that a layer keeps per token: keys and values, or MLA's latent vector."""
    window: int | None
    """Tokens that it keeps at most; None keeps all."""
    state: int
    """Bytes that it keeps whatever the context is: the state of linear attention."""


def grouped(layers: Iterable[tuple[int, int | None, int]]) -> tuple[CacheGroup, ...]:
    """Return the groups of layers given as (values, window, state)."""
    counts: dict[tuple[int, int | None, int], int] = {}
    for layer in layers:
        counts[layer] = counts.get(layer, 0) + 1
    return tuple(CacheGroup(count, *layer) for layer, count in counts.items())


def cache_bytes(groups: Iterable[CacheGroup], context: int, bits: float) -> int:
    """Return the bytes of one sequence's cache at `context` tokens, `bits` per value."""
    if not context:
        return 0
    total = 0.0
    for group in groups:
        tokens = context if group.window is None else min(context, group.window)
        total += group.layers * (group.values * tokens * bits / 8 + group.state)
    return ceil(total)
