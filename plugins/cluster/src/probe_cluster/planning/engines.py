"""The engines that people run models with: what each computes with, reads and splits."""

from __future__ import annotations

from typing import NamedTuple

from probe_cluster.shared import ClusterError


class Engine(NamedTuple):
    """What a plan needs to know of an engine."""

    what: str
    computes: str | None
    """Its key in efficiency.toml: the code that it computes with; None has no figures."""
    forms: tuple[str, ...] = ()
    """Kinds of files that it reads, besides those without a kind of their own."""
    alone: bool = False
    """Whether it uses one computer only."""
    across: bool = False
    """Whether it splits layers across computers."""
    cards: bool = False
    """Whether it splits layers among the equal GPUs of a computer."""
    single: bool = False
    """Whether it uses one GPU of a computer."""
    vendors: tuple[str, ...] = ()
    """Vendors of the devices that it runs on; empty for all."""
    windows: bool = True
    """Whether it runs on Windows itself, besides in WSL."""
    mixed: bool = True
    """Whether it computes prompts in the steps of answers."""
    chunks: tuple[tuple[int, int], ...] = ((0, 2048),)
    """(GiB of a device, tokens of prompts in a step by default), the largest device first."""

    def chunk(self, memory: int, chip: str | None) -> int:
        """Return the tokens of prompts in a step on a device with `memory` bytes."""
        # Larger steps were slower on an A100, which vLLM tells by its name (vllm PR 17885).
        least = 0 if self.chunks is _VLLM and "A100" in (chip or "") else memory
        return next(tokens for size, tokens in self.chunks if least >= size << 30)


_SERVER = ("safetensors",)


def _mlx(what: str, *, across: bool = False) -> Engine:
    # Its installation page: Apple silicon, GPUs of NVIDIA on Linux, and processors. A process of it
    # computes on one GPU; several need a process each, which NCCL joins (its page on distributed
    # communication). exo has one runner a node, and no NCCL: MlxRing and MlxJaccl (b5375f8).
    vendors = ("apple", "nvidia")
    return Engine(what, "mlx", ("mlx",), across=across, single=True, vendors=vendors)


# Not on Windows: vLLM's installation page ("does not support Windows natively", v0.26);
# TensorRT-LLM's support matrix (Linux alone) and its notes of 0.18; SGLang needs uvloop, which
# is not built there.
# llama.cpp's n_batch; vLLM: EngineArgs.get_batch_defaults, 70 GiB; SGLang: server_args.py,
# 35,000 to 160,000 MiB; TensorRT-LLM: max_num_tokens.
_VLLM = ((70, 8192), (0, 2048))
_SGLANG = ((156, 16384), (58, 8192), (34, 4096), (0, 2048))
_TENSORRT = ((0, 8192),)

ENGINES: dict[str, Engine] = {
    "auto": Engine("chosen by the hardware, the model's files and the links", None),
    "llama.cpp": Engine("llama.cpp; on several computers by its RPC", "llama-cpp", ("gguf",)),
    "ollama": Engine("Ollama, which runs llama.cpp", "llama-cpp", ("gguf",), alone=True),
    "lm-studio": Engine(
        "LM Studio, which runs llama.cpp", "llama-cpp", ("gguf", "mlx"), alone=True
    ),
    "mlx": _mlx("MLX, by mlx.launch on several Macs", across=True),
    "exo": _mlx("exo, which runs MLX on several Macs", across=True),
    "exo-ring": _mlx("the ring of old exo (2024), with MLX"),
    "vllm": Engine(
        "vLLM",
        "vllm",
        ("safetensors", "gguf"),
        across=True,
        cards=True,
        vendors=("nvidia", "amd", "intel"),
        windows=False,
        chunks=_VLLM,
    ),
    "sglang": Engine(
        "SGLang",
        "vllm",
        _SERVER,
        across=True,
        cards=True,
        vendors=("nvidia", "amd"),
        windows=False,
        mixed=False,  # server_args.py: enable_mixed_chunk is off
        chunks=_SGLANG,
    ),
    "tensorrt-llm": Engine(
        "TensorRT-LLM",
        "vllm",
        _SERVER,
        across=True,
        cards=True,
        vendors=("nvidia",),
        windows=False,
        chunks=_TENSORRT,
    ),
    "none": Engine("no engine: times are lower bounds, from theoretical peaks", None),
}
"""Engine → what it is. SGLang and TensorRT-LLM have vLLM's figures: few rows tell them apart."""

_ALIASES = {
    "llamacpp": "llama.cpp",
    "llamaserver": "llama.cpp",
    "lmstudio": "lm-studio",
    "mlxlm": "mlx",
    "trtllm": "tensorrt-llm",
    "tensorrt": "tensorrt-llm",
    "sgl": "sglang",
}
# Known, and not planned for: engine → (why, the nearest that is).
_UNPLANNED = {
    "distributedllama": ("it splits layers over sockets, of Q40 files of its own", "llama.cpp"),
    "dllama": ("it splits layers over sockets, of Q40 files of its own", "llama.cpp"),
    "exllama": ("no published speeds of it are in the table", "vllm"),
    "exllamav2": ("no published speeds of it are in the table", "vllm"),
    "exllamav3": ("no published speeds of it are in the table", "vllm"),
    "ktransformers": ("what it keeps where is its own choice", "llama.cpp"),
    "tgi": ("it is in maintenance, and no published speeds of it are in the table", "vllm"),
    "transformers": ("no published speeds of it are in the table", "vllm"),
    "koboldcpp": ("it runs llama.cpp", "llama.cpp"),
    "llamafile": ("it runs llama.cpp", "llama.cpp"),
    "jan": ("it runs llama.cpp", "llama.cpp"),
    "tinygrad": ("no published speeds of it are in the table", "llama.cpp"),
}


def _squeezed(text: str) -> str:
    return "".join(char for char in text.lower() if char.isalnum())


def engine_name(text: str) -> str:
    """Return the engine that a person means. Raises `ClusterError` with the nearest."""
    if text in ENGINES:  # as a plan asks thousands of times
        return text
    squeezed = _squeezed(text)
    own = {_squeezed(name): name for name in ENGINES}
    name = own.get(squeezed) or _ALIASES.get(squeezed)
    if name is not None:
        return name
    if squeezed in _UNPLANNED:
        why, nearest = _UNPLANNED[squeezed]
        raise ClusterError(f"{text!r} is not planned for: {why}; the nearest engine is {nearest}")
    from difflib import get_close_matches

    near = get_close_matches(squeezed, [*own, *_ALIASES], n=1)
    hint = f"the nearest is {own.get(near[0]) or _ALIASES[near[0]]}; " if near else ""
    raise ClusterError(f"{text!r} is no engine: {hint}there are {', '.join(ENGINES)}")


def file_form(engine: str) -> str | None:
    """Return the kind of files that an engine reads first."""
    forms = ENGINES[engine].forms
    return forms[0] if forms else None


def usual_engine(class_: str | None) -> str:
    """Return the engine that is usual for a class of device."""
    if class_ in ("hbm", "hbm-cdna"):
        return "vllm"
    return "mlx" if (class_ or "").startswith("apple") else "llama.cpp"
