"""Asks libcuda which devices it shows, in its order; runs in a child of its own.

Driver API: cuInit, cuDeviceGetCount, cuDeviceGet, cuDeviceGetUuid_v2 (of a GPU in MIG mode the
UUID is the instance's), cuDeviceGetPCIBusId. No context is created.
"""

from __future__ import annotations

import os

from probe_core.api import Unavailable, hookimpl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from probe_core.api import Request

_LIBRARY = "libcuda.so.1"
_NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE: also when the variable hides every device


@hookimpl
def probe_devices(request: Request) -> Iterator[dict[str, Any]]:
    """Yield CUDA's devices in its order: ids, and the number in ``node_index.cuda``."""
    import ctypes

    os.environ.update(request.machine.environ)  # this process is ours alone
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError as error:
        raise Unavailable(f"{_LIBRARY}: {error}", code="library-missing") from None
    status = library.cuInit(0)
    if status == _NO_DEVICE:
        return
    if status:
        raise Unavailable(f"cuInit answered {status}", code="driver-error")
    count = ctypes.c_int()
    _must(library.cuDeviceGetCount(ctypes.byref(count)), "cuDeviceGetCount")
    for index in range(count.value):
        device = ctypes.c_int()
        _must(library.cuDeviceGet(ctypes.byref(device), index), "cuDeviceGet")
        ids = [*_uuids(library, device), *_pci(library, device)]
        found = {"ids": ids or [f"cuda:{index}"], "kind": "gpu", "vendor": "nvidia"}
        yield {**found, "node_index": {"cuda": index}}


def _must(status: int, call: str) -> None:
    if status:
        raise Unavailable(f"{call} answered {status}", code="driver-error")


def _uuids(library: Any, device: Any) -> list[str]:
    import ctypes

    raw = (ctypes.c_ubyte * 16)()
    newest = getattr(library, "cuDeviceGetUuid_v2", None) or library.cuDeviceGetUuid
    if newest(ctypes.byref(raw), device):
        return []
    text = bytes(raw).hex()
    plain = f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
    return [f"uuid:GPU-{plain}", f"uuid:MIG-{plain}"]


def _pci(library: Any, device: Any) -> list[str]:
    import ctypes

    raw = ctypes.create_string_buffer(64)
    if library.cuDeviceGetPCIBusId(raw, len(raw), device):
        return []
    return [pci_id(raw.value.decode("ascii", "replace"))]


def pci_id(text: str) -> str:
    """Return ``pci:0000:01:00.0`` for ``0000:01:00.0`` in any case and width of the domain."""
    try:
        domain, bus, slot = text.strip().split(":")
        number, _, function = slot.partition(".")
        return (
            f"pci:{int(domain, 16):04x}:{int(bus, 16):02x}"
            f":{int(number, 16):02x}.{int(function or '0', 16):x}"
        )
    except ValueError:
        return f"pci:{text.strip().lower()}"
