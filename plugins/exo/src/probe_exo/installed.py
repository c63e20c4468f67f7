"""Which of exo's engines are installed beside this interpreter: told by wheels, none imported.

MLX is one package with a backend in a wheel of its own: `mlx-cpu`, `mlx-cuda-12`, `mlx-cuda-13`
or `mlx-metal` bring the library that `mlx` loads (MLX 0.32, setup.py; wheels read). The names of
folders are read, as the registry of probers does: `importlib.metadata` takes longer than a probe.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

MLX_WHEELS = {
    "mlx-cpu": "MlxCpu",
    "mlx-cuda-12": "MlxCuda",
    "mlx-cuda-13": "MlxCuda",
    "mlx-metal": "MlxMetal",
}
"""Wheel with MLX's library → the value of exo's `Backend` that it is."""

_VLLM, _MLX = "vllm", "mlx"


class Installed(NamedTuple):
    """What the wheels are."""

    mlx: str | None = None
    """Wheel that brought MLX's library; None where none can be used, see `reasons`."""
    vllm: str | None = None
    """Version of vLLM, with its local part (``0.20.1+cpu``); None where it is not installed."""
    unknown: frozenset[str] = frozenset()
    """Of ``mlx`` and ``vllm`` those of which no wheel tells whether, or as what, they are there: a
    frozen application has no list of its wheels, and MLX built from source is one wheel."""
    reasons: Mapping[str, str] = {}
    """``mlx`` or ``vllm`` → why it is not there, or cannot be used."""


def installed_engines() -> Installed:
    """Return the engines of this interpreter, looked up once for each `sys.path`."""
    return _looked_up(tuple(sys.path), sys.platform, bool(getattr(sys, "frozen", False)))


@lru_cache(maxsize=4)
def _looked_up(path: tuple[str, ...], platform: str, frozen: bool) -> Installed:
    found = read_installed(path, platform)
    if frozen and found.mlx is None and found.vllm is None:
        reason = "a frozen application has no list of its wheels"
        unknown = frozenset((_MLX, _VLLM))
        return Installed(unknown=unknown, reasons=dict.fromkeys(unknown, reason))
    return found


def read_installed(path: Iterable[str], platform: str) -> Installed:
    """Return what the folders of `path` hold, for a `sys.platform`. Never raises."""
    wheels: dict[str, tuple[str, str]] = {}
    for folder in path:
        for name, version in _wheels(folder or "."):
            wheels.setdefault(name, (version, folder or "."))  # the first one is what is imported
    reasons: dict[str, str] = {}
    vllm = wheels.get(_VLLM)
    if vllm is not None and not _has(vllm[1], "vllm", "__init__.py"):
        reasons["vllm"], vllm = "vllm is half installed: its package is missing", None
    elif vllm is None:
        reasons["vllm"] = "vllm is not installed"
    mlx, unknown = None, frozenset[str]()
    if _is_built_here(wheels, platform):
        reasons["mlx"] = "mlx was built from source, and no wheel tells its backend"
        unknown = frozenset((_MLX,))
    else:
        mlx = _mlx(wheels, platform, reasons)
    return Installed(mlx, None if vllm is None else vllm[0], unknown, reasons)


def _is_built_here(wheels: Mapping[str, tuple[str, str]], platform: str) -> bool:
    """Return whether MLX's one wheel has a library of its own, whose backend its name leaves open.

    On a Mac that is Metal, which is how exo installs it.
    """
    if platform == "darwin" or _MLX not in wheels or not wheels.keys().isdisjoint(MLX_WHEELS):
        return False
    folder = wheels[_MLX][1]
    if any(name.startswith("__editable__") and _MLX in name for name in _names(folder)):
        return True
    return _has(folder, "mlx/lib", "libmlx.") and _has(folder, "mlx", "core.")


def _mlx(
    wheels: Mapping[str, tuple[str, str]], platform: str, reasons: dict[str, str]
) -> str | None:
    backends = [name for name in MLX_WHEELS if name in wheels]
    if not backends and platform == "darwin" and _MLX in wheels:
        backends = ["mlx-metal"]  # built from its source, as exo does: one wheel has it all
    if _MLX not in wheels:
        reasons["mlx"] = "mlx is not installed"
        if backends:
            reasons["mlx"] = f"{backends[0]} is half installed: the package mlx is missing"
    elif not backends:
        reasons["mlx"] = f"mlx is half installed: none of {', '.join(MLX_WHEELS)} is there"
    elif len(backends) > 1:
        # Both wheels have mlx/lib/libmlx.so: whichever came last overwrote the other.
        reasons["mlx"] = f"{' and '.join(backends)} overwrite each other's library; keep one"
    elif not _has(wheels.get(backends[0], wheels[_MLX])[1], "mlx/lib", "libmlx."):
        reasons["mlx"] = f"{backends[0]} is half installed: mlx/lib has no libmlx"
    elif not _has(wheels[_MLX][1], "mlx", "core."):
        reasons["mlx"] = "mlx is half installed: its module core is missing"
    else:
        return backends[0]
    return None


def _wheels(folder: str) -> Iterable[tuple[str, str]]:
    """Yield (name, version) of the engines' wheels in a folder."""
    for entry in _names(folder):
        stem, _, ending = entry.rpartition(".")
        if ending == "dist-info":
            name, _, version = stem.partition("-")
            name = name.lower().replace("_", "-").replace(".", "-")
            if name in MLX_WHEELS or name in (_MLX, _VLLM):
                yield name, version


def _has(folder: str, package: str, start: str) -> bool:
    return any(name.startswith(start) for name in _names(os.path.join(folder, package)))


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except (OSError, ValueError):  # no folder, a zip, or a name that is none
        return []
