"""Which GPU a library opened, by its PCI address: a number may mean another than the one leased."""

from __future__ import annotations

from probe_core.runtimes.bus_id import bus_id

__all__ = ["OtherDevice", "address_of", "check"]

# Backend of tinygrad → library, and its call that takes a buffer, its size and a number.
_CALLS = {
    "CUDA": ("libcuda.so.1", "cuDeviceGetPCIBusId"),
    "HIP": ("libamdhip64.so", "hipDeviceGetPCIBusId"),
}


class OtherDevice(LookupError):
    """The library opened a device that was not leased."""


def check(backend: str, expected: str | None) -> None:
    """Raise `OtherDevice` where the first device of a backend that is open is not `expected`.

    `expected` is a ``pci:`` id; without one, and where the backend does not tell, nothing is known
    and nothing raised. The figures of another GPU would stand under this one's name.
    """
    found = address_of(backend) if expected else None
    if found and found != expected:
        raise OtherDevice(f"{backend} opens {found}, which is not the device that was leased")


def address_of(backend: str) -> str | None:
    """Return the ``pci:`` id of a backend's first device, once its library is initialised."""
    if backend not in _CALLS:
        return None
    import ctypes

    name, call = _CALLS[backend]
    try:
        return bus_id(getattr(ctypes.CDLL(name), call), 0)
    except (AttributeError, OSError):
        return None
