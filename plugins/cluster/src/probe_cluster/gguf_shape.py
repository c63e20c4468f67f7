"""The shape of a model out of the keys of a GGUF file."""

from __future__ import annotations

from probe_cluster.architecture import Shape
from probe_cluster.cache import grouped
from probe_cluster.config_table import MOST_LAYERS
from probe_cluster.errors import ClusterError
from probe_cluster.feedforward import Experts
from probe_cluster.gguf import Value

__all__ = ["shape_of_gguf"]

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
        raise ClusterError(
            f"{path}: {keys.arch}.block_count is {blocks}; it must be 1 to {MOST_LAYERS}"
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
    )


_STATEFUL = ("ssm.state_size", "kda.head_dim")


def _kind(keys: _Keys, count: int | None) -> str:
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
