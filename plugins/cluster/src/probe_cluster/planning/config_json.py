"""A model's config.json: its figures within bounds, its family, and what attends in each layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from probe_cluster.shared import ClusterError

# Far above the largest open model (vocabulary 262,208; context 10,485,760), below what overflows.
_MOST = 1 << 27
MOST_LAYERS = 4096
"""Layers of a model at most: planning takes time for each. The largest open ones have 126."""


class ConfigTable:
    """The table that describes the text model, and the name by which errors call its file."""

    def __init__(self, config: Mapping[str, Any], label: str) -> None:
        # Models with text and vision keep the text's shape under text_config.
        inner = config.get("text_config")
        self._table: Mapping[str, Any] = inner if isinstance(inner, Mapping) else config
        self.outer = config
        self.label = label

    def whole(self, *names: str) -> int | None:
        """Return the first of the named figures that is there, None where none is.

        A list that has the same figure for each layer is that figure. Raises `ClusterError` for one
        that is no whole number of 0 to 134,217,728. 0 is None.
        """
        for name in names:
            value = self._table.get(name)
            if isinstance(value, list) and value and value == value[:1] * len(value):
                value = value[0]
            if value is None:
                continue
            most = MOST_LAYERS if name == "num_hidden_layers" else _MOST
            if type(value) is not int or not 0 <= value <= most:
                shown = repr(value)[:40]
                raise ClusterError(
                    f"{self.label}: {name} is {shown}; it must be a whole number up to {most}"
                )
            return value or None
        return None

    def flag(self, name: str) -> bool:
        """Return whether a switch is on, in the text's table or in the outer one."""
        return self._table.get(name) is True or self.outer.get(name) is True

    def choice(self, name: str) -> bool | None:
        """Return a switch as the file has it, in the text's table or the outer one; else None."""
        for table in (self._table, self.outer):
            value = table.get(name)
            if isinstance(value, bool):
                return value
        return None

    def wholes(self, name: str) -> list[int]:
        """Return a list of whole numbers, empty where there is none."""
        value = self._table.get(name)
        if not isinstance(value, list) or any(type(entry) is not int for entry in value):
            return []
        return value[:MOST_LAYERS]

    def table(self, name: str) -> ConfigTable:
        """Return the table of a name, an empty one where there is none."""
        value = self._table.get(name)
        return ConfigTable(value if isinstance(value, Mapping) else {}, self.label)

    def tables(self, name: str) -> list[ConfigTable]:
        """Return a list of tables, empty where there is none."""
        value = self._table.get(name)
        if not isinstance(value, list) or not all(isinstance(entry, Mapping) for entry in value):
            return []
        return [ConfigTable(entry, self.label) for entry in value[:MOST_LAYERS]]

    def number(self, name: str) -> float | None:
        """Return a number of 0 to 1,000; None for anything else."""
        value = self._table.get(name)
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            return None
        return float(value) if 0 <= value <= 1000 else None

    def text(self, name: str) -> str:
        """Return a text, empty where there is none."""
        value = self._table.get(name)
        return value if isinstance(value, str) else ""

    def texts(self, name: str) -> list[str]:
        """Return a list of texts, empty where there is none."""
        value = self._table.get(name)
        return [str(entry) for entry in value[:MOST_LAYERS]] if isinstance(value, list) else []

    def has(self, *names: str) -> bool:
        """Return whether one of these keys is there with a value."""
        return any(self._table.get(name) not in (None, 0, False, []) for name in names)

    def quantization(self) -> Mapping[str, Any]:
        """Return how the published weights are quantised, empty where they are not."""
        for table in (self.outer, self._table):
            for name in ("quantization_config", "quantization"):
                value = table.get(name)
                if isinstance(value, Mapping):
                    return value
        return {}


# What a config.json leaves out: how the layers of its `model_type` differ from the plain layout.
#
# The plain layout is that of Llama: attention with grouped heads, a gated feed-forward part, or
# experts of such parts. The counts of parameters of all families here were held against the models
# that transformers 5.23 builds of the same figures, or against published totals where it has none.


class Family(NamedTuple):
    """How layers differ from the plain layout."""

    gated: bool = True
    """Whether the feed-forward part multiplies by a gate, which is a third matrix."""
    gated_attention: bool = False
    """Whether a gate of the attention's output doubles the query projection."""
    tied: bool = False
    """Whether transformers ties the embeddings unless the file says otherwise."""
    bias: bool = False
    """Whether queries, keys and values have biases though no key says so."""
    windows: int | None = None
    """Each Nth layer attends to all tokens, where the file leaves the pattern out."""
    full: bool = False
    """Whether published files state a window and leave it off, or as long as the context."""
    blocks: bool = False
    """Whether attention and feed-forward parts are layers of their own (Nemotron-H)."""


_PLAIN = Family()
_UNGATED = Family(gated=False)

# Hunyuan, Ling (bailing), MiMo, InternLM 2, Baichuan, MiniCPM, EXAONE 3, Kimi K2 and Step bring
# code of their own, so published totals stand for transformers.
_ALL_PLAIN = """
    axk1 baichuan bailing_moe bailing_moe_v2 bamba bitnet cwm deepseek deepseek_ref deepseek_v2
    deepseek_v3 deepseek_v32 deepseek_v4 diffllama dots1 exaone exaone_moe falcon_h1 flex_olmo
    glm glm4 glm4_moe_lite glm_moe_dsa granite granitemoe granitemoe_swa granitemoehybrid
    granitemoeshared helium hunyuan hunyuan_v1_dense hunyuan_v1_moe hy_v3 hyperclovax internlm2
    internlm3 iquestcoder jamba kimi_k2 kimi_k25 kimi_linear kolibri1 llama llama4 llama4_text
    mellum mimo_v2_flash minicpm minimax_m2 minimax_m3 minimax_m3_vl minimax_m3_vl_text
    ministral ministral3 mistral mistral3 mistral4 mixtral nemotron-nas olmo olmo2 olmo_hybrid
    olmoe qwen3_vl_moe qwen3_vl_moe_text seed_oss solar_open stablelm step3p5 step3p7 youtu
"""

FAMILIES: dict[str, Family] = {
    **dict.fromkeys(_ALL_PLAIN.split(), _PLAIN),
    # xIELU, squared ReLU and GELU: two matrices.
    **dict.fromkeys(
        ["apertus", "arcee", "gpt_neox", "jais2", "nanochat", "nemotron"],
        _UNGATED,
    ),
    **dict.fromkeys(["persimmon", "phi"], _UNGATED._replace(bias=True)),
    "starcoder2": Family(gated=False, bias=True, tied=True),
    **dict.fromkeys(["phi3", "phimoe", "qwen3", "qwen3_vl", "qwen3_vl_text"], Family(full=True)),
    **dict.fromkeys(
        [
            "mimo",
            "qwen2",
            "qwen2_moe",
            "qwen2_vl",
            "qwen2_5_vl",
            "qwen2_vl_text",
            "qwen2_5_vl_text",
        ],
        Family(full=True, bias=True),
    ),
    "qwen3_moe": Family(full=True),
    "glm4_moe": Family(bias=True),
    "glm4v_moe": Family(bias=True),
    "glm4v_moe_text": Family(bias=True),
    **dict.fromkeys(
        ["afmoe", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text", "qwen3_next"],
        Family(gated_attention=True),
    ),
    **dict.fromkeys(
        [
            "cohere",
            "ernie4_5",
            "ernie4_5_moe",
            "gemma",
            "gemma4",
            "gemma4_text",
            "gemma4_unified",
            "gemma4_unified_text",
            "granite_swa",
            "lfm2",
            "lfm2_moe",
            "minicpm3",
            "smollm3",
            "vaultgemma",
        ],
        Family(tied=True),
    ),
    **dict.fromkeys(["gemma3n", "gemma3n_text"], Family(tied=True, windows=5)),
    "gemma2": Family(tied=True, windows=2),
    **dict.fromkeys(["gemma3", "gemma3_text"], Family(tied=True, windows=6)),
    "gpt_oss": Family(windows=2),
    **dict.fromkeys(["cohere2", "cohere2_moe"], Family(tied=True, windows=4)),
    **dict.fromkeys(["exaone4", "olmo3"], Family(windows=4)),
    "nemotron_h": Family(gated=False, blocks=True),
}
"""`model_type` → its layout.

What is not here is not read: for 48 of the types that transformers has, the plain layout was more
than 1 % off, for Doge 8,000 times.
"""


def model_type(config: ConfigTable) -> str:
    """Return the type of the text model, or of the whole one; empty where the file has none."""
    outer = config.outer.get("model_type")
    return config.text("model_type") or (outer if isinstance(outer, str) else "")


def family_of(config: ConfigTable) -> Family | None:
    """Return the layout; the plain one for a file without a type, None for an unknown type."""
    kind = model_type(config)
    return FAMILIES.get(kind) if kind else _PLAIN


# What attends in each layer of a model: to all tokens, to a window, by a state, or not at all.

_BLOCKS = {"M": "mamba", "E": "experts", "*": "full", "-": "ffn"}
_TYPES = {
    "full_attention": "full",
    "attention": "full",
    "deepseek_sparse_attention": "full",
    "indexed_attention": "full",
    "compressed_sparse_attention": "csa",
    "heavily_compressed_attention": "hca",
    "sliding_attention": "window",
    "chunked_attention": "window",
    "linear_attention": "linear",
    "mamba": "mamba",
    "conv": "conv",
    "moe": "experts",
    "mlp": "ffn",
}

# DeepSeek V4: tokens of which one entry is kept. 0 keeps a window alone.
_COMPRESSED = {0: "window", 4: "csa", 128: "hca"}


def layer_count(config: ConfigTable) -> int | None:
    """Return the layers of a model; Nemotron 3 Ultra's file gives their list alone."""
    return (
        config.whole("num_hidden_layers", "n_layer", "n_layers")
        or len(config.texts("layers_block_type"))
        or None
    )


def layer_kinds(config: ConfigTable, layers: int) -> list[str] | None:
    """Return the kind of each layer; None for a structure that is not known.

    Kinds: ``full``, ``window``, ``linear``, ``kda``, ``mamba``, ``mamba1``, ``conv``; ``both``
    (attention beside mamba), ``shared`` (latent attention with the indexer of an earlier layer),
    ``csa`` and ``hca`` (over a compressed cache: one entry for 4 and for 128 tokens); ``experts``
    and ``ffn``, which are blocks without attention, and ``none``, a layer without. Raises
    `ClusterError` where two keys contradict each other.
    """
    if config.has("rwkv_version"):
        return None
    if config.has("compress_ratios"):
        return _compressed(config, layers)
    kinds = _listed(config, layers) or _regular(config, layers)
    if kinds is None or not all(kinds):
        return None
    indexers = config.texts("indexer_types")
    if len(indexers) == layers:
        return [
            "shared" if kind == "full" and indexer == "shared" else kind
            for kind, indexer in zip(kinds, indexers, strict=True)
        ]
    return kinds


def _compressed(config: ConfigTable, layers: int) -> list[str] | None:
    """Return the kinds of DeepSeek V4, whose list goes on for the layers that draft tokens."""
    ratios = config.wholes("compress_ratios")
    if not config.has("o_lora_rank") or len(ratios) < layers:
        return None
    kinds = [_COMPRESSED.get(ratio, "") for ratio in ratios[:layers]]
    return kinds if all(kinds) else None


def _listed(config: ConfigTable, layers: int) -> list[str] | None:
    """Return the kinds that a list of the file names, an empty text for an unknown one."""
    blocks = config.text("hybrid_override_pattern")
    types = config.texts("layer_types") or config.texts("layers_block_type")
    if not blocks and not types:
        return _numbered(config, layers)
    kinds = [_BLOCKS.get(block, "") for block in blocks] or [_TYPES.get(t, "") for t in types]
    if len(kinds) != layers:
        key = "hybrid_override_pattern" if blocks else "layer_types"
        raise ClusterError(
            f"{config.label}: {key} has {len(kinds)} layers and num_hidden_layers is"
            f" {layers}; both must be the same"
        )
    # transformers 5 calls all that keeps a state linear.
    state = next((kind for key, kind in _STATES.items() if config.has(key)), "linear")
    return [state if kind == "linear" else kind for kind in kinds]


_STATES = {
    "linear_num_value_heads": "linear",
    "linear_num_heads": "kda",
    "mamba_d_state": "mamba",
    "ssm_state_size": "mamba",
}


def _numbered(config: ConfigTable, layers: int) -> list[str] | None:
    """Return the kinds of files that number their layers; None where there is no such list."""
    blocks = config.tables("block_configs")
    if len(blocks) == layers:
        layers_of = [block.table("attention") for block in blocks]
        groups = {block.whole("n_heads_in_group") for block in layers_of} - {None}
        return [_pruned(block) if len(groups) < 2 else "" for block in layers_of]
    linear = config.table("linear_attn_config")
    if linear.has("kda_layers"):
        # Kimi Linear counts from 1.
        kda = linear.wholes("kda_layers")
        return ["kda" if place + 1 in kda else "full" for place in range(layers)]
    if config.has("attn_layer_indices") and config.has("mamba_n_heads"):
        full = config.wholes("attn_layer_indices")
        return ["full" if place in full else "mamba" for place in range(layers)]
    if config.has("full_attn_idxs") and config.has("conv_L_cache"):
        full = config.wholes("full_attn_idxs")
        return ["full" if place in full else "conv" for place in range(layers)]
    sliding = config.wholes("hybrid_layer_pattern")
    if len(sliding) == layers:
        return ["window" if slides else "full" for slides in sliding]
    types = config.wholes("attn_type_list")
    if types:
        # MiniMax: 1 attends to all tokens, 0 is lightning attention, whose state no key describes.
        return ["full" if kind == 1 else "" for kind in types]
    return None


def _pruned(attention: ConfigTable) -> str:
    """Return the kind of a layer of which NVIDIA's search may have taken the attention away."""
    if attention.flag("replace_with_linear"):
        return ""
    return "none" if attention.flag("no_op") else "full"


def _regular(config: ConfigTable, layers: int) -> list[str] | None:
    """Return kinds of models whose each Nth layer attends to all tokens."""
    if config.has("linear_num_value_heads"):
        return _each(config.whole("full_attention_interval") or 4, "linear", layers)
    if model_type(config) == "falcon_h1":
        return ["both"] * layers
    if config.has("mamba_d_state") and config.has("attn_layer_period"):
        period, offset = config.whole("attn_layer_period") or 1, config.whole("attn_layer_offset")
        return ["full" if at % period == (offset or 0) else "mamba1" for at in range(layers)]
    if config.has("mamba_d_state", "ssm_state_size", "state_size"):
        return None
    if config.has("linear_attn_config"):
        return None
    if config.has("attention_chunk_size"):
        # Llama 4: chunks wherever rotary positions are used, which is three layers of four.
        return _each(config.whole("no_rope_layer_interval") or 4, "window", layers)
    family = family_of(config)
    if not config.has("sliding_window") or _unused_window(config):
        return ["full"] * layers
    interval = config.whole("sliding_window_pattern", "_sliding_window_pattern")
    if interval is None and family is not None:
        interval = family.windows
    return _each(interval, "window", layers)


def _unused_window(config: ConfigTable) -> bool:
    family = family_of(config)
    return family is not None and family.full and not config.flag("use_sliding_window")


def _each(interval: int | None, kind: str, layers: int) -> list[str]:
    """Return `kind` for all but each Nth layer; for all of them without an interval (Mistral)."""
    if interval is None:
        return [kind] * layers
    return ["full" if (place + 1) % interval == 0 else kind for place in range(layers)]
