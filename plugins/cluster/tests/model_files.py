"""Writes heads of GGUF and safetensors files: what a download has, without its weights."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

TYPES = {bool: 7, int: 4, str: 8, float: 6}


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def value(entry: Any) -> bytes:
    if isinstance(entry, list):
        kind = TYPES[type(entry[0])]
        return struct.pack("<IIQ", 9, kind, len(entry)) + b"".join(map(plain, entry))
    return struct.pack("<I", TYPES[type(entry)]) + plain(entry)


def plain(entry: Any) -> bytes:
    if isinstance(entry, str):
        return text(entry)
    return struct.pack({bool: "<?", int: "<I", float: "<f"}[type(entry)], entry)


def gguf(
    keys: dict[str, Any], tensors: list[tuple[str, list[int], int]], version: int = 3
) -> bytes:
    """Return the head of a GGUF file of (name, dimensions, ggml type)."""
    head = struct.pack("<4sIQQ", b"GGUF", version, len(tensors), len(keys))
    head += b"".join(text(key) + value(entry) for key, entry in keys.items())
    for name, shape, kind in tensors:
        head += text(name) + struct.pack("<I", len(shape))
        head += b"".join(struct.pack("<Q", size) for size in shape)
        head += struct.pack("<IQ", kind, 0)
    return head


def write_sparse(path: Path, head: bytes, weights: int) -> str:
    """Write a file of its full length whose weights take no room on the disk."""
    with path.open("wb") as file:
        file.write(head)
        file.truncate(len(head) + weights)
    return str(path)


def safetensors(tensors: dict[str, tuple[str, list[int]]]) -> bytes:
    """Return the head of a safetensors file of name → (type, shape)."""
    table = {
        name: {"dtype": kind, "shape": shape, "data_offsets": [0, 0]}
        for name, (kind, shape) in tensors.items()
    }
    text = json.dumps(table).encode()
    return struct.pack("<Q", len(text)) + text
