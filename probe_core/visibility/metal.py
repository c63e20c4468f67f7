"""What Metal, and MLX on it, shows: every GPU of the Mac, for no variable hides one."""

from __future__ import annotations

from probe_core.visibility.pool import identifier, integrated
from probe_core.visibility.view import Mask, View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    Device = Mapping[str, Any]

__all__ = ["see"]


def see(devices: Sequence[Device]) -> View:
    """Return what Metal would see of a Mac's devices.

    The order of several GPUs (Intel Macs) is the system's: discrete GPUs before integrated ones
    is what ``MTLCopyAllDevices`` usually gives, and is not promised.
    """
    gpus = [device for device in devices if device.get("kind") == "gpu"]
    gpus.sort(key=integrated)
    ids = [identifier(gpu) for gpu in gpus]
    if len(ids) < 2:
        return View("metal", ids, [Mask(ids)])
    why = "macOS does not promise an order of several GPUs"
    return View("metal", ids, [Mask(ids), Mask(ids[1:] + ids[:1])], uncertain=why)
