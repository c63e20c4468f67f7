"""Processors of several kinds of cores: what each contributes, and bounds where none tells."""

from __future__ import annotations

from probe_core.resolve.processors import rate_name
from probe_core.resolve.shorthands import shorthand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_core.model.document import DeviceDoc
    from probe_core.resolve.processors import Group

__all__ = ["bound", "checked", "show"]


def checked(device: DeviceDoc, groups: Sequence[Group]) -> list[Group]:
    """Return the groups that the prober inferred where chipdb knows the processor as a hybrid.

    A Xeon one of whose threads is offline looks like one. Then its clusters are removed, in place,
    and nothing is returned.
    """
    cpu = device.get("cpu") or {}
    if all(group.match.efficient is not None for group in groups):
        return list(groups)
    cpu.pop("clusters", None)
    return []


def show(groups: Sequence[Group]) -> None:
    """Give each cluster its core's name and its part of the peak (TFLOPS), in place."""
    for group in groups:
        cluster = group.cluster
        if not isinstance(cluster, dict):
            continue
        cluster.pop("guessed", None)
        name = group.name or group.arch
        if name:
            cluster["name"] = name
        fp32 = shorthand("fp32", group.peaks)
        if fp32 is not None:
            cluster["fp32"] = fp32


def bound(device: DeviceDoc, group: Group) -> None:
    """Turn the peaks into a range, in place: how many cores are efficiency cores is not known.

    The lower figure counts all as efficiency cores, the upper one as performance cores.
    """
    match = group.match
    least, most = match.efficient_rates, match.rates
    for peak in list(device["peaks"]):
        rate = rate_name(peak)
        if rate not in least:
            # A rate that the smaller cores lack holds for an unknown number of cores.
            device["peaks"].remove(peak)
            continue
        peak["high"] = peak["tflops"]
        peak["tflops"] = round(peak["tflops"] * least[rate] / most[rate], 4)
        peak["bound"] = "lower"
        peak["source"] += "; how many are efficiency cores is not known: all are counted as such"
