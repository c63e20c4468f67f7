"""Make a model of what a person wrote: a size, a known name, or the path of a config.json."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from probe_cluster.errors import ClusterError
from probe_cluster.model import Model, parse_count, shape_from_config
from probe_cluster.shapes import SHAPES

__all__ = ["parse_model"]

# Bytes; a config.json of an open model takes some KiB. A judgement.
_CONFIG_LIMIT = 1 << 20


def parse_model(options: Mapping[str, Any]) -> Model:
    """Return the model of `asked`: ``model``, and what overrides it.

    ``model`` is a number of parameters, a name of `SHAPES`, or a file. ``params``,
    ``active_params``, ``layers``, ``bits``, ``context`` and ``kv_bits`` are texts or numbers.
    Raises `ClusterError` that says what is missing.
    """
    text = str(options["model"])
    fields: dict[str, Any] = {"name": text}
    if text.lower() in SHAPES:
        fields |= _shape(text.lower())
    elif os.path.isfile(text):
        fields |= _from_file(text)
    else:
        fields |= _from_count(text)
    for name in ("params", "active_params"):
        if options.get(name) is not None:
            fields[name] = parse_count(str(options[name]))
    for name, whole in (("layers", True), ("context", True), ("bits", False), ("kv_bits", False)):
        if options.get(name) is not None:
            fields[name] = _number(name, options[name], whole)
    for name, option in (("params", "--params 70b"), ("layers", "--layers 80")):
        if name not in fields:
            raise ClusterError(f"the {name} of {text!r} are not known; give them: {option}")
    return Model(**fields)


def _shape(name: str) -> dict[str, Any]:
    params, active, layers, hidden, kv_heads, head_dim = SHAPES[name]
    return {
        "name": name,
        "params": params,
        "active_params": active,
        "layers": layers,
        "hidden": hidden,
        "kv_heads": kv_heads,
        "head_dim": head_dim,
    }


def _from_count(text: str) -> dict[str, Any]:
    try:
        return {"params": parse_count(text), "name": None}
    except ClusterError:
        raise ClusterError(
            f"{text!r} is no size (70b), no file, and none of {', '.join(SHAPES)}"
        ) from None


def _from_file(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            config = json.loads(file.read(_CONFIG_LIMIT))
    except (OSError, ValueError, RecursionError) as error:
        raise ClusterError(f"{path} is no config.json that can be read: {error}") from None
    if not isinstance(config, dict):
        raise ClusterError(f"{path} is no config.json: it is no table")
    return dict(shape_from_config(config))


def _number(name: str, text: Any, whole: bool) -> int | float:
    try:
        value = float(text)
    except (TypeError, ValueError):
        raise ClusterError(f"{name} is {text!r}, which is no number") from None
    if value != value or abs(value) > 1e15 or (whole and value != int(value)):
        raise ClusterError(f"{name} is {text!r}; it must be a {'whole ' if whole else ''}number")
    return int(value) if whole else value
