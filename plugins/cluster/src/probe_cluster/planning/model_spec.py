"""Make a model of what a person wrote: a size, a known name, or a file of a model."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
from typing import Any

from probe_cluster.planning.architecture import Shape, shape_of
from probe_cluster.planning.known_models import (
    close_names,
    known_model,
    known_names,
    usual_shape,
)
from probe_cluster.planning.model import Model, parse_count
from probe_cluster.planning.precision import (
    FORMATS,
    NEMOTRON_NVFP4,
    PRECISIONS,
    Precision,
    as_run_by,
    beside_fp8,
    beside_mxfp4,
    bits_per_weight,
    nearest_precisions,
    precision_name,
    precision_of,
)
from probe_cluster.planning.weights import Weights, weights_of
from probe_cluster.shared import ClusterError

# Bytes; a config.json of an open model takes some KiB, with a list of all modules that stay
# unquantised 3 MB (nvidia/MiniMax-M3-NVFP4).
_CONFIG_LIMIT = 16 << 20

# How each pointer starts: git-lfs, docs/spec.md.
_POINTER = b"version https://git-lfs"

_LEAST = 1_000_000
"""Parameters below which a plain number is one of billions, its unit forgotten. A judgement."""

Fields = dict[str, Any]
"""Arguments of `Model`; besides ``parameters``, ``precision`` and ``native``, for `_weighed`."""


def parse_model(options: Mapping[str, Any]) -> Model:
    """Return the model of ``model``, and what overrides it.

    ``model`` is a number of parameters, a known name, or a file: config.json, GGUF, safetensors,
    or the folder of such files. A size alone has the usual shape of its like. ``params``,
    ``active_params``, ``layers``, ``bits``, ``context`` and ``kv_bits`` are texts or numbers;
    ``bits`` may be what people write of a precision (`precision_name`), which an engine's ``form``
    of files may refine. Raises `ClusterError` that says what is missing.
    """
    text = str(options["model"])
    fields: Fields = {"name": text} | _described(text, options)
    for name in ("params", "active_params"):
        if options.get(name) is not None:
            fields[name] = parse_count(str(options[name]))
            # Then the sizes of its parts are not known.
            fields |= {"parameters": None, "read_bytes": None}
    if options.get("layers") is not None:
        fields["layers"] = _number("layers", options["layers"], True)
    if options.get("context") is not None:
        fields["context"] = tokens(options["context"])
    _weighed(fields, options.get("bits"), options.get("form"))
    if options.get("kv_bits") is not None:
        fields["kv_bits"] = _cache_bits(options["kv_bits"])
    reason = fields.pop("reason", None)
    for name, option in (("params", "--params 70b"), ("layers", "--layers 80")):
        if name not in fields:
            unknown = f"the {name} of {text!r} are not known{f': {reason}' if reason else ''}"
            raise ClusterError(f"{unknown}; give them: {option}")
    return Model(**fields)


def _described(text: str, options: Mapping[str, Any]) -> Fields:
    try:
        if os.path.isdir(text):
            return _from_folder(text)
        if os.path.isfile(text):
            return _from_file(text)
    except OSError as error:
        raise ClusterError(f"{text}: {error.strerror or error}") from None
    known = known_model(text)
    if known is not None:
        quant = known.precision or known.native
        return _shaped(known.shape, PRECISIONS[quant]) | {
            "name": known.name,
            "source": known.source,
            "longest": known.longest,
            "quant": quant,
            "form": FORMATS.get(quant),
            "published": known.precision is None,
            "native": known.native,
        }
    return _from_count(text, options)


def _from_count(text: str, options: Mapping[str, Any]) -> Fields:
    if text.endswith((".gguf", ".json", ".safetensors")):
        raise ClusterError(f"{text}: {os.strerror(errno.ENOENT)}")
    try:
        params = parse_count(text)
        if text.isdecimal() and params < _LEAST and options.get("layers") is None:
            raise ClusterError(f"{text} parameters are no model: did you mean {text}b?")
        return {"params": params, "name": None} | _usual(params, text, options)
    except ClusterError:
        if text.isdecimal():
            raise
        first, *others = known_names()
        close = close_names(text)
        near = f"; close: {', '.join(close)}" if close else ""
        raise ClusterError(
            f"{text!r} is no size (70b), no file, and none of {first} and {len(others)} other"
            f" known models{near}"
        ) from None


def _usual(params: int, text: str, options: Mapping[str, Any]) -> Fields:
    """Return the shape that models of a size usually have, where a person gives no layers."""
    known = usual_shape(params) if options.get("layers") is None else None
    if known is None:
        return {}
    shape = _plain(known.shape) | {"layers": known.shape.layers, "longest": None}
    return shape | {"source": f"the usual shape of {text}: that of {known.name}"}


def _from_file(path: str) -> Fields:
    with open(path, "rb") as file:
        start = file.read(len(_POINTER))
    if start.startswith(b"GGUF"):
        return _from_gguf(path)
    if start == _POINTER:
        raise ClusterError(f"{path} is a pointer of Git LFS, not the file: run `git lfs pull`")
    if not start:
        raise ClusterError(f"{path} is empty; download it again")
    if path.lower().endswith(".gguf"):
        raise ClusterError(f"{path} is no GGUF, which starts with these letters; download it again")
    if path.endswith(".safetensors"):
        return _from_safetensors(os.path.join(os.path.dirname(path), "config.json"), [path])
    return _shaped(*_configured(path))


def _from_folder(path: str) -> Fields:
    """A model's folder: the shape of its config.json, the bytes of its safetensors files."""
    names = sorted(name for name in os.listdir(path) if name.endswith(".safetensors"))
    config = os.path.join(path, "config.json")
    if not names:
        if not os.path.isfile(config):
            raise ClusterError(f"{path} has no config.json and no .safetensors file")
        return _shaped(*_configured(config))
    return _from_safetensors(config, [os.path.join(path, name) for name in names])


def _configured(path: str) -> tuple[Shape, Precision | None]:
    """Return the shape of a config.json, and how its weights are stored, where that is known."""
    config = _config(path)
    shape = shape_of(config, path)
    inner = config.get("text_config")
    tables = [config, inner] if isinstance(inner, Mapping) else [config]
    stored = [table.get(key) for key in ("quantization_config", "quantization") for table in tables]
    table = next((entry for entry in stored if isinstance(entry, Mapping)), {})
    # DeepSeek V4's experts are in another precision than its table says.
    experts = config.get("expert_dtype")
    return shape, precision_of({**table, "expert_dtype": experts} if table and experts else table)


def _config(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            text = file.read(_CONFIG_LIMIT + 1)
        if len(text) > _CONFIG_LIMIT:
            raise ClusterError(f"{path} is no config.json: it has more than {_CONFIG_LIMIT} bytes")
        config = json.loads(text)
    except ClusterError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise ClusterError(f"{path} is no config.json that can be read: {error}") from None
    if not isinstance(config, dict):
        raise ClusterError(f"{path} is no config.json: it is no table")
    return config


def _from_gguf(path: str) -> Fields:
    from probe_cluster.planning.gguf import read_gguf, shape_of_gguf

    head = read_gguf(path)
    shape = shape_of_gguf(head.values, path)
    weights = weights_of(head.tensors, shape.experts, shape.layers)
    fields = _with_weights(shape, weights, path) | {"form": "gguf"}
    if not shape.cache:
        arch = head.values.get("general.architecture") or "general"
        missing = "attention.head_count" if not shape.heads else "embedding_length"
        fields["unknown_cache"] = f"{path} has no {arch}.{missing}"
    return fields


def _from_safetensors(config: str, paths: list[str]) -> Fields:
    from probe_cluster.planning.weights import read_safetensors

    tensors, packs = read_safetensors(paths)
    if os.path.isfile(config):
        shape, _ = _configured(config)
    elif packs:
        raise ClusterError(f"{paths[0]} is quantised, so it needs the config.json beside it")
    else:
        shape = shape_of({}, config)
    weights = weights_of(tensors, shape.experts, shape.layers)
    if packs and shape.params is not None:
        weights = weights._replace(params=shape.params.total, active=shape.params.active)
    return _with_weights(shape, weights, paths[0]) | {"form": _form_of(config)}


def _form_of(config: str) -> str | None:
    """Return ``mlx`` where a config.json has MLX's table of quantisation."""
    if not os.path.isfile(config):
        return "safetensors"
    table = _config(config)
    method = table.get("quantization_config")
    named = isinstance(method, Mapping) and method.get("quant_method") is not None
    return "mlx" if isinstance(table.get("quantization"), Mapping) and not named else "safetensors"


def _with_weights(shape: Shape, weights: Weights, path: str) -> Fields:
    """Return the fields of a model whose tensors are listed: its bytes are exact."""
    if not weights.params:
        raise ClusterError(f"{path} lists no tensor with weights")
    layers = shape.layers or weights.layers
    return (
        _plain(shape)
        | ({"layers": layers} if layers else {})
        | {
            "params": weights.params,
            "active_params": weights.active if shape.experts else None,
            "bits": weights.stored * 8 / weights.params,
            "read_bytes": weights.read,
        }
    )


def _shaped(shape: Shape, precision: Precision | None) -> Fields:
    fields = _plain(shape) | ({"layers": shape.layers} if shape.layers else {})
    if shape.params is None:
        return fields | {"reason": shape.reason}
    active = shape.params.active if shape.experts else None
    return fields | {
        "params": shape.params.total,
        "active_params": active,
        "parameters": shape.params,
        "precision": precision,
    }


def _plain(shape: Shape) -> Fields:
    # Without a known cache the KV heads would give a wrong one (compressed caches).
    heads = {"kv_heads": shape.kv_heads, "head_dim": shape.head_dim} if shape.cache else {}
    return heads | {
        "hidden": shape.hidden,
        "cache": shape.cache,
        "kind": shape.kind,
        "norms": shape.norms,
        "heads": shape.heads,
        "experts": None if shape.experts is None else tuple(shape.experts),
        "longest": shape.context,
    }


def _weighed(fields: Fields, bits: Any, form: Any) -> None:
    """Put `bits` and `read_bytes` in, from what was asked for or what the file says."""
    parameters, precision = fields.pop("parameters", None), fields.pop("precision", None)
    native = fields.pop("native", None)
    name = precision_name(str(bits), form) if bits is not None else None
    if name is not None:
        fields |= {"quant": name, "form": FORMATS.get(name), "published": False}
    refined = as_run_by(fields["quant"], form) if fields.get("quant") else None
    if refined is not None and (name or parameters is not None):
        precision = PRECISIONS[refined]
        if native == "mxfp4" and FORMATS.get(refined) == "gguf":
            precision = beside_mxfp4(precision)
        elif native == "fp8_fp4" and FORMATS.get(refined) == "gguf" and parameters is not None:
            precision = beside_fp8(precision, parameters.experts / parameters.total)
        elif refined == "nvfp4" and fields.get("kind") == "blocks":
            precision = NEMOTRON_NVFP4
    if bits is not None and name is None:
        value = _mean_bits(bits)
        fields |= {"bits": value, "quant": None, "form": None, "published": False}
        precision = Precision(value, value, value)
        _scale_read(fields, value)
    elif parameters is not None and precision is None:
        raise ClusterError(
            f"how the weights of {fields['name']!r} are quantised is not known; give --bits"
        )
    if parameters is not None and precision is not None:
        if not parameters.experts:
            precision = precision.for_dense()
        stored, fields["read_bytes"] = parameters.bytes(*precision)
        if "bits" not in fields:
            fields["bits"] = stored * 8 / parameters.total
    elif name is not None and precision is not None:
        fields["bits"] = precision.experts
        _scale_read(fields, precision.experts)


def _mean_bits(text: Any) -> float:
    """Return bits per weight that are given as a number, or as 4.0bpw."""
    value = bits_per_weight(str(text))
    if value is not None:
        return value
    try:
        return float(_number("bits", text, False))
    except ClusterError as error:
        if str(text).strip().lower() in ("exl2", "exl3"):
            raise ClusterError(f"{text} files have any number of bits: give 4.0bpw") from None
        near = " or ".join(nearest_precisions(str(text)))
        raise ClusterError(f"{error}; {f'perhaps {near}, or' if near else 'give'} 4.5") from None


def _scale_read(fields: Fields, bits: float) -> None:
    """Weights of a listed file, as if they were stored in `bits`."""
    if fields.get("read_bytes") and "params" in fields:
        fields["read_bytes"] = round((fields["active_params"] or fields["params"]) * bits / 8)


# llama.cpp's blocks of 32 values with a scale of 16 bits.
_CACHE_BITS = {"q8_0": 8.5, "q5_0": 5.5, "q4_0": 4.5, "fp8": 8.0}
_CACHE_BITS |= {"bf16": 16.0, "fp16": 16.0, "f16": 16.0}


def _cache_bits(text: Any) -> float:
    known = _CACHE_BITS.get(str(text).lower())
    try:
        return known or float(_number("kv_bits", text, False))
    except ClusterError as error:
        raise ClusterError(f"{error}, and none of {', '.join(_CACHE_BITS)}") from None


def _number(name: str, text: Any, whole: bool) -> int | float:
    try:
        value = float(text)
    except (TypeError, ValueError):
        raise ClusterError(f"{name} is {text!r}, which is no number") from None
    if value != value or abs(value) > 1e15 or (whole and value != int(value)):
        raise ClusterError(f"{name} is {text!r}; it must be a {'whole ' if whole else ''}number")
    return int(value) if whole else value


def tokens(text: Any, name: str = "context") -> int | float:
    """Return a number of tokens, of which ``32k`` are 32,768 and ``1m`` are 1,048,576.

    Raises `ClusterError` that calls it `name`.
    """
    digits = str(text).strip().lower()
    scale = {"k": 1 << 10, "m": 1 << 20}.get(digits[-1:], 1)
    if scale == 1:
        return _number(name, text, True)
    try:
        return _number(name, digits[:-1], True) * scale
    except ClusterError:
        raise ClusterError(
            f"{name} is {text!r}, which is no number of tokens: 32768, 32k"
        ) from None
