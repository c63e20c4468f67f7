"""Asks libamdhip64 which devices it shows, in its order; runs in a child of its own.

HIP runtime API: hipInit, hipGetDeviceCount, hipDeviceGetPCIBusId.
"""

from __future__ import annotations

import os

from probe_core.api import Unavailable, hookimpl
from probe_core.runtimes.cuda import pci_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from probe_core.api import Request

_LIBRARIES = ("libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so")
_NO_DEVICE = 100  # hipErrorNoDevice


@hookimpl
def probe_devices(request: Request) -> Iterator[dict[str, Any]]:
    """Yield HIP's devices in its order: ids, and the number in ``node_index.hip``."""
    import ctypes

    os.environ.update(request.machine.environ)  # this process is ours alone
    library = _load()
    count = ctypes.c_int()
    status = library.hipInit(0) or library.hipGetDeviceCount(ctypes.byref(count))
    if status == _NO_DEVICE:
        return
    if status:
        raise Unavailable(f"HIP answered {status}", code="driver-error")
    for index in range(count.value):
        raw = ctypes.create_string_buffer(64)
        failed = library.hipDeviceGetPCIBusId(raw, len(raw), index)
        name = f"hip:{index}" if failed else pci_id(raw.value.decode("ascii", "replace"))
        yield {"ids": [name], "kind": "gpu", "vendor": "amd", "node_index": {"hip": index}}


def _load() -> Any:
    import ctypes

    for name in _LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            why = str(error)
    raise Unavailable(why, code="library-missing")
