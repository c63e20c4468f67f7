"""Queries libamdhip64 for the devices it shows, in its order; runs in a child of its own.

HIP runtime API: hipInit, hipGetDeviceCount, hipDeviceGetPCIBusId.
"""

from __future__ import annotations

import os

from probe_core.api import Unavailable, hookimpl
from probe_core.runtimes.bus_id import bus_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from ctypes import CDLL

    from probe_core.api import Request
    from probe_core.model.document import Sighting

# Newest first; the name without a number is the development package's.
_LIBRARIES = ("libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so")
_NO_DEVICE = 100  # hipErrorNoDevice


@hookimpl
def probe_devices(request: Request) -> Iterator[Sighting]:
    """Yield HIP's devices in its order: ids, and the number in ``node_index.hip``."""
    import ctypes

    os.environ.update(request.machine.environ)  # the process is this prober's alone
    library = _load()
    count = ctypes.c_int()
    status = library.hipInit(0) or library.hipGetDeviceCount(ctypes.byref(count))
    if status == _NO_DEVICE:
        return
    if status:
        raise Unavailable(f"HIP answered {status}", code="driver-error")
    for index in range(count.value):
        name = bus_id(library.hipDeviceGetPCIBusId, index) or f"hip:{index}"
        yield {"ids": [name], "kind": "gpu", "vendor": "amd", "node_index": {"hip": index}}


def _load() -> CDLL:
    import ctypes

    reason = ""
    for name in _LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            reason = str(error)
    raise Unavailable(reason, code="library-missing")
