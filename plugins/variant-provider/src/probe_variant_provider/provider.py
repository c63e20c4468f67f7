"""One provider: the features of some vendors, with the values that fit every usable device."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from probe_core.model.document import ReportDoc
    from probe_wheels import Gpu

__all__ = ["Feature", "Provider", "supported"]

# Compute capabilities that CUDA 11 to 13 compile for (CUDA release notes).
_CAPABILITIES = (50, 52, 60, 61, 70, 72, 75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121)


# What wheelnext's nvidia-variant-provider lists as bounds (its tests, read on 2026-11-22).
_FIRST_MAJOR, _LAST_MAJOR, _LAST_MINOR = 11, 15, 20


class Feature:
    """A feature as the protocol has it: `values` are ordered, the best first.

    `multi_value` says that a variant may name several values, of which one must fit.
    """

    __slots__ = ("multi_value", "name", "values")

    def __init__(self, name: str, values: Iterable[str], *, multi_value: bool = False) -> None:
        self.name = name
        self.values = list(values)
        self.multi_value = multi_value


class Provider:
    """The features of some vendors' GPUs on this node."""

    all_properties_compatible = False
    """The answer depends on the node, so it is not recorded when a package is built."""

    def __init__(self, vendors: Sequence[str]) -> None:
        self._vendors = vendors

    def get_all_configs(self) -> list[Feature]:
        """Return every feature with all values that are known."""
        features = []
        if "nvidia" in self._vendors:
            features += [
                Feature("cuda_version_lower_bound", [*_toolkits(), *_majors(_toolkits())]),
                Feature("cuda_version_upper_bound", _bounds(())),
                Feature("sm_arch", _every_arch(), multi_value=True),
            ]
        if "amd" in self._vendors:
            features.append(Feature("gfx_arch", _every_processor(), multi_value=True))
        return features

    def get_supported_configs(self) -> list[Feature]:
        """Return the features of this node; raises nothing that hardware could cause.

        Takes as long as a probe. A feature without a fitting value is left out.
        """
        from probe_core.commands import probe_document

        return supported(probe_document(), self._vendors)


def supported(report: ReportDoc, vendors: Sequence[str]) -> list[Feature]:
    """Return the features that fit all devices of a report which this process may use."""
    from probe_wheels import gpus_of

    gpus = [gpu for gpu in gpus_of(report, {}) if gpu.state != "blocked" and gpu.visible]
    features = []
    if "nvidia" in vendors:
        features += _of_nvidia([gpu for gpu in gpus if gpu.vendor == "nvidia"])
    if "amd" in vendors:
        features += _of_amd([gpu for gpu in gpus if gpu.vendor == "amd"])
    return [feature for feature in features if feature.values]


def _of_nvidia(gpus: Sequence[Gpu]) -> list[Feature]:
    if not gpus or not all(gpu.capabilities for gpu in gpus):
        return []
    toolkits = _toolkits_of(gpus)
    features = [
        Feature("cuda_version_lower_bound", [*toolkits, *_majors(toolkits)]),
        Feature("cuda_version_upper_bound", _bounds(_numbers(toolkits[0])) if toolkits else ()),
    ]
    return [*features, Feature("sm_arch", _archs_of(gpus), multi_value=True)]


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


def _numbers(text: str) -> tuple[int, ...]:
    from probe_wheels.targets import version_of

    return version_of(text)


def _toolkits() -> list[str]:
    from probe_wheels.tables import DRIVERS

    return list(dict.fromkeys(toolkit for _, toolkit, _ in DRIVERS["ptx"]["rows"]))


def _toolkits_of(gpus: Sequence[Gpu]) -> list[str]:
    """Return the CUDA versions that every driver has, the newest first."""
    from probe_wheels.installers import driver_cuda
    from probe_wheels.targets import version_of

    drivers = [gpu.driver for gpu in gpus if gpu.driver]
    if not drivers:
        return []
    newest = driver_cuda(min(drivers), gpus[0].os)
    return [toolkit for toolkit in _toolkits() if version_of(toolkit) <= newest]


def _every_arch() -> list[str]:
    newest = reversed(_CAPABILITIES)
    return [f"{number}_{kind}" for number in newest for kind in ("real", "virtual")]


def _archs_of(gpus: Sequence[Gpu]) -> list[str]:
    """Return machine code that runs on all GPUs, then PTX that compiles for all of them."""
    from probe_wheels.targets import compiles_on, runs_on

    pairs = [pair for gpu in gpus for pair in gpu.capabilities]
    newest = list(reversed(_CAPABILITIES))
    real = [n for n in newest if all(runs_on(f"sm_{n}", pair) for pair in pairs)]
    virtual = [n for n in newest if all(compiles_on(f"ptx_{n}", pair) for pair in pairs)]
    return [f"{number}_real" for number in real] + [f"{number}_virtual" for number in virtual]


def _every_processor() -> list[str]:
    from probe_wheels.tables import TORCH

    return [processor for build in TORCH["rocm"] for processor in build["targets"]]


def _of_amd(gpus: Sequence[Gpu]) -> list[Feature]:
    """Return the processor, where all GPUs have the same one: code fits one processor alone."""
    processors = {(gpu.processor or "").partition(":")[0] for gpu in gpus}
    if len(processors) != 1:
        return []
    return [Feature("gfx_arch", filter(None, processors), multi_value=True)]
