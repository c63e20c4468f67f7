"""What a GPU may draw, what holds its clocks down, and how it is set."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_nvidia.ask import Asker

__all__ = ["REASONS", "describe"]

REASONS = (
    "idle",
    "app-clocks",
    "sw-power-cap",
    "hw-slowdown",
    "sync-boost",
    "sw-thermal",
    "hw-thermal",
    "hw-power-brake",
    "display-clocks",
)
"""The bits of nvmlClocksEventReasons, from 0x1 to 0x100, as nvidia-smi calls them."""

_COMPUTE_MODES = ("default", "exclusive-thread", "prohibited", "exclusive-process")
"""nvmlComputeMode_t, from 0."""


def describe(asker: Asker, sighting: dict[str, Any]) -> None:
    """Add `power`, `ecc`, `compute_mode` and `persistence` to the sighting."""
    sighting["power"] = _power(asker)
    sighting["ecc"] = _ecc(asker)
    mode = asker.get("compute_mode", "nvmlDeviceGetComputeMode")
    if mode is not None and mode < len(_COMPUTE_MODES):
        sighting["compute_mode"] = _COMPUTE_MODES[mode]
    persistence = asker.get("persistence", "nvmlDeviceGetPersistenceMode")
    if persistence is not None:
        sighting["persistence"] = bool(persistence)


def _power(asker: Asker) -> dict[str, Any]:
    set_limit = asker.number("power.limit_watts", "nvmlDeviceGetPowerManagementLimit")
    # What a board controller or another tool forces; on some boards below what was set.
    enforced = asker.get(None, "nvmlDeviceGetEnforcedPowerLimit")
    default = asker.number("power.default_watts", "nvmlDeviceGetPowerManagementDefaultLimit")
    span = asker.get("power.max_watts", "nvmlDeviceGetPowerManagementLimitConstraints")
    milliwatts = {
        "limit_watts": min(filter(None, (set_limit, enforced)), default=None),
        "default_watts": default,
        "max_watts": span[1] if span else None,
    }
    power: dict[str, Any] = {name: value / 1000 for name, value in milliwatts.items() if value}
    mask = asker.first(
        "power.reasons",
        ("nvmlDeviceGetCurrentClocksEventReasons",),
        ("nvmlDeviceGetCurrentClocksThrottleReasons",),  # its name before driver 535
    )
    if mask is not None:
        power["reasons"] = [name for bit, name in enumerate(REASONS) if mask & (1 << bit)]
    return power


def _ecc(asker: Asker) -> dict[str, bool]:
    modes = asker.get("ecc.enabled", "nvmlDeviceGetEccMode")
    ecc = {} if modes is None else {"enabled": bool(modes[0]), "pending": bool(modes[1])}
    rows = asker.get(None, "nvmlDeviceGetRemappedRows")  # Ampere and later, data centre cards
    if rows is not None:
        ecc |= {"remap_pending": bool(rows[2]), "remap_failed": bool(rows[3])}
    return ecc
