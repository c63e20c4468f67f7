"""Peaks of a chip that chipdb does not have, derived where its architecture is known."""

from __future__ import annotations

from probe_core.resolve.reasons import fill_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_chipdb import Arch, Database
    from probe_core.model.document import DeviceDoc

    Clock = tuple[float | None, str]
    """The driver's clock that comes nearest to a boost clock: (MHz or None, label)."""

__all__ = ["resolve"]


def resolve(device: DeviceDoc, database: Database, clock: Clock) -> None:
    """Set `arch` and `peaks` as far as the driver's facts fix them, or say what is missing."""
    arch, reason = database.arch_for(
        compute_capability=device.get("compute_capability"),
        gfx=device.get("gfx"),
        name=device.get("name"),
        gpu_id=device.get("gpu_id"),
        dt=device.get("dt", ()),
        pci=(device.get("pci") or {}).get("id"),
    )
    if device["bandwidth"] is None:
        device["unknown"].setdefault("bandwidth", "unknown chip")
    if arch is not None:
        fill_text(device, "arch", arch.family or arch.id)
    if device["peaks"]:  # the prober knows them itself
        return
    if arch is None:
        device["unknown"].setdefault("peaks", f"unknown chip; {reason}")
        return
    missing = _derive(device, arch, database, clock)
    if missing:
        device["unknown"].setdefault("peaks", missing)


def _derive(device: DeviceDoc, arch: Arch, database: Database, clock: Clock) -> str | None:
    """Set the peaks from the live counts; return why there are none."""
    units = device.get("units")
    mhz, label = clock
    if not units or not mhz:
        fact = "clock" if units else "unit count"
        return f"unknown chip of architecture {arch.name}; the driver gives no {fact}"
    source = device["sources"].get(f"clocks.{label}_mhz", "driver")
    if label == "max":
        # NVML's maximum is 23 % above an RTX 4090's boost clock, and equal to a T4's.
        source += "; an upper bound: a driver's maximum is no boost clock"
    peaks = database.derive(arch.id, units=units, clock_mhz=mhz, clock=label, source=source)
    if not peaks:
        return f"the rates of {arch.name} depend on the product"
    device["peaks"] = [peak.as_json() for peak in peaks]
    device["sources"]["peaks"] = "derived"
    return None
