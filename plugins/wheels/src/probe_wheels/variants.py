"""Features of the wheel variants' draft, with the values that fit all of some devices, best first.

A variant is installed where each of its properties is in the node's list. So the list has every
version below the driver's and every older target whose code runs, not the node's own alone.
"""

from __future__ import annotations

from probe_wheels.rules import DRIVERS, TORCH, compiles_on, cuda_of_driver, runs_on, version_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_wheels.devices import Gpu

    Features = dict[str, list[str]]
    """Name of a feature to its values; one without a value is left out."""

# Compute capabilities that CUDA 11 to 13 compile for (CUDA release notes).
_CAPABILITIES = (50, 52, 60, 61, 70, 72, 75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121)

# What wheelnext's nvidia-variant-provider lists as bounds (its tests, read on 2026-11-22).
_FIRST_MAJOR, _LAST_MAJOR, _LAST_MINOR = 11, 15, 20


def properties(gpus: Sequence[Gpu], assumed: tuple[int, ...] = ()) -> list[str]:
    """Return the static list for devices of one vendor, as "nvidia :: sm_arch :: 90_real".

    `assumed` is as of `features_of`.
    """
    vendor = gpus[0].vendor if gpus else ""
    features = features_of(vendor, gpus, assumed)
    return [f"{vendor} :: {name} :: {value}" for name in features for value in features[name]]


def features_of(vendor: str, gpus: Sequence[Gpu], assumed: tuple[int, ...] = ()) -> Features:
    """Return the features of a vendor's namespace that fit all of its devices.

    `assumed` is the CUDA that a driver of unknown version is taken to run; () for none.
    """
    if not gpus:
        return {}
    if vendor == "nvidia":
        features = _of_nvidia(gpus, assumed)
    else:
        features = _of_amd(gpus) if vendor == "amd" else {}
    return {name: values for name, values in features.items() if values}


def every_feature(vendor: str) -> Features:
    """Return every feature of a vendor's namespace with all values that are known."""
    if vendor == "amd":
        return {"gfx_arch": [name for build in TORCH["rocm"] for name in build["targets"]]}
    newest = reversed(_CAPABILITIES)
    return {
        "cuda_version_lower_bound": [*_toolkits(), *_majors(_toolkits())],
        "cuda_version_upper_bound": _bounds(()),
        "sm_arch": [f"{number}_{kind}" for number in newest for kind in ("real", "virtual")],
    }


def _of_nvidia(gpus: Sequence[Gpu], assumed: tuple[int, ...]) -> Features:
    if not all(gpu.capabilities for gpu in gpus):
        return {}
    toolkits = _toolkits_of(gpus, assumed)
    return {
        "cuda_version_lower_bound": [*toolkits, *_majors(toolkits)],
        "cuda_version_upper_bound": _bounds(version_of(toolkits[0])) if toolkits else [],
        "sm_arch": _archs_of(gpus),
    }


def _of_amd(gpus: Sequence[Gpu]) -> Features:
    """Return the processor, where all GPUs have the same one: code fits one processor alone."""
    processors = {(gpu.processor or "").partition(":")[0] for gpu in gpus}
    return {"gfx_arch": [name for name in processors if name] if len(processors) == 1 else []}


def _majors(toolkits: Sequence[str]) -> list[str]:
    """Return the major versions whose first toolkit is listed: packages write ``12`` for 12.0."""
    return [text.partition(".")[0] for text in toolkits if text.endswith(".0")]


def _bounds(newest: tuple[int, ...]) -> list[str]:
    """Return what a package may write for "below": all versions above `newest`.

    xgboost's variants for CUDA 12 say `cuda_version_upper_bound :: 13`. The vendor's own provider
    lists 15.20 down to the next minor version; so does this.
    """
    bounds = []
    for major in range(_LAST_MAJOR, _FIRST_MAJOR - 1, -1):
        minors = [(major, minor) for minor in range(_LAST_MINOR, -1, -1)]
        bounds += [f"{major}.{minor}" for major, minor in minors if (major, minor) > newest]
        bounds += [str(major)] if (major, 0) > newest else []
    return bounds


def _toolkits() -> list[str]:
    return list(dict.fromkeys(toolkit for _, toolkit, _ in DRIVERS["ptx"]["rows"]))


def _toolkits_of(gpus: Sequence[Gpu], assumed: tuple[int, ...]) -> list[str]:
    """Return the CUDA versions that every driver has, the newest first."""
    drivers = [gpu.driver for gpu in gpus if gpu.driver]
    newest = cuda_of_driver(min(drivers), gpus[0].os) if drivers else assumed
    return [toolkit for toolkit in _toolkits() if version_of(toolkit) <= newest]


def _archs_of(gpus: Sequence[Gpu]) -> list[str]:
    """Return machine code that runs on all GPUs, then PTX that compiles for all of them."""
    pairs = [pair for gpu in gpus for pair in gpu.capabilities]
    newest = list(reversed(_CAPABILITIES))
    real = [n for n in newest if all(runs_on(f"sm_{n}", pair) for pair in pairs)]
    virtual = [n for n in newest if all(compiles_on(f"ptx_{n}", pair) for pair in pairs)]
    return [f"{number}_real" for number in real] + [f"{number}_virtual" for number in virtual]
