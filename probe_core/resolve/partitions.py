"""Chip and peaks of a part of a GPU (a MIG device): its share of the parent's, never the whole."""

from __future__ import annotations

from probe_core.resolve.reasons import fill_count, fill_text, from_chipdb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import DeviceDoc, PeakDoc

__all__ = ["resolve"]


def resolve(device: DeviceDoc, parent: DeviceDoc) -> None:
    """Give a part the chip of its parent, and peaks by its share of the parent's units."""
    chip = parent["chip"].copy()
    chip.pop("nominal", None)  # the whole card's figures
    chip["by"] = "parent" if chip["id"] else None
    device["chip"] = chip
    fill_text(device, "arch", parent.get("arch"))
    fill_text(device, "vendor", parent.get("vendor"))
    if parent.get("pci") is not None and device.get("pci") is None:
        device["pci"] = parent["pci"]
        from_chipdb(device, "pci")
    _use_share(device, parent)
    device["unknown"].setdefault("bandwidth", "no driver reports a part's share of the bandwidth")


def _use_share(device: DeviceDoc, parent: DeviceDoc) -> None:
    # NVML's attributes count a MIG device's SMs; a prober may report them as a share alone.
    units = device.get("units") or (device.get("share") or {}).get("units")
    whole = parent.get("units")
    share = device.get("share")
    if share and whole and share.get("of") is None:
        share["of"] = int(whole)  # of an AMD partition whose siblings were not granted
    if units and whole and parent["peaks"]:
        fill_count(device, "units", int(units))
        device["peaks"] = [_scaled(peak, units, whole) for peak in parent["peaks"]]
        device["sources"]["peaks"] = "chipdb"
    elif not device["peaks"]:
        device["unknown"]["peaks"] = "how many of the parent's units this part has is not known"


def _scaled(peak: PeakDoc, units: float, whole: int) -> PeakDoc:
    part = peak.copy()
    part["tflops"] = round(peak["tflops"] * units / whole, 4)
    low = peak.get("low")
    if low is not None:
        part["low"] = round(low * units / whole, 4)
    part.pop("published", None)  # the vendor publishes no figure of a part
    part["source"] = f"{units} of {whole} units of: {peak['source']}"
    part["confidence"] = "derived"
    return part
