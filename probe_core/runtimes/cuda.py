"""Queries libcuda for the devices it shows, in its order; runs in a child of its own.

Driver API: cuInit, cuDeviceGetCount, cuDeviceGet, cuDeviceGetUuid_v2 (of a GPU in MIG mode the
UUID is the instance's), cuDeviceGetPCIBusId. No context is created.
"""

from __future__ import annotations

import os

from probe_core.api import Unavailable, hookimpl
from probe_core.runtimes.bus_id import bus_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from ctypes import CDLL, c_int

    from probe_core.api import Request
    from probe_core.model.document import Sighting

_LIBRARY = "libcuda.so.1"
_NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE: also when CUDA_VISIBLE_DEVICES hides every device


@hookimpl
def probe_devices(request: Request) -> Iterator[Sighting]:
    """Yield CUDA's devices in its order: ids, and the number in ``node_index.cuda``."""
    import ctypes

    os.environ.update(request.machine.environ)  # the process is this prober's alone
    library = _load()
    status = library.cuInit(0)
    if status == _NO_DEVICE:
        return
    _check(status, "cuInit")
    count = ctypes.c_int()
    _check(library.cuDeviceGetCount(ctypes.byref(count)), "cuDeviceGetCount")
    for index in range(count.value):
        device = ctypes.c_int()
        _check(library.cuDeviceGet(ctypes.byref(device), index), "cuDeviceGet")
        ids = _uuids(library, device)
        if identity := bus_id(library.cuDeviceGetPCIBusId, device):
            ids.append(identity)
        yield {
            "ids": ids or [f"cuda:{index}"],
            "kind": "gpu",
            "vendor": "nvidia",
            "node_index": {"cuda": index},
        }


def _load() -> CDLL:
    import ctypes

    try:
        return ctypes.CDLL(_LIBRARY)
    except OSError as error:
        raise Unavailable(f"{_LIBRARY}: {error}", code="library-missing") from None


def _check(status: int, call: str) -> None:
    if status:
        raise Unavailable(f"{call} answered {status}", code=f"cuda-error-{status}")


def _uuids(library: CDLL, device: c_int) -> list[str]:
    import ctypes

    raw = (ctypes.c_ubyte * 16)()
    # A libcuda before 11.4 has the first version alone, which never gives a MIG instance's.
    get_uuid = getattr(library, "cuDeviceGetUuid_v2", None) or library.cuDeviceGetUuid
    if get_uuid(ctypes.byref(raw), device):
        return []
    text = bytes(raw).hex()
    uuid = f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
    # The sixteen bytes do not tell whether they are a GPU's or an instance's.
    return [f"uuid:GPU-{uuid}", f"uuid:MIG-{uuid}"]
