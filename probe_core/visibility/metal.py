"""What Metal, and MLX on it, shows: every GPU of the Mac, for no variable hides one."""

from __future__ import annotations

from probe_core.visibility.availability import available_to, ids_of, integrated
from probe_core.visibility.view import Mask, View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_core.model.document import DeviceDoc


def see(devices: Sequence[DeviceDoc]) -> View:
    """Return what Metal would show of a Mac's devices.

    The order of several GPUs (Intel Macs) is the system's: discrete GPUs before integrated ones
    is what ``MTLCopyAllDevices`` usually gives, and is not promised.
    """
    gpus = [device for device in devices if device["kind"] == "gpu"]
    gpus.sort(key=integrated)
    available = available_to(gpus, "metal")
    ids = ids_of(available.devices)
    view = View("metal", ids, [Mask(ids)])
    if len(ids) > 1:
        view.masks.append(Mask(ids[1:] + ids[:1]))
        view.uncertain = "macOS does not promise an order of several GPUs"
    view.withhold(available, ids_of(gpus))
    return view
