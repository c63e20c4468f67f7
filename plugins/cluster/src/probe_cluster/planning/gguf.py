"""The head of a GGUF file: how tensors are stored, and a model's shape; never a weight."""

from __future__ import annotations

import os
import re
import struct
from typing import NamedTuple

from probe_cluster.planning.architecture import Experts, Shape, has_norms
from probe_cluster.planning.config_json import MOST_LAYERS
from probe_cluster.planning.model import grouped
from probe_cluster.planning.weights import Tensor
from probe_cluster.shared import ClusterError

# The vocabulary is in the head: 262,144 tokens and as many merges take about 15 MB.
_HEAD_LIMIT = 64 << 20
_MOST_KEYS, _MOST_TENSORS, _MOST_SPLITS = 4096, 1 << 16, 512

Value = int | float | bool | str | list[int]

# Elements and bytes of a block, by ggml's type number (gguf-py, GGML_QUANT_SIZES).
_BLOCKS = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34),
    9: (32, 36), 10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210),
    15: (256, 292), 16: (256, 66), 17: (256, 74), 18: (256, 98), 19: (256, 50), 20: (32, 18),
    21: (256, 110), 22: (256, 82), 23: (256, 136), 24: (1, 1), 25: (1, 2), 26: (1, 4), 27: (1, 8),
    28: (1, 8), 29: (256, 56), 30: (1, 2), 34: (256, 54), 35: (256, 66), 39: (32, 17),
    40: (64, 36),
}  # fmt: skip

_SCALARS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
_STRING, _ARRAY = 8, 9
_ARCH = re.compile(r"[\w.+-]{0,64}")
_SPLIT = re.compile(r"-00001-of-(\d{5})\.gguf$")


class GgufHead(NamedTuple):
    """The head of a model, all its files together."""

    values: dict[str, Value]
    """Key → value; of arrays only those of whole numbers."""
    tensors: list[Tensor]


def read_gguf(path: str) -> GgufHead:
    """Return the head of a GGUF file and of the others that it is split into.

    Raises `ClusterError` for a file that is cut, hostile or of another version.
    """
    head = _read(path)
    count = head.values.get("split.count")
    match = _SPLIT.search(path)
    if not isinstance(count, int) or count <= 1:
        return head
    if match is None or not 1 < count <= _MOST_SPLITS:
        raise ClusterError(f"{path} is a part of {count} files; name the first, -00001-of-…")
    tensors = list(head.tensors)
    for number in range(2, count + 1):
        part = f"{path[: match.start()]}-{number:05}-of-{match[1]}.gguf"
        tensors += _read(part).tensors
    return GgufHead(head.values, tensors)


def _read(path: str) -> GgufHead:
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            cursor = _Cursor(file.read(_HEAD_LIMIT), path)
    except OSError as error:
        raise ClusterError(f"{path}: {error.strerror or error}") from None
    head = _parsed(cursor)
    stored = sum(tensor.size for tensor in head.tensors)
    if stored > size:
        raise ClusterError(
            f"{path} is cut: its tensors need {stored} bytes and the file has {size}"
        )
    return head


class _Cursor:
    """A position in the bytes of the head; whatever lies beyond its end is an error."""

    __slots__ = ("_at", "_data", "path")

    def __init__(self, data: bytes, path: str) -> None:
        self._data, self._at, self.path = data, 0, path

    def take(self, code: str) -> int | float | bool:
        """Return the next scalar."""
        start = self._move(struct.calcsize(code))
        value: int | float | bool = struct.unpack_from("<" + code, self._data, start)[0]
        return value

    def count(self, code: str, most: int, meaning: str) -> int:
        """Return the next number, of at most `most`."""
        value = int(self.take(code))
        if value > most:
            raise ClusterError(f"{self.path} is no usable GGUF: {meaning} is {value}, over {most}")
        return value

    def text(self) -> str:
        """Return the next string."""
        size = self.count("Q", _HEAD_LIMIT, "the length of a text")
        start = self._move(size)
        return self._data[start : start + size].decode("utf-8", "replace")

    def skip_texts(self, count: int) -> None:
        """Pass over `count` strings, which may be a whole vocabulary."""
        unpack, data, at = struct.Struct("<Q").unpack_from, self._data, self._at
        end = len(data)
        for _ in range(count):
            if at + 8 > end:
                raise self.cut()
            at += 8 + unpack(data, at)[0]
        self._at = at
        self._move(0)

    def skip(self, size: int) -> None:
        """Pass over `size` bytes."""
        self._move(size)

    def cut(self) -> ClusterError:
        """Return the error of a head that ends too early."""
        return ClusterError(
            f"{self.path} is no usable GGUF: its head ends after {len(self._data)} bytes;"
            " download the file again"
        )

    def _move(self, size: int) -> int:
        start = self._at
        if start + size > len(self._data):
            raise self.cut()
        self._at = start + size
        return start


def _parsed(cursor: _Cursor) -> GgufHead:
    if int(cursor.take("I")) != int.from_bytes(b"GGUF", "little"):
        raise ClusterError(f"{cursor.path} is no GGUF: it does not start with the letters GGUF")
    version = int(cursor.take("I"))
    if version not in (2, 3):
        raise ClusterError(f"{cursor.path} is GGUF version {version}; 2 and 3 can be read")
    tensors = cursor.count("Q", _MOST_TENSORS, "the number of tensors")
    keys = cursor.count("Q", _MOST_KEYS, "the number of keys")
    values: dict[str, Value] = {}
    for _ in range(keys):
        key = cursor.text()
        value = _value(cursor, int(cursor.take("I")))
        if value is not None:
            values[key] = value
    return GgufHead(values, [_tensor(cursor) for _ in range(tensors)])


def _value(cursor: _Cursor, kind: int) -> Value | None:
    if kind == _STRING:
        return cursor.text()
    if kind in _SCALARS:
        return cursor.take(_SCALARS[kind])
    if kind != _ARRAY:
        raise ClusterError(f"{cursor.path} is no usable GGUF: a value has type {kind}, over 12")
    kind = int(cursor.take("I"))
    count = cursor.count("Q", _HEAD_LIMIT, "the length of an array")
    if kind == _STRING:
        cursor.skip_texts(count)
        return None
    if kind not in _SCALARS:
        raise ClusterError(f"{cursor.path} is no usable GGUF: an array has elements of type {kind}")
    # Per-layer figures are short; scores of tokens are long, and of no use here.
    if count <= _MOST_KEYS and _SCALARS[kind] not in "fd":
        return [int(cursor.take(_SCALARS[kind])) for _ in range(count)]
    cursor.skip(count * struct.calcsize(_SCALARS[kind]))
    return None


def _tensor(cursor: _Cursor) -> Tensor:
    name = cursor.text()
    params = 1
    for _ in range(cursor.count("I", 8, f"the dimensions of {name[:60]!r}")):
        params *= cursor.count("Q", 1 << 40, f"a dimension of {name[:60]!r}")
    kind = int(cursor.take("I"))
    cursor.skip(8)
    if kind not in _BLOCKS:
        raise ClusterError(f"{cursor.path}: tensor {name[:60]!r} has the unknown type {kind}")
    if params > 1 << 50:
        raise ClusterError(f"{cursor.path}: tensor {name[:60]!r} has {params} values")
    elements, size = _BLOCKS[kind]
    return Tensor(name, params, -(-params // elements) * size)


# The shape of a model out of the keys of a GGUF file.

# Each Nth layer attends to all tokens, by architecture (llama.cpp src/llama-model.cpp,
# set_swa_pattern); newer files have the pattern as a key.
_PATTERNS = {
    "gemma2": 2,
    "gemma3": 6,
    "gemma3n": 5,
    "gpt-oss": 2,
    "llama4": 4,
    "olmo3": 4,
    "olmo2": 4,
    "cohere2": 4,
    "exaone4": 4,
}
_LINEAR = ("qwen3next", "qwen35", "qwen35moe")


class _Keys:
    """The keys of one architecture."""

    def __init__(self, values: dict[str, Value], path: str) -> None:
        arch = values.get("general.architecture")
        self.arch = arch if isinstance(arch, str) else ""
        if not _ARCH.fullmatch(self.arch):
            raise ClusterError(
                f"{path}: general.architecture is {self.arch[:40]!r}, which is no name"
            )
        self.values = values
        self.path = path

    def get(self, name: str) -> Value | None:
        return self.values.get(f"{self.arch}.{name}")

    def whole(self, name: str) -> int | None:
        value = self.get(name)
        if isinstance(value, list):
            value = max(value, default=0)
        if value is None:
            return None
        if type(value) is not int or not 0 <= value < 1 << 27:
            key = f"{self.arch}.{name}"
            raise ClusterError(f"{self.path}: {key} is {str(value)[:40]}; no model has that")
        return value or None

    def per_layer(self, name: str, layers: int) -> list[int]:
        """Return a figure of each layer: a list, or one number for all."""
        value = self.get(name)
        if isinstance(value, list):
            if len(value) < layers:
                raise ClusterError(
                    f"{self.path}: {self.arch}.{name} has {len(value)} values for {layers} layers"
                )
            return value[:layers]
        return [self.whole(name) or 0] * layers


def shape_of_gguf(values: dict[str, Value], path: str) -> Shape:
    """Return the shape; raises `ClusterError` for absurd figures. Its `params` are None."""
    keys = _Keys(values, path)
    blocks = keys.whole("block_count")
    layers = None if blocks is None else blocks - (keys.whole("nextn_predict_layers") or 0)
    if layers is None or not 0 < layers <= MOST_LAYERS:
        count = keys.get("block_count")
        raise ClusterError(
            f"{path}: {keys.arch}.block_count is {count}; it must be 1 to {MOST_LAYERS}"
        )
    heads, count = keys.whole("attention.head_count"), keys.whole("expert_count")
    hidden = keys.whole("embedding_length")
    wide = keys.whole("attention.key_length") or (hidden // heads if hidden and heads else None)
    used = keys.whole("expert_used_count")
    cached = _layers(keys, layers, wide or 0)
    return Shape(
        layers=layers,
        hidden=hidden,
        kv_heads=keys.whole("attention.head_count_kv") or heads,
        head_dim=wide,
        heads=heads,
        context=keys.whole("context_length"),
        experts=Experts(count, min(used, count)) if count and used else None,
        kind=_kind(keys, count),
        cache=grouped(cached) if wide and heads else (),
        params=None,
        norms=has_norms(keys.arch),
    )


_STATEFUL = ("ssm.state_size", "kda.head_dim")


def _kind(keys: _Keys, count: int | None) -> str:
    if keys.arch.startswith("nemotron_h"):
        return "blocks"
    if any(keys.whole(name) is not None for name in _STATEFUL):
        return "hybrid"
    if not count:
        return "dense"
    return "mla" if keys.whole("attention.kv_lora_rank") else "experts"


def _layers(keys: _Keys, layers: int, wide: int) -> list[tuple[int, int | None, int]]:
    """Return (values, window, state) of each layer that has a cache of its own."""
    # A file without the key has as many KV heads as heads.
    name = "attention.head_count_kv"
    name = name if keys.get(name) is not None else "attention.head_count"
    heads, state = keys.per_layer(name, layers), _state(keys)
    linear = _linear(keys, layers, heads)
    rank = keys.whole("attention.kv_lora_rank")
    if rank is not None:
        rope = keys.whole("rope.dimension_count") or 0
        values = rank + rope + (keys.whole("attention.indexer.key_length") or 0)
        return [(0, None, state) if keeps else (values, None, 0) for keeps in linear]
    pair = wide + (keys.whole("attention.value_length") or wide)
    swa = (keys.whole("attention.key_length_swa") or 0) + (
        keys.whole("attention.value_length_swa") or 0
    )
    beside = state if keys.arch in _WITH_STATE else 0
    each: list[tuple[int, int | None, int]] = []
    for at, window in enumerate(_windows(keys, layers)):
        values = swa if window and swa else pair
        each.append((0, None, state) if linear[at] else (heads[at] * values, window, beside))
    # Gemma 3n and 4: the last layers use the cache of earlier ones.
    return each[: max(0, layers - (keys.whole("attention.shared_kv_layers") or 0))]


# A state beside the attention of each layer.
_WITH_STATE = ("falcon-h1",)


def _linear(keys: _Keys, layers: int, heads: list[int]) -> list[bool]:
    """Return which layers keep a state: those without KV heads, or all but each fourth.

    Nemotron-H's blocks of experts have no KV heads either; they have a feed-forward part.
    """
    if keys.arch in _LINEAR:
        interval = keys.whole("full_attention_interval") or 4
        return [(at + 1) % interval != 0 for at in range(layers)]
    wide = keys.per_layer("feed_forward_length", layers)
    apart = 0 in wide and any(wide)
    return [count == 0 and not (apart and width) for count, width in zip(heads, wide, strict=True)]


def _windows(keys: _Keys, layers: int) -> list[int | None]:
    window = keys.whole("attention.sliding_window") or keys.whole("attention.chunk_size")
    pattern = keys.get("attention.sliding_window_pattern")
    if window is None:
        return [None] * layers
    if isinstance(pattern, list) and len(pattern) >= layers:
        return [window if pattern[at] else None for at in range(layers)]
    interval = pattern if isinstance(pattern, int) and pattern > 0 else _PATTERNS.get(keys.arch)
    # Without a pattern the window is not used, or by all layers: counting all of them is safe.
    if interval is None:
        return [None] * layers
    return [None if (at + 1) % interval == 0 else window for at in range(layers)]


def _state(keys: _Keys) -> int:
    """Return the bytes of a layer's state; llama.cpp keeps all of it in fp32."""
    kernel, head = keys.whole("ssm.conv_kernel") or 4, keys.whole("kda.head_dim")
    if head is not None:
        inner = (keys.whole("attention.head_count") or 0) * head
        return 4 * (inner * head + (kernel - 1) * 3 * inner)
    size, inner_size = keys.whole("ssm.state_size"), keys.whole("ssm.inner_size")
    if size is None or inner_size is None:
        steps = (keys.whole("shortconv.l_cache") or 1) - 1
        return 4 * steps * (keys.whole("embedding_length") or 0)
    groups = keys.whole("ssm.group_count") or 1
    return 4 * (inner_size * size + (kernel - 1) * (inner_size + 2 * groups * size))
