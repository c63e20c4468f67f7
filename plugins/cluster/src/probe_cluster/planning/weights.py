"""The tensors that a file of weights lists, and the heads of safetensors files; never a weight."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from math import prod
from typing import Any, NamedTuple

from probe_cluster.planning.architecture import Experts
from probe_cluster.shared import ClusterError

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


# Reads the heads of safetensors files: names, types and shapes of tensors, never a weight.

# The format allows 100 MB; the head of a file of 61 layers with 384 experts takes about 10 MB.
_HEAD_LIMIT = 64 << 20
_MOST_FILES, _MOST_TENSORS = 1024, 1 << 20

_BITS = {
    "F64": 64, "I64": 64, "U64": 64, "F32": 32, "I32": 32, "U32": 32, "F16": 16, "BF16": 16,
    "I16": 16, "U16": 16, "I8": 8, "U8": 8, "BOOL": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8,
    "F6_E2M3": 6, "F6_E3M2": 6, "F4": 4,
}  # fmt: skip

# Several weights of 2 to 8 bits in one word: the shape counts words (MLX, GPTQ, AWQ, MXFP4).
_PACKED = ("I32", "U32", "U8", "I64")


def read_safetensors(paths: Iterable[str]) -> tuple[list[Tensor], bool]:
    """Return the tensors of all files, and whether some hold several weights in one word.

    Raises `ClusterError` for a file that is cut or hostile.
    """
    tensors: list[Tensor] = []
    packs = False
    for number, path in enumerate(paths):
        if number >= _MOST_FILES:
            raise ClusterError(f"{path}: there are more than {_MOST_FILES} files of one model")
        for name, entry in _head(path).items():
            if name == "__metadata__":
                continue
            tensors.append(_tensor(path, name, entry))
            packs = packs or packed(entry)
        if len(tensors) > _MOST_TENSORS:
            raise ClusterError(f"{path}: there are more than {_MOST_TENSORS} tensors")
    return tensors, packs


def packed(entry: Mapping[str, Any]) -> bool:
    """Return whether a tensor holds several weights in one word."""
    shape = entry.get("shape")
    return entry.get("dtype") in _PACKED and isinstance(shape, list) and len(shape) > 1


def _head(path: str) -> Mapping[str, Any]:
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            length = int.from_bytes(file.read(8), "little")
            text = file.read(min(length, _HEAD_LIMIT))
    except OSError as error:
        raise ClusterError(f"{path}: {error.strerror or error}") from None
    if not 2 <= length <= min(_HEAD_LIMIT, size - 8):
        raise ClusterError(
            f"{path} is no usable safetensors file: its head has {length} bytes,"
            f" the file {size}; download it again"
        )
    try:
        head = json.loads(text)
    except (ValueError, RecursionError):
        raise ClusterError(f"{path} is no usable safetensors file: its head is no JSON") from None
    if not isinstance(head, dict):
        raise ClusterError(f"{path} is no usable safetensors file: its head is no table")
    return head


def _tensor(path: str, name: str, entry: Any) -> Tensor:
    shape = entry.get("shape") if isinstance(entry, Mapping) else None
    bits = _BITS.get(str(entry.get("dtype"))) if isinstance(entry, Mapping) else None
    sane = isinstance(shape, list) and len(shape) <= 8
    if bits is None or not isinstance(shape, list) or not sane or not all(map(_dimension, shape)):
        raise ClusterError(f"{path}: tensor {name[:60]!r} has no shape and type that can be read")
    params = prod(shape)
    if params > 1 << 50:
        raise ClusterError(f"{path}: tensor {name[:60]!r} has {params} values")
    return Tensor(name, params, -(-params * bits // 8))


def _dimension(value: object) -> bool:
    return type(value) is int and 0 <= value < 1 << 40
