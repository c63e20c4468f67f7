"""Which device a runtime's library means: cuDeviceGetPCIBusId and hipDeviceGetPCIBusId are alike.

Neither makes a context.
"""

from __future__ import annotations

from probe_core.sysfs.pci import normal_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["bus_id"]

_BYTES = 64  # ``00000000:01:00.0`` and its NUL take 17


def bus_id(call: Any, device: Any) -> str | None:
    """Return the ``pci:`` id of a device, as `call` of a `ctypes` library writes its address.

    `device` is the library's handle or number. None where the call fails, or writes no address.
    """
    import ctypes

    text = ctypes.create_string_buffer(_BYTES)
    if call(text, _BYTES, device):
        return None
    return normal_id(text.value.decode("ascii", "replace"))
