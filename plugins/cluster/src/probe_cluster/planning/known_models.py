"""Models that are known by name: the figures of models.toml, and which spellings mean them."""

from __future__ import annotations

import os
import re
import tomllib
from functools import cache
from math import log
from typing import NamedTuple, TypedDict, cast

from probe_cluster.planning.architecture import Shape, shape_of
from probe_cluster.planning.precision import precision_name


class ModelEntry(TypedDict, total=False):
    """An entry of models.toml; its head says what the keys mean."""

    name: str
    aliases: list[str]
    contexts: dict[str, int]
    repository: str
    read: str
    billions: float
    active: float
    precision: str
    config: dict[str, object]


class KnownModel(NamedTuple):
    """A model by its name."""

    name: str
    """Its own one, also where it has the shape of another: ``llama-3.3-70b``."""
    shape: Shape
    native: str
    """Name of the published weights' precision, of `PRECISIONS`."""
    precision: str | None
    """The precision that the spelling names: ``4bit`` of ``Llama-3.2-3B-Instruct-4bit``."""
    longest: int | None
    """Tokens of the longest context."""
    source: str
    """Whose config.json the figures are of, and where they were read."""


# What distributors append to a model's name; none of it changes the shape.
_SUFFIXES = frozenset(
    "instruct it chat base thinking hf gguf mlx dwq qat preview fp original dynamic unsloth ud pt"
    " v0.1 v0.2 v0.3 2407 2410 2411 2501 2503 2506 2507 2509 2512 0414 0711 0905 think sft dpo"
    " latest text quantized".split()
)
# How MLX's distributors write precisions: groups of 32, and all but the experts in 8 bits.
_SPELLINGS = (
    ("bits", "bit"),
    ("bit-gs32", "bit_gs32"),
    ("mxfp4-q8", "mxfp4_q8"),
    ("bnb-4bit", "bnb_4bit"),
)
# What a tag of Ollama's library that names no quantisation mostly has: `ollama show llama3.1:8b`
# (recalled); gpt-oss has its own MXFP4.
_TAGGED = "q4_k_m"
_GGUF = re.compile(r"[-.]gguf\b", re.IGNORECASE)
_PREFIXES = ("meta-", "google-", "openai-", "qwen-", "deepseek-ai-")


_USUAL = 1.25
"""Beyond this factor a size has no usual shape: a judgement."""

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
    found = index.get(_squeezed(text.rpartition("/")[2])) or index.get(_squeezed(base))
    if found is None:
        return None
    name, entry = found
    shape, native = shape_of(entry["config"], entry["name"]), entry.get("precision", "bf16")
    if precision is None and (_GGUF.search(text) or (":" in text and "/" not in text)):
        # What ollama fetches by a tag, and what a repository of GGUF files has first.
        precision = "mxfp4_moe" if native == "mxfp4" else _TAGGED
    if precision == "mxfp4" and _GGUF.search(text):
        precision = "mxfp4_moe"
    return KnownModel(
        name,
        shape,
        native,
        precision,
        _longest(entry, text) or shape.context,
        f"config.json of {entry['repository']} ({entry['read']})",
    )


def _longest(entry: ModelEntry, text: str) -> int | None:
    """Return the longest context of a spelling that has its own."""
    squeezed = _squeezed(text)
    own = entry.get("contexts", {}).items()
    return next((tokens for part, tokens in own if _squeezed(part) in squeezed), None)


def close_names(text: str, most: int = 3) -> list[str]:
    """Return the known names that are most alike, the best first."""
    from difflib import get_close_matches

    wish = _squeezed(_plain(text)[0])
    spelled = {key: entry["name"] for key, (_, entry) in _index().items()}
    matches = get_close_matches(wish, spelled, n=3 * most, cutoff=0.6)
    # A name without its size is a prefix of those with it.
    starts = [key for key in spelled if key.startswith(wish) and len(wish) >= 3]
    own = [name for key, (name, _) in _index().items() if key in starts]
    # A known name with a suffix that nobody knows: the longest such name.
    within = [key for key in spelled if wish.startswith(key) and len(key) >= _NAME]
    # A size without its family: 8x7b of mixtral-8x7b.
    starts += [key for key in spelled if key.endswith(wish) and len(wish) >= 3]
    starts += sorted(within, key=len, reverse=True)
    return list(dict.fromkeys([*own, *(spelled[key] for key in (*starts, *matches))]))[:most]


@cache
def _index() -> dict[str, tuple[str, ModelEntry]]:
    """Return squeezed name → the name as it is written, and whose shape it has."""
    index: dict[str, tuple[str, ModelEntry]] = {}
    for entry in entries():
        for name in (entry["name"], *entry.get("aliases", ())):
            index.setdefault(_squeezed(name), (name, entry))
    return index


def usual_shape(params: int) -> KnownModel | None:
    """Return the dense model nearest to a size; None where none is within a quarter of it."""
    best: tuple[float, KnownModel] | None = None
    for entry in entries():
        known = known_model(entry["name"])
        if known is None or known.shape.kind != "dense" or known.shape.params is None:
            continue
        away = abs(log(params / known.shape.params.total))
        # Of equals the first: the file starts with Llama, whose layout most others follow.
        if away < log(_USUAL) and (best is None or away < best[0] - 0.03):
            best = (away, known)
    return None if best is None else best[1]


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
        named = precision_name(suffix)
        if head and named is not None:
            precision = precision or named
        elif not head or suffix not in _SUFFIXES:
            return name, precision
        name = head


def _last_part(name: str) -> tuple[str, str]:
    """Split the last part off: ``q4_k_m`` is one part, ``-`` and ``.`` end another."""
    for mark in "-.":
        head, _, suffix = name.rpartition(mark)
        if suffix in _SUFFIXES or precision_name(suffix) is not None:
            return head, suffix
    return name.rpartition("-")[0], name.rpartition("-")[2]
