"""Make a model of what a person wrote: a size, a known name, or the path of a config.json."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from probe_cluster.errors import ClusterError
from probe_cluster.known_models import KNOWN
from probe_cluster.model import Model, parse_count, shape_from_config

__all__ = ["asked_model"]

_CONFIG_LIMIT = 1 << 20


def asked_model(asked: Mapping[str, Any]) -> Model:
    """Return the model of `asked`: ``model``, and what overrides it.

    ``model`` is a number of parameters, a name of `KNOWN`, or a file. ``params``,
    ``active_params``, ``layers``, ``bits``, ``context`` and ``kv_bits`` are texts or numbers.
    Raises `ClusterError` that says what is missing.
    """
    said = str(asked["model"])
    fields: dict[str, Any] = {"name": said}
    if said.lower() in KNOWN:
        fields |= _known(said.lower())
    elif os.path.isfile(said):
        fields |= _from_file(said)
    else:
        fields |= _from_count(said)
    for name in ("params", "active_params"):
        if asked.get(name) is not None:
            fields[name] = parse_count(str(asked[name]))
    for name, whole in (("layers", True), ("context", True), ("bits", False), ("kv_bits", False)):
        if asked.get(name) is not None:
            fields[name] = _number(name, asked[name], whole)
    for name, option in (("params", "--params 70b"), ("layers", "--layers 80")):
        if name not in fields:
            raise ClusterError(f"the {name} of {said!r} are not known; give them: {option}")
    return Model(**fields)


def _known(name: str) -> dict[str, Any]:
    params, active, layers, hidden, kv_heads, head_dim = KNOWN[name]
    return {
        "name": name,
        "params": params,
        "active_params": active,
        "layers": layers,
        "hidden": hidden,
        "kv_heads": kv_heads,
        "head_dim": head_dim,
    }


def _from_count(said: str) -> dict[str, Any]:
    try:
        return {"params": parse_count(said), "name": None}
    except ClusterError:
        raise ClusterError(
            f"{said!r} is no size (70b), no file, and none of {', '.join(KNOWN)}"
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


def _number(name: str, said: Any, whole: bool) -> int | float:
    try:
        value = float(said)
    except (TypeError, ValueError):
        raise ClusterError(f"{name} is {said!r}, which is no number") from None
    if value != value or abs(value) > 1e15 or (whole and value != int(value)):
        raise ClusterError(f"{name} is {said!r}; it must be a {'whole ' if whole else ''}number")
    return int(value) if whole else value
