"""A provider of wheel variants: which builds fit this node's GPUs, in the protocol of a draft.

A provider is an object with `get_all_configs()` and `get_supported_configs()`. Nothing is written
to standard output, because the caller reads its own answer there.
"""

from __future__ import annotations

from probe_core.commands import probe_document
from probe_wheels.devices import gpus_of
from probe_wheels.variants import every_feature, features_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from probe_core.model.document import ReportDoc

__all__ = ["PROTOCOL", "Feature", "Provider", "amd", "nvidia", "probe", "supported"]

PROTOCOL = "variantlib 0.2.2"
"""The protocol that is implemented: PEP 817 and 825 are drafts, and it changes with them."""


class Feature:
    """A feature as the protocol has it: `values` are ordered, the best first.

    `multi_value` says that a variant may name several values, of which one must fit.
    """

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
        return [
            _feature(name, values)
            for vendor in self._vendors
            for name, values in every_feature(vendor).items()
        ]

    def get_supported_configs(self) -> list[Feature]:
        """Return the features of this node; raises nothing that hardware could cause.

        Takes as long as a probe. A feature without a fitting value is left out.
        """
        return supported(probe_document(), self._vendors)


nvidia = Provider(("nvidia",))
amd = Provider(("amd",))
probe = Provider(("nvidia", "amd"))
"""One provider: the features of some vendors, with the values that fit every usable device."""


def supported(report: ReportDoc, vendors: Sequence[str]) -> list[Feature]:
    """Return the features that fit all devices of a report which this process may use."""
    gpus = [gpu for gpu in gpus_of(report, {}) if gpu.usable is not False]
    return [
        _feature(name, values)
        for vendor in vendors
        for name, values in features_of(vendor, [g for g in gpus if g.vendor == vendor]).items()
    ]


def _feature(name: str, values: Sequence[str]) -> Feature:
    # A package may be built for several targets, of which one must fit; its bounds are one each.
    return Feature(name, values, multi_value=name in ("sm_arch", "gfx_arch"))
