"""Sums over the tensors that a file of weights lists: bytes stored, bytes that one token reads."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from probe_cluster.feedforward import Experts

__all__ = ["Tensor", "Weights", "weights_of"]

_LAYER = re.compile(r"(?:^|\.)(?:layers|blk|h|blocks)\.(\d{1,4})\.")
_EXPERT = re.compile(r"_exps\.|\.experts\.|\.switch_mlp\.")
_EMBEDDING = re.compile(r"(?:^|\.)(?:embed_tokens|token_embd|wte|embeddings?)\.")
_HEAD = re.compile(r"^(?:language_model\.)?(?:lm_head|output)\.")


class Tensor(NamedTuple):
    """One tensor of a file."""

    name: str
    params: int
    size: int


class Weights(NamedTuple):
    """What all tensors together are."""

    params: int
    active: int
    stored: int
    """Bytes."""
    read: int
    """Bytes that one token reads."""
    layers: int
    """One more than the highest layer that a name has; 0 without any."""


def weights_of(
    tensors: Iterable[Tensor], experts: Experts | None, layers: int | None = None
) -> Weights:
    """Return the sums; tensors beyond `layers` (multi-token prediction) are stored and not read."""
    share = experts.active / experts.total if experts else 1.0
    params = active = stored = 0
    read, top, head, embedding = 0.0, 0, False, 0
    for name, count, size in tensors:
        params, stored = params + count, stored + size
        place = _LAYER.search(name)
        if place:
            top = max(top, int(place[1]) + 1)
            if layers is not None and int(place[1]) >= layers:
                continue
        part = share if _EXPERT.search(name) else 1.0
        active += round(count * part)
        if _EMBEDDING.search(name) and not place:
            embedding += size  # one row of it is read, unless it is the head too
            continue
        head = head or bool(_HEAD.search(name))
        read += size * part
    return Weights(params, active, stored, round(read + (0 if head else embedding)), top)
