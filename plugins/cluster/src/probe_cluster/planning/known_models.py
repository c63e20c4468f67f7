"""Models that are known by name: the figures of models.toml, and which spellings mean them."""

from __future__ import annotations

import os
import tomllib
from functools import cache
from typing import NamedTuple, TypedDict, cast

from probe_cluster.planning.architecture import Shape, shape_of
from probe_cluster.planning.precision import PRECISIONS


class ModelEntry(TypedDict, total=False):
    """An entry of models.toml; its head says what the keys mean."""

    name: str
    aliases: list[str]
    repository: str
    read: str
    billions: float
    active: float
    precision: str
    config: dict[str, object]


class KnownModel(NamedTuple):
    """A model by its name."""

    name: str
    shape: Shape
    native: str
    """Name of the published weights' precision, of `PRECISIONS`."""
    precision: str | None
    """The precision that the spelling names: ``4bit`` of ``Llama-3.2-3B-Instruct-4bit``."""
    source: str
    """Whose config.json the figures are of, and where they were read."""


# What distributors append to a model's name; none of it changes the shape.
_SUFFIXES = frozenset(
    "instruct it chat base thinking hf gguf mlx dwq qat preview fp original dynamic unsloth ud pt"
    " v0.1 v0.2 v0.3 2407 2410 2411 2501 2503 2506 2507 2509 2512 0414 0711 0905 think sft dpo"
    " latest text bnb quantized w4a16 w8a8".split()
)
# How MLX's distributors write precisions: groups of 32, and all but the experts in 8 bits.
_SPELLINGS = (("bits", "bit"), ("bit-gs32", "bit_gs32"), ("mxfp4-q8", "mxfp4_q8"))
_PREFIXES = ("meta-", "google-", "openai-", "qwen-", "deepseek-ai-")


_NAME = 5
"""Letters of a name that is taken for the start of another one: ``glm-5.1``. A judgement."""


@cache
def entries() -> tuple[ModelEntry, ...]:
    """Return what models.toml has."""
    path = os.path.join(os.path.dirname(__file__), "models.toml")
    with open(path, "rb") as file:
        return tuple(cast("list[ModelEntry]", tomllib.load(file)["model"]))


def known_names() -> list[str]:
    """Return the names, without other spellings."""
    return [entry["name"] for entry in entries()]


def known_model(text: str) -> KnownModel | None:
    """Return the model that a name means, such as ``org/Llama-3.1-8B-Instruct``; None for others.

    A name means a model only when all of it is known: no part is ignored but the suffixes that
    distributors append.
    """
    index = _index()
    base, precision = _plain(text)
    entry = index.get(_squeezed(text.rpartition("/")[2])) or index.get(_squeezed(base))
    if entry is None:
        return None
    return KnownModel(
        entry["name"],
        shape_of(entry["config"], entry["name"]),
        entry.get("precision", "bf16"),
        precision,
        f"config.json of {entry['repository']} ({entry['read']})",
    )


def close_names(text: str, most: int = 3) -> list[str]:
    """Return the known names that are most alike, the best first."""
    from difflib import SequenceMatcher, get_close_matches

    wish = _squeezed(_plain(text)[0])
    spelled = {key: entry["name"] for key, entry in _index().items()}
    matches = get_close_matches(wish, spelled, n=3 * most, cutoff=0.6)
    matches.sort(key=lambda key: -SequenceMatcher(None, wish, key).ratio())
    # A name without its size is a prefix of those with it.
    starts = [key for key in spelled if key.startswith(wish) and len(wish) >= 3]
    # A known name with a suffix that nobody knows: the longest such name.
    within = [key for key in spelled if wish.startswith(key) and len(key) >= _NAME]
    starts += sorted(within, key=len, reverse=True)
    return list(dict.fromkeys(spelled[key] for key in (*starts, *matches)))[:most]


@cache
def _index() -> dict[str, ModelEntry]:
    index: dict[str, ModelEntry] = {}
    for entry in entries():
        for name in (entry["name"], *entry.get("aliases", ())):
            index.setdefault(_squeezed(name), entry)
    return index


def _squeezed(name: str) -> str:
    """Return a name without what people write differently: case, ``-``, ``_``, ``:``, spaces."""
    return "".join(char for char in name.lower() if char.isalnum() or char == ".")


def _plain(text: str) -> tuple[str, str | None]:
    """Return the name without owner and suffixes, and the precision that a suffix names."""
    name = text.strip().lower().rpartition("/")[2].removesuffix(".gguf")
    for char in " :@":
        name = name.replace(char, "-")
    for spelling, usual in _SPELLINGS:
        name = name.replace(spelling, usual)
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    precision = None
    while True:
        head, suffix = _last_part(name)
        if head and suffix in PRECISIONS:
            precision = precision or suffix
        elif head and suffix == "fp4":  # NVIDIA's name of its own format
            precision = precision or "nvfp4"
        elif not head or suffix not in _SUFFIXES:
            return name, precision
        name = head


def _last_part(name: str) -> tuple[str, str]:
    """Split the last part off: ``q4_k_m`` is one part, ``-`` and ``.`` end another."""
    for mark in "-.":
        head, _, suffix = name.rpartition(mark)
        if suffix in PRECISIONS or suffix in _SUFFIXES or suffix == "fp4":
            return head, suffix
    return name.rpartition("-")[0], name.rpartition("-")[2]
